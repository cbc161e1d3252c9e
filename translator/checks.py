"""Checks of the rules that SPARQL 1.1 states in prose, not in its grammar, and of dialect rules.

| rule                                                                | SPARQL 1.1           |
|---------------------------------------------------------------------|----------------------|
| BIND and AS need a variable that is not in scope yet                | 18.2.1, 19.8 note 12 |
| a grouped query shows keys and aggregates only, and no `*`          | 11.4, 19.8 note 13   |
| aggregates belong in SELECT, HAVING and ORDER BY, not in each other | 11, 19.8 note 11     |
| a blank node label belongs to one basic graph pattern               | 5.1.1, 19.6          |
| a variable is listed once in VALUES                                 | 19.8 note 10         |
| C-SPARQL: an AGGREGATE's variable is new, its others are in WHERE   | EDBT 2010, 2.2       |

(The length of VALUES rows is checked where they are built, prefixes where names are resolved.)
"""

from __future__ import annotations

from collections.abc import Iterator

from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s

InScope = dict[str, None]
"""An ordered set of variable names."""


def check(query: s.QueryUnit) -> None:
    """Raise a `QueryError` for the first rule that a query breaks."""
    _Checker(query).query(query)


class _Checker:
    def __init__(self, query: s.QueryUnit) -> None:
        self.pattern = 0  # the number of the current basic graph pattern
        self.labels: dict[str, int] = {}
        self.window_names = {
            source.window_name.name
            for source in query.sources
            if isinstance(source.window_name, s.Var)
        }

    # -- queries

    def query(self, query: s.QueryUnit) -> None:
        scope: InScope = self.group(query.where) if query.where else {}
        match query.form:
            case s.SelectForm(select):
                self.select(select, query.modifiers, query.values, scope)
            case _:
                self.modifiers(query.modifiers, scope)

    def sub_select(self, query: s.SubSelect) -> InScope:
        scope = self.group(query.where)
        return self.select(query.select, query.modifiers, query.values, scope)

    def select(
        self,
        select: s.SelectClause,
        modifiers: s.Modifiers,
        values: s.InlineData | None,
        scope: InScope,
    ) -> InScope:
        """Check a SELECT; return the names that it shows."""
        keys = self.modifiers(modifiers, scope)
        if values is not None:
            scope = scope | self.inline_data(values)
        scope = scope | {p.variable.name: None for p in modifiers.aggregates}
        grouped = bool(modifiers.group) or any(
            _aggregates(e)
            for e in (
                *(item.expression for item in select.items if isinstance(item, s.SelectItem)),
                *modifiers.having,
                *(key.expression for key in modifiers.order),
            )
            if e is not None
        )
        if select.star:
            if grouped:
                raise QueryError(
                    "SELECT * shows all variables, but a grouped query has only its keys",
                    select.span,
                    hint="list the keys, and aggregates such as (COUNT(?x) AS ?n)",
                )
            return scope
        shown: InScope = {}
        for item in select.items:
            self.select_item(item, scope, keys if grouped else None, shown)
        return shown

    def select_item(
        self,
        item: s.SelectItem | s.BareAggregate,
        scope: InScope,
        keys: InScope | None,
        shown: InScope,
    ) -> None:
        if isinstance(item, s.BareAggregate):
            raise _bare(item)
        name = item.variable.name
        self.no_window_name(item.variable)
        if item.expression is None:
            if keys is not None and name not in keys:
                raise _ungrouped(item.variable)
        else:
            if keys is not None and name in keys and name not in scope:
                raise _already_bound(
                    item.variable, f"write GROUP BY (.. AS ?{name}), and select ?{name}"
                )
            if name in scope or name in shown or (keys is not None and name in keys):
                raise _already_bound(item.variable, "AS needs a new variable")
            if keys is not None:
                for variable in _outside_aggregates(item.expression):
                    if variable.name not in keys and variable.name not in shown:
                        raise _ungrouped(variable)
            self.expression(item.expression, aggregates=True)
        shown[name] = None

    def modifiers(self, modifiers: s.Modifiers, scope: InScope) -> InScope:
        """Check everything after WHERE; return the names of the grouping keys."""
        self.aggregation_patterns(modifiers.aggregates, scope)
        keys: InScope = {}
        for key in modifiers.group:
            self.expression(key.expression)
            if key.variable is not None:
                self.no_window_name(key.variable)
                if key.variable.name in scope or key.variable.name in keys:
                    raise _already_bound(key.variable, "AS needs a new variable")
                keys[key.variable.name] = None
            elif isinstance(key.expression, s.Var):
                keys[key.expression.name] = None
        for condition in modifiers.having:
            self.expression(condition, aggregates=True)
        for order in modifiers.order:
            self.expression(order.expression, aggregates=True)
        return keys

    def aggregation_patterns(
        self, patterns: tuple[s.AggregationPattern, ...], scope: InScope
    ) -> None:
        bound: InScope = {}
        for pattern in patterns:
            name = pattern.variable.name
            if name in scope or name in bound:
                raise _already_bound(pattern.variable, "AGGREGATE needs a new variable")
            bound[name] = None
            for variable in (*pattern.keys, *_variables(pattern.function)):
                if variable.name not in scope:
                    raise QueryError(
                        f"?{variable.name} is not bound in WHERE",
                        variable.span,
                        hint="an AGGREGATE groups and sums variables of WHERE",
                    )
            if pattern.function.argument is not None:
                self.expression(pattern.function.argument)
            for filter_ in pattern.filters:
                self.expression(filter_.condition)

    # -- patterns

    def group(self, group: s.GroupPattern) -> InScope:
        """Check a group; return the names in scope at its end."""
        self.pattern += 1
        scope: InScope = {}
        for element in group.elements:
            match element:
                case s.TriplesBlock(triples):
                    scope |= self.triples(triples)
                case s.FilterClause(condition):
                    self.expression(condition)
                case _:
                    self.pattern += 1
                    scope |= self.element(element, scope)
                    self.pattern += 1
        self.pattern += 1
        return scope

    def element(self, element: s.GroupElement, scope: InScope) -> InScope:
        match element:
            case s.GroupPattern():
                return self.group(element)
            case s.OptionalPattern(group):
                return self.group(group)
            case s.MinusPattern(group):
                self.group(group)
                return {}
            case s.UnionPattern() | s.EventPattern():
                first, links = s.operand_chain(element)
                bound = self.group(first)
                for link in links:
                    bound |= self.group(link.right)
                return bound
            case s.GraphPattern(name, group) | s.WindowPattern(name, group):
                return self.group(group) | self.graph_name(name)
            case s.StreamPattern(name, _, group):
                if isinstance(name, s.Var):
                    raise UnsupportedFeature(
                        f"STREAM ?{name.name}: a variable cannot name the stream of a STREAM block",
                        name.span,
                        hint="write STREAM <iri> [RANGE ..] { .. }",
                    )
                return self.group(group)
            case s.ServicePattern():
                raise UnsupportedFeature(
                    "SERVICE is not supported: other endpoints are not queried",
                    element.span,
                    hint="load the data, pass it as graphs={iri: source}, and read it with GRAPH",
                )
            case s.BindClause(expression, variable):
                self.no_window_name(variable)
                self.expression(expression)
                if variable.name in scope:
                    raise _already_bound(variable, "BIND needs a variable that is new in its group")
                return {variable.name: None}
            case s.InlineData():
                return self.inline_data(element)
            case s.SubSelect():
                return self.sub_select(element)
        raise AssertionError(element)

    def triples(self, triples: tuple[s.TriplePath, ...]) -> InScope:
        names: InScope = {}
        for triple in triples:
            for node in (triple.subject, triple.predicate, triple.object):
                if isinstance(node, s.Var):
                    self.no_window_name(node)
                    names[node.name] = None
                elif isinstance(node, s.Blank):
                    if self.labels.setdefault(node.label, self.pattern) != self.pattern:
                        raise QueryError(
                            f"the blank node _:{node.label} is used in two patterns",
                            node.span,
                            hint="a blank node belongs to one pattern; use a variable to join two",
                        )
        return names

    def graph_name(self, name: s.Var | s.Iri) -> InScope:
        if isinstance(name, s.Var) and name.name not in self.window_names:
            return {name.name: None}
        return {}

    def no_window_name(self, variable: s.Var) -> None:
        if variable.name in self.window_names:
            raise QueryError(
                f"?{variable.name} names a window of a FROM clause, so it has no value",
                variable.span,
                hint=f"read the window with GRAPH ?{variable.name} {{ .. }}",
            )

    def inline_data(self, data: s.InlineData) -> InScope:
        names: InScope = {}
        for variable in data.variables:
            self.no_window_name(variable)
            if variable.name in names:
                raise QueryError(f"duplicate variable ?{variable.name} in VALUES", variable.span)
            names[variable.name] = None
        return names

    # -- expressions

    def expression(
        self, expression: s.SyntaxExpression, aggregates: bool = False, inside: bool = False
    ) -> None:
        """Check the aggregates and the EXISTS patterns in an expression.

        `aggregates` allows aggregates in it; `inside` means that it is an aggregate's argument.
        """
        for node in expression.walk_outside(s.AggregateCall, s.ExistsCall):
            match node:
                case s.Var():
                    self.no_window_name(node)
                case s.FunctionCall(distinct=True):
                    raise UnsupportedFeature(
                        "DISTINCT belongs to aggregates; functions with IRIs are not aggregates",
                        node.span,
                    )
                case s.AggregateCall(name, argument):
                    if not aggregates:
                        raise _misplaced(name, node, inside)
                    if argument is not None:
                        self.expression(argument, inside=True)
                case s.ExistsCall(group):
                    self.group(group)


