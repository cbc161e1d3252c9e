"""The rules of SPARQL 1.1 that are prose, not grammar, and those of the dialects.

| rule                                                                | SPARQL 1.1           |
|---------------------------------------------------------------------|----------------------|
| BIND and AS need a variable that is not in scope yet                | 18.2.1, 19.8 note 12 |
| a grouped query shows keys and aggregates only, and no `*`          | 11.4, 19.8 note 13   |
| aggregates stand in SELECT, HAVING and ORDER BY, not in each other  | 11, 19.8 note 11     |
| a blank node label belongs to one basic graph pattern               | 5.1.1, 19.6          |
| a variable is listed once in VALUES                                 | 19.8 note 10         |
| C-SPARQL: an AGGREGATE's variable is new, its others are in WHERE   | EDBT 2010, 2.2       |

(The length of VALUES rows is checked where they are built, prefixes where names are resolved.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamsparql.algebra.trampoline import Steps, run
from streamsparql.errors import QueryError, UnsupportedFeature
from streamsparql.translator import syntax as s

Names = dict[str, None]
"""An ordered set of variable names."""


def check(query: s.QueryUnit) -> None:
    """Raises a `QueryError` for the first rule that a query breaks."""
    run(_Checker(query).query(query))


class _Checker:
    def __init__(self, query: s.QueryUnit) -> None:
        self.pattern = 0  # counts basic graph patterns
        self.labels: dict[str, int] = {}
        self.slots = {
            source.slot.name for source in query.sources if isinstance(source.slot, s.Var)
        }

    # -- queries

    def query(self, query: s.QueryUnit) -> Steps[None]:
        scope: Names = (yield self.group(query.where)) if query.where else {}
        match query.form:
            case s.SelectForm(select):
                yield self.select(select, query.modifiers, query.values, scope)
            case _:
                yield self.modifiers(query.modifiers, scope)

    def sub_select(self, query: s.SubSelect) -> Steps[Names]:
        scope = yield self.group(query.where)
        names: Names = yield self.select(query.select, query.modifiers, query.values, scope)
        return names

    def select(
        self,
        select: s.SelectClause,
        modifiers: s.Modifiers,
        values: s.InlineData | None,
        scope: Names,
    ) -> Steps[Names]:
        """The names that a SELECT shows, after its rules are checked."""
        keys = yield self.modifiers(modifiers, scope)
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
        shown: Names = {}
        for item in select.items:
            yield self.select_item(item, scope, keys if grouped else None, shown)
        return shown

    def select_item(
        self,
        item: s.SelectItem | s.BareAggregate,
        scope: Names,
        keys: Names | None,
        shown: Names,
    ) -> Steps[None]:
        if isinstance(item, s.BareAggregate):
            raise _bare(item)
        name = item.variable.name
        if item.expression is None:
            self.no_slot(item.variable)
            if keys is not None and name not in keys:
                raise _ungrouped(item.variable)
        else:
            self.no_slot(item.variable)
            if name in scope or name in shown or (keys is not None and name in keys):
                raise QueryError(
                    f"?{name} has a value already",
                    item.variable.span,
                    hint="AS needs a variable that is new",
                )
            if keys is not None:
                for variable in _outside_aggregates(item.expression):
                    if variable.name not in keys and variable.name not in shown:
                        raise _ungrouped(variable)
            yield self.expression(item.expression, aggregates=True)
        shown[name] = None

    def modifiers(self, modifiers: s.Modifiers, scope: Names) -> Steps[Names]:
        """Checks everything after WHERE; the names of the grouping keys."""
        yield self.aggregation_patterns(modifiers.aggregates, scope)
        keys: Names = {}
        for key in modifiers.group:
            yield self.expression(key.expression)
            if key.variable is not None:
                self.no_slot(key.variable)
                if key.variable.name in scope or key.variable.name in keys:
                    raise QueryError(
                        f"?{key.variable.name} has a value already",
                        key.variable.span,
                        hint="AS needs a variable that is new",
                    )
                keys[key.variable.name] = None
            elif isinstance(key.expression, s.Var):
                keys[key.expression.name] = None
        for condition in modifiers.having:
            yield self.expression(condition, aggregates=True)
        for order in modifiers.order:
            yield self.expression(order.expression, aggregates=True)
        return keys

    def aggregation_patterns(
        self, patterns: tuple[s.AggregationPattern, ...], scope: Names
    ) -> Steps[None]:
        made: Names = {}
        for pattern in patterns:
            name = pattern.variable.name
            if name in scope or name in made:
                raise QueryError(
                    f"?{name} has a value already",
                    pattern.variable.span,
                    hint="AGGREGATE needs a variable that is new",
                )
            made[name] = None
            for variable in (*pattern.keys, *_variables(pattern.function)):
                if variable.name not in scope:
                    raise QueryError(
                        f"?{variable.name} is not bound in WHERE",
                        variable.span,
                        hint="an AGGREGATE groups and sums what WHERE binds",
                    )
            if pattern.function.argument is not None:
                yield self.expression(pattern.function.argument)
            for filter_ in pattern.filters:
                yield self.expression(filter_.condition)

    # -- patterns

    def group(self, group: s.GroupPattern) -> Steps[Names]:
        """The names in scope at the end of a group."""
        self.pattern += 1
        scope: Names = {}
        for element in group.elements:
            match element:
                case s.TriplesBlock(triples):
                    scope |= self.triples(triples)
                    continue
                case s.FilterClause(condition):
                    yield self.expression(condition)
                    continue
            self.pattern += 1
            scope |= yield self.element(element, scope)
            self.pattern += 1
        self.pattern += 1
        return scope

    def element(self, element: s.GroupElement, scope: Names) -> Steps[Names]:
        match element:
            case s.GroupPattern():
                names: Names = yield self.group(element)
                return names
            case s.OptionalPattern(group):
                return (yield self.group(group))
            case s.MinusPattern(group):
                yield self.group(group)
                return {}
            case s.UnionPattern(left, right) | s.EventPattern(_, left, right):
                first = yield self.element(left, {})
                second = yield self.element(right, {})
                return first | second
            case s.GraphPattern(name, group) | s.WindowPattern(name, group):
                inner = yield self.group(group)
                return inner | self.graph_name(name)
            case s.StreamPattern(name, _, group):
                if isinstance(name, s.Var):
                    raise UnsupportedFeature(
                        f"STREAM ?{name.name} ranges over streams that nothing names",
                        name.span,
                        hint="write STREAM <iri> [RANGE ..] { .. }",
                    )
                return (yield self.group(group))
            case s.ServicePattern():
                raise UnsupportedFeature(
                    "SERVICE asks another endpoint, which is not done here",
                    element.span,
                    hint="load the data and give it as graphs={iri: source}; ask for it with GRAPH",
                )
            case s.BindClause(expression, variable):
                self.no_slot(variable)
                yield self.expression(expression)
                if variable.name in scope:
                    raise QueryError(
                        f"?{variable.name} has a value already",
                        variable.span,
                        hint="BIND needs a variable that is new in its group",
                    )
                return {variable.name: None}
            case s.InlineData():
                return self.inline_data(element)
            case s.SubSelect():
                return (yield self.sub_select(element))
        raise AssertionError(element)

    def triples(self, triples: tuple[s.TriplePath, ...]) -> Names:
        found: Names = {}
        for triple in triples:
            for node in (triple.subject, triple.predicate, triple.object):
                if isinstance(node, s.Var):
                    self.no_slot(node)
                    found[node.name] = None
                elif isinstance(node, s.Blank):
                    if self.labels.setdefault(node.label, self.pattern) != self.pattern:
                        raise QueryError(
                            f"the blank node _:{node.label} is used in two patterns",
                            node.span,
                            hint="a blank node belongs to one pattern; use a variable to join two",
                        )
        return found

    def graph_name(self, name: s.Var | s.Iri) -> Names:
        return {name.name: None} if isinstance(name, s.Var) and name.name not in self.slots else {}

    def no_slot(self, variable: s.Var) -> None:
        if variable.name in self.slots:
            raise QueryError(
                f"?{variable.name} names a window of a FROM clause, it has no value",
                variable.span,
                hint=f"read the window with GRAPH ?{variable.name} {{ .. }}",
            )

    def inline_data(self, data: s.InlineData) -> Names:
        names: Names = {}
        for variable in data.variables:
            self.no_slot(variable)
            if variable.name in names:
                raise QueryError(f"?{variable.name} is listed twice", variable.span)
            names[variable.name] = None
        return names

    # -- expressions

    def expression(self, expression: s.SyntaxExpression, aggregates: bool = False) -> Steps[None]:
        """Checks the aggregates and the EXISTS patterns in an expression."""
        pending: list[tuple[s.SyntaxExpression, bool]] = [(expression, aggregates)]
        while pending:
            node, allowed = pending.pop()
            match node:
                case s.Var():
                    self.no_slot(node)
                case s.OperatorCall(_, args):
                    pending.extend((arg, allowed) for arg in reversed(args))
                case s.FunctionCall(_, args, distinct):
                    if distinct:
                        raise UnsupportedFeature(
                            "DISTINCT belongs to aggregates, and none is named by an IRI",
                            node.span,
                        )
                    pending.extend((arg, allowed) for arg in reversed(args))
                case s.AggregateCall(name, argument):
                    if not allowed:
                        raise _misplaced(name, node, aggregates)
                    if argument is not None:
                        pending.append((argument, False))
                case s.ExistsCall(group):
                    yield self.group(group)


def _misplaced(name: str, node: s.AggregateCall, inside: bool) -> QueryError:
    if inside:
        return QueryError(
            f"{name} stands inside another aggregate",
            node.span,
            hint="use a subquery: { SELECT ?key (.. AS ?n) { .. } GROUP BY ?key }",
        )
    return QueryError(
        f"{name} stands where there are no groups",
        node.span,
        hint="aggregates belong in SELECT, HAVING or ORDER BY",
    )


def _bare(item: s.BareAggregate) -> QueryError:
    call = item.aggregate
    if call.argument is not None and any(_aggregates(call.argument)):
        return _misplaced(_aggregates(call.argument)[0].name, _aggregates(call.argument)[0], True)
    variable = item.variable.name if item.variable else call.name.lower()
    return QueryError(
        "an aggregate in SELECT needs brackets and a name",
        item.span,
        hint=f"write ({call.name}(..) AS ?{variable})",
    )


def _ungrouped(variable: s.Var) -> QueryError:
    return QueryError(
        f"?{variable.name} is not the same throughout a group",
        variable.span,
        hint=f"group by it too, or take an aggregate such as (SAMPLE(?{variable.name}) AS ?one)",
    )


def _nodes(
    expression: s.SyntaxExpression, *, into_aggregates: bool
) -> Iterator[s.Var | s.AggregateCall]:
    """The variables and aggregates in an expression, EXISTS patterns left out."""
    pending: list[s.SyntaxExpression] = [expression]
    while pending:
        node = pending.pop()
        match node:
            case s.OperatorCall(_, args) | s.FunctionCall(_, args):
                pending.extend(reversed(args))
            case s.AggregateCall(_, argument):
                yield node
                if into_aggregates and argument is not None:
                    pending.append(argument)
            case s.Var():
                yield node


def _aggregates(expression: s.SyntaxExpression) -> list[s.AggregateCall]:
    found = _nodes(expression, into_aggregates=False)
    return [node for node in found if isinstance(node, s.AggregateCall)]


def _outside_aggregates(expression: s.SyntaxExpression) -> Iterable[s.Var]:
    found = _nodes(expression, into_aggregates=False)
    return (node for node in found if isinstance(node, s.Var))


def _variables(expression: s.SyntaxExpression) -> Iterable[s.Var]:
    found = _nodes(expression, into_aggregates=True)
    return (node for node in found if isinstance(node, s.Var))
