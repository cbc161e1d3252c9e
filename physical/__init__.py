"""How plans are computed: the room for the interval operators. The algebra's definitions run today.

It may import the algebra, and neither the translator nor what users touch; the import contract in
setup.cfg holds that.
"""

if __name__ == "physical":
    raise ImportError("this is a part of a package: import streamsparql.physical instead")
