"""How plans are computed: interval operators over columnar batches.

`lower` makes a physical plan of a logical one, `pipeline` runs it. It may import the algebra, and
neither the translator nor what users touch; the import contract in setup.cfg holds that.
"""

if __name__ == "physical":
    raise ImportError("this is a part of a package: import streamsparql.physical instead")
