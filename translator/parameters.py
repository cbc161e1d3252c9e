"""The parameters of a query's text: `$name` stands for a constant that is known later.

SPARQL reads `$x` and `?x` as the same variable. A text that is registered with parameters reads
`$x` as a constant, so it may stand where a constant may, and nothing may bind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamsparql.errors import QueryError
from streamsparql.translator import syntax as s


def parameters_of(
    query: s.QueryUnit, text: str, names: Collection[str] | None = None
) -> tuple[str, ...]:
    """Return the names of the parameters of a query, in the order of the text.

    By default these are the variables that are written with `$`; else the variables with certain
    `names`.

    >>> from streamsparql.translator.parse import parse
    >>> text = "SELECT ?x { ?x <p> $value FILTER(?x != $other) }"
    >>> parameters_of(parse(text), text)
    ('value', 'other')
    """
    marked: dict[str, s.Var] = {}
    plain: dict[str, s.Var] = {}
    for node in query.walk():
        if isinstance(node, s.Var):
            is_marked = text[node.span.start] == "$" if names is None else node.name in names
            (marked if is_marked else plain).setdefault(node.name, node)
    for name in names or ():
        if name not in marked:
            raise QueryError(f"unknown parameter ${name}: the text has no variable of this name")
    for name, node in marked.items():
        if name in plain:
            raise QueryError(
                f"?{name} and ${name}: a parameter and a variable with the same name",
                node.span,
                hint=f"rename one of them, or write ${name} everywhere",
            ).about(text)
    for place, node in _bound(query):
        if node.name in marked:
            raise QueryError(
                f"{place} the parameter ${node.name}: it is a constant",
                node.span,
                hint=f"write ?{node.name}; with parameters=(), ${node.name} is a variable, too",
            ).about(text)
    return tuple(marked)


def _bound(query: s.QueryUnit) -> Iterator[tuple[str, s.Var]]:
    """Yield the variables at places where no constant may stand."""
    for node in query.walk():
        match node:
            case (
                s.SelectItem(variable=s.Var() as variable)
                | s.BareAggregate(variable=s.Var() as variable)
            ):
                yield "SELECT cannot project", variable
            case s.BindClause(variable=variable) | s.AggregationPattern(variable=variable):
                yield "BIND and AGGREGATE cannot bind", variable
            case s.InlineData(variables=variables):
                yield from (("VALUES cannot bind", each) for each in variables)
            case s.GroupKey(expression=s.Var() as variable, variable=None):
                yield "GROUP BY cannot group by", variable
            case s.GroupKey(variable=s.Var() as variable):
                yield "GROUP BY cannot bind", variable
            case (
                s.GraphPattern(name=s.Var() as variable) | s.StreamPattern(name=s.Var() as variable)
            ):
                yield "GRAPH and STREAM cannot read", variable
            case (
                s.WindowPattern(name=s.Var() as variable)
                | s.FromClause(window_name=s.Var() as variable)
            ):
                yield "WINDOW cannot read", variable
            case s.OperatorCall("TIMESTAMP", args=(s.Var() as variable, *_)):
                yield "timestamp() cannot read", variable
        if isinstance(node, s.AggregationPattern):
            yield from (("AGGREGATE cannot group by", key) for key in node.keys)
