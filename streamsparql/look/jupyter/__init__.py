"""Notebook displays of queries, plans, results, streams and traces: static pictures and tables.

Drawing needs neither a notebook nor a library. A display is an HTML or SVG fragment that loads no
resources and is complete without a script, so it stays readable when a notebook is exported. All
styles that differ between light and dark go through `themed`, and no element has an id, so a
notebook can contain any number of displays.
"""
