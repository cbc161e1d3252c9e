"""The physical operators, in files named like those of their twins in `streamsparql.algebra`.

binary.py and covering.py have bases, left_join.py and slice.py twins of join.py and shape.py that
need space, columns.py, consolidate.py and report.py operators without a logical twin.
"""
