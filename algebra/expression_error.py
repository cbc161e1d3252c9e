"""The error that is a value: what an expression comes to where it has none.

It stands below all that evaluates, since numbers, dates and regular expressions raise it alike.
"""


class ExpressionError(Exception):
    """SPARQL's third truth value: the expression has no value here. It never stops a query.

    >>> from streamsparql.algebra.xsd.literal_operators import add
    >>> from streamsparql.algebra.terms import Literal
    >>> add(Literal("one"), Literal("two"))
    Traceback (most recent call last):
    ...
    streamsparql.algebra.expression_error.ExpressionError: "one" + "two" is not defined
    """