def _already_bound(variable: s.Var, hint: str) -> QueryError:
    return QueryError(f"?{variable.name} is already bound", variable.span, hint=hint)


def _misplaced(name: str, node: s.AggregateCall, inside: bool) -> QueryError:
    if inside:
        return QueryError(
            f"{name} is inside another aggregate",
            node.span,
            hint="use a subquery: { SELECT ?key (.. AS ?n) { .. } GROUP BY ?key }",
        )
    return QueryError(
        f"{name} is used where there are no groups",
        node.span,
        hint="aggregates belong in SELECT, HAVING or ORDER BY",
    )


def _bare(item: s.BareAggregate) -> QueryError:
    call = item.aggregate
    if call.argument is not None and (inner := _aggregates(call.argument)):
        return _misplaced(inner[0].name, inner[0], True)
    variable = item.variable.name if item.variable else call.name.lower()
    return QueryError(
        "an aggregate in SELECT needs brackets and a name",
        item.span,
        hint=f"write ({call.name}(..) AS ?{variable})",
    )


def _ungrouped(variable: s.Var) -> QueryError:
    return QueryError(
        f"?{variable.name} is not a grouping key, so a group has no single value for it",
        variable.span,
        hint=f"add it to GROUP BY, or use an aggregate such as (SAMPLE(?{variable.name}) AS ?one)",
    )


def _aggregates(expression: s.SyntaxExpression) -> list[s.AggregateCall]:
    """Return the outermost aggregates of an expression, not those of its EXISTS patterns."""
    nodes = expression.walk_outside(s.AggregateCall, s.ExistsCall)
    return [node for node in nodes if isinstance(node, s.AggregateCall)]


def _outside_aggregates(expression: s.SyntaxExpression) -> Iterator[s.Var]:
    nodes = expression.walk_outside(s.AggregateCall, s.ExistsCall)
    return (node for node in nodes if isinstance(node, s.Var))


def _variables(expression: s.SyntaxExpression) -> Iterator[s.Var]:
    nodes = expression.walk_outside(s.ExistsCall)
    return (node for node in nodes if isinstance(node, s.Var))
