"""The error that expressions raise where they have no value.

It has a module of its own because numbers, dates and regular expressions raise it too.
"""


class ExpressionError(Exception):
    """An expression without a value on a row: SPARQL's third truth value. It never stops a query.

    >>> from streamsparql.algebra.xsd.literal_operators import add
    >>> from streamsparql.algebra.terms import Literal
    >>> add(Literal("one"), Literal("two"))
    Traceback (most recent call last):
    ...
    streamsparql.algebra.expression_error.ExpressionError: "one" + "two" is not defined
    """
