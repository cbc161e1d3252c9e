"""The physical operators, in files named like those of their twins in `streamsparql.algebra`.

binary.py and covering.py have base classes. left_join.py and slice.py have the twins of LeftJoin
(algebra/join.py) and Slice (algebra/shape.py). The operators of columns.py, consolidate.py and
report.py have no logical twin.
"""
