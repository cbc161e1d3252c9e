"""How a notebook shows queries, plans, results and streams: static pictures and tables.

Nothing here needs a notebook, or more than the standard library: a display is a piece of HTML or
SVG that loads nothing and is whole without a script, so that it stays readable when a notebook is
exported. Everything in it that may differ between light and dark is said once, by `themed`, and no
element has an id, so that a notebook can hold any number of displays.
"""
