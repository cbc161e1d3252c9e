"""From a logical plan back to a query's text, in a dialect that can express it.

`unparse` undoes `create_plan`: it finds out which sources are default ones, which clause a window
came from, which of the operators on top are a SELECT's and which its WHERE's. What it writes is
compiled again and has to give the same plan; so a plan that no text of the dialect stands for, one
that a rule has rewritten for instance, is refused with an error, never written as something else.
"""

from __future__ import annotations

from streamsparql.algebra import event as ev
from streamsparql.algebra import expressions as e
from streamsparql.algebra import shape
from streamsparql.algebra import window as w
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.graph import Ask, Construct, Describe, Graph
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.hidden import Hidden, PlanKind
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.algebra.trampoline import Steps, run
from streamsparql.errors import StreamSparqlError, UnsupportedFeature
from streamsparql.translator.dialects import Dialect, dialect_named
from streamsparql.translator.dialects.detect import TIMESTAMP
from streamsparql.translator.from_clauses import from_clauses, native, window_clause
from streamsparql.translator.pattern_sources import (
    Reading,
    Sources,
    is_block,
    matching_of,
    matchings_of,
    reading_of,
)
from streamsparql.translator.sparql_text import Writer
from streamsparql.translator.translate import translate

Lines = list[str]


def unparse(plan: Plan, dialect: str = "streaming") -> str:
    """A text of the dialect that compiles to this plan; `UnsupportedFeature` where there is none.

    The origin of window grids is no part of a text: compile it with the `origin` that it had.

    >>> plan = translate("SELECT ?s { ?s a <T> OPTIONAL { ?s <p> ?o } }").plan
    >>> print(unparse(plan))
    SELECT ?s
    WHERE {
      ?s a <T> .
      OPTIONAL {
        ?s <p> ?o .
      }
    }
    """
    chosen = dialect_named(dialect)
    origins = {node.origin for node in plan.walk() if isinstance(node, w.TimeWindow)}
    writer = _Unparser(plan, chosen)
    text = _indented([*writer.base(plan), *run(writer.query(plan))])
    try:
        again = translate(text, chosen.name, origin=max(origins, default=0)).plan
    except StreamSparqlError as error:
        raise _refused(chosen, str(error)) from error
    if again != plan:
        raise _refused(chosen, _difference(plan, again))
    return text


def _refused(dialect: Dialect, why: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{dialect.title} has no text for this plan: {why}")


def _difference(plan: Plan, again: Plan) -> str:
    """The first operator at which two plans part."""
    for one, other in zip(plan.walk(), again.walk(), strict=False):
        kind = type(one).__name__
        if type(one) is not type(other):
            return f"its {kind} would be read as {type(other).__name__}"
        for name, value, read in zip(one.field_names, one.members(), other.members(), strict=True):
            if not isinstance(value, tuple | Node) and value != read:
                return f"its {kind} has {name} {value}, which would be read as {read}"
    return f"its {type(plan).__name__} would be read with other parameters"


class _Unparser:
    def __init__(self, plan: Plan, dialect: Dialect) -> None:
        self.dialect = dialect
        self.sources = Sources.of(plan, dialect)
        self.shown: dict[Variable, str] = {e.OCCURRENCE[name]: f"{name}()" for name in e.OCCURRENCE}
        self.write = Writer(variable=self._variable)
        for node in plan.walk():
            if isinstance(node, TriplePatternMatching):
                self._stamps(node)

    def _variable(self, variable: Variable) -> str:
        match variable:
            case Hidden(PlanKind.BLANK, number):
                return f"_:b{number}"
        return self.shown.get(variable, str(variable))

    def _stamps(self, node: TriplePatternMatching) -> None:
        for variable, _ in node.stamps:
            function = f"<{TIMESTAMP}>" if len(variable.of) == len(node.pattern) else "timestamp"
            places = ", ".join(map(self.write.term, variable.of))
            self.shown[variable] = f"{function}({places})"

    # -- the query

    def query(self, plan: Plan) -> Steps[Lines]:
        match plan:
            case Ask(rows):
                return (yield self.form(["ASK"], rows))
            case Construct(template, rows):
                triples = [f"{self.write.pattern(pattern)} ." for pattern in template]
                return (yield self.form(["CONSTRUCT {", *triples, "}"], rows))
            case Describe(resources, rows):
                terms = " ".join(self.write.term(resource) for resource in resources)
                return (yield self.form([f"DESCRIBE {terms or '*'}"], rows))
        return (yield self.select(plan, from_clauses(self.sources, self.dialect)))

    def base(self, plan: Plan) -> Lines:
        """BASE, where a call of IRI() resolves against one."""
        bases = set[str]()
        for node in plan.walk():
            match node:
                case e.Call("IRI", (_, e.Constant(Literal() as base))):
                    bases.add(base.lexical)
        return [f"BASE {IRI(base)}" for base in sorted(bases)]

    def form(self, head: Lines, rows: Plan) -> Steps[Lines]:
        """CONSTRUCT, DESCRIBE and ASK."""
        rows, tail = _without_slice(rows)
        body, values = yield self.rows(rows, {})
        return [*head, *from_clauses(self.sources, self.dialect), *body, *tail, *values]

    def select(self, plan: Plan, clauses: Lines) -> Steps[Lines]:
        """A SELECT, of the query or a subquery."""
        plan, tail = _without_slice(plan)
        modifier = ""
        if isinstance(plan, shape.Distinct | shape.Reduced):
            modifier = "DISTINCT " if isinstance(plan, shape.Distinct) else "REDUCED "
            plan = plan.input
        if not isinstance(plan, shape.Projection):
            raise UnsupportedFeature(f"it shows no variables, its top is {type(plan).__name__}")
        named: dict[Variable, str] = {}
        body, values = yield self.rows(plan.input, named)
        items = [named.get(variable, str(variable)) for variable in plan.variables]
        return [f"SELECT {modifier}{' '.join(items) or '*'}", *clauses, *body, *tail, *values]

    def rows(self, plan: Plan, named: dict[Variable, str]) -> Steps[tuple[Lines, Lines]]:
        """WHERE and the modifiers that act on rows, and the VALUES that comes after all.

        `named` gets the select expressions, as `(expression AS ?v)`.
        """
        keys: tuple[tuple[Expression, bool], ...] = ()
        if isinstance(plan, shape.OrderBy):
            keys, plan = plan.keys, plan.input
        above, top = _spine(plan)
        groups: Lines = []
        having: Lines = []
        values: Lines = []
        if isinstance(top, Aggregation):
            where, groups = yield self.aggregation(top, named)
        elif isinstance(top, ev.Detect | Annotate):
            while above and isinstance(top, _ANNOTATED) and isinstance(above[-1], _FILTERING):
                top = above.pop()  # the filters of AGGREGATE stand in its clause
            where = yield self.where(top)
        else:
            above, where = [], (yield self.where(plan))
        for node in reversed(above):
            yield self.above_groups(node, named, having, values)
        order = [
            ("DESC" if descending else "ASC") + self.write.condition(expression)
            for expression, descending in keys
        ]
        clauses = [("HAVING", having), ("ORDER BY", order)]
        return [
            *where,
            *groups,
            *(f"{word} {' '.join(texts)}" for word, texts in clauses if texts),
        ], values

    def aggregation(
        self, node: Aggregation, named: dict[Variable, str]
    ) -> Steps[tuple[Lines, Lines]]:
        """WHERE and GROUP BY."""
        below = node.input
        while isinstance(below, Mark | shape.Number):
            if isinstance(below, Mark):
                yield self.mark(below)
            below = below.inputs[0]
        bound: list[shape.Extend] = []
        while isinstance(below, shape.Extend) and below.variable in node.keys:
            bound.append(below)
            below = below.input
        while bound and not bound[-1].variable.hidden and not isinstance(below, ev.Detect):
            below = bound.pop()  # a visible key may as well be a BIND of WHERE
        where = yield self.where(below)
        computed = {extend.variable: extend for extend in bound}
        keys = [self.key(key, computed.get(key)) for key in node.keys]
        for variable, call in node.aggregates:
            text = self.write.expression(call)
            if variable.hidden:
                self.shown[variable] = text
            else:
                named[variable] = f"({text} AS {variable})"
        return where, ["GROUP BY " + " ".join(keys)] if keys else []

    def key(self, variable: Variable, bound: shape.Extend | None) -> str:
        """A GROUP BY condition."""
        if bound is None:
            return str(variable)
        text = self.write.expression(bound.expression)
        return f"({text})" if variable.hidden else f"({text} AS {variable})"

    def above_groups(
        self, node: Plan, named: dict[Variable, str], having: Lines, values: Lines
    ) -> Steps[None]:
        """HAVING, VALUES and the expressions of SELECT."""
        match node:
            case Filter(condition):
                having.append(self.write.condition(condition))
            case SemiJoin(_, pattern) | AntiJoin(_, pattern):
                group = yield self.braces(pattern)
                word = "EXISTS" if isinstance(node, SemiJoin) else "NOT EXISTS"
                having.append(f"{word} {_one_line(group)}")
            case Mark():
                yield self.mark(node)
            case Join(_, shape.Table() as table):
                values += self.table(table)
            case shape.Extend(variable, expression):
                named[variable] = f"({self.write.expression(expression)} AS {variable})"

    def where(self, plan: Plan) -> Steps[Lines]:
        """WHERE, with C-SPARQL's AGGREGATE clauses behind it."""
        filters: list[Plan] = []
        while isinstance(plan, _FILTERING) and _is_annotated(plan):
            filters.append(plan)
            plan = plan.inputs[0]
        annotations: list[Annotate] = []
        while isinstance(plan, Annotate):
            annotations.append(plan)
            plan = plan.input
        if isinstance(plan, ev.Detect):
            plan = plan.input
            plan = plan.input if isinstance(plan, ev.Closure) else plan
        group = yield self.braces(plan)
        aggregates = []
        for node in reversed(annotations):
            keys = ", ".join(map(str, node.keys))
            call = self.write.expression(node.aggregate)
            aggregates.append(f"AGGREGATE {{ ({node.variable}, {call}, {{{keys}}}) }}")
        if filters:
            conditions: Lines = []
            for outer in reversed(filters):
                conditions += yield self.filter(outer)
            aggregates[-1] = f"{aggregates[-1][:-2]} {' '.join(conditions)} }}"
        return [f"WHERE {group[0]}", *group[1:], *aggregates]

    # -- groups

    def braces(self, plan: Plan) -> Steps[Lines]:
        """`{ .. }`"""
        lines = yield self.group(plan)
        return ["{", *lines, "}"] if lines else ["{}"]

    def group(self, plan: Plan) -> Steps[Lines]:
        """The clauses of a group, its filters last."""
        if _is_select(plan):
            return (yield self.select(plan, []))
        filters: list[Plan] = []
        while isinstance(plan, Filter | SemiJoin | AntiJoin) or _marks_a_filter(plan, filters):
            filters.append(plan)
            plan = plan.inputs[0]
        lines = yield self.clauses(plan, filters)
        for node in reversed(filters):
            lines = lines + (yield self.filter(node))
        return lines

    def clauses(self, plan: Plan, filters: list[Plan]) -> Steps[Lines]:
        """The clauses that a plan joins and applies, from left to right."""
        steps: list[Plan] = []
        while not is_block(plan) and isinstance(
            plan, Join | LeftJoin | Minus | shape.Extend | Mark | shape.Number
        ):
            steps.append(plan)
            plan = plan.inputs[0]
        lines: Lines = []
        bare = False  # whether the line before is of triples, which would take more of them in
        if plan != shape.UNIT or (steps and isinstance(steps[-1], Join)):
            first = yield self.element(plan, bare)
            lines, bare = list(first), is_block(plan)
        for step in reversed(steps):
            if isinstance(step, Mark):
                yield self.mark(step)
                continue
            if isinstance(step, shape.Number):
                continue
            if isinstance(step, Join):
                lines += yield self.element(step.right, bare)
                bare = is_block(step.right)
                continue
            lines += yield self.act(step)
            bare = False
        return lines

    def act(self, step: Plan) -> Steps[Lines]:
        """OPTIONAL, MINUS or BIND."""
        match step:
            case LeftJoin(_, right, condition, marks):
                for variable, pattern in marks:
                    group = yield self.braces(pattern)
                    self.shown[variable] = f"EXISTS {_one_line(group)}"
                return _block("OPTIONAL", (yield self.optional_side(right, condition)))
            case Minus(_, right):
                return _block("MINUS", (yield self.group(right)))
            case shape.Extend(variable, expression):
                return [f"BIND({self.write.expression(expression)} AS {variable})"]
        raise AssertionError(step)

    def optional_side(self, plan: Plan, condition: Expression | None) -> Steps[Lines]:
        """The group of an optional side: the condition as its filters, which are not the plan's."""
        while isinstance(plan, shape.Number):
            plan = plan.input
        filters: Lines = []
        if condition is not None:
            parts = condition.args if isinstance(condition, e.And) else (condition,)
            filters = [f"FILTER {self.write.condition(part)}" for part in parts]
        alone = isinstance(plan, Filter | SemiJoin | AntiJoin) or (filters and _is_select(plan))
        lines = yield (self.braces(plan) if alone else self.group(plan))
        return [*lines, *filters]

    def element(self, plan: Plan, bare: bool) -> Steps[Lines]:
        """A plan as one clause of a group; `bare` says that triples stand before it."""
        if is_block(plan):
            return self.block(plan, bare)
        match plan:
            case Union((*streams, Graph(Variable() as name, inner))) if [
                _named_stream(branch, name) for branch in streams
            ] == self.named_streams():
                return _block(f"GRAPH {name}", (yield self.group(inner)))
            case Union(branches):
                lines: Lines = []
                for branch in branches:
                    group = yield self.braces(branch)
                    lines = _joined(lines, "UNION", group)
                return lines
            case Graph(name, inner):
                return _block(f"GRAPH {self.write.term(name)}", (yield self.group(inner)))
            case shape.Table() if plan != shape.UNIT:
                return self.table(plan)
            case ev.SeqJoin() | ev.EqJoin() | ev.SeqRightJoin() | ev.EqLeftJoin():
                return (yield self.event(plan))
            case _ if plan == shape.UNIT or isinstance(plan, _GROUPED):
                return (yield self.braces(plan))
        raise UnsupportedFeature(f"no group can hold a {type(plan).__name__}")

    def named_streams(self) -> list[IRI]:
        """The streams that GRAPH ?g ranges over, in order."""
        default = self.sources.default if self.dialect.name == "csparql" else {}
        return list(dict.fromkeys((*default, *self.sources.streams)))

    def event(self, plan: ev.EventPair) -> Steps[Lines]:
        """`{ .. } SEQ { .. }`, with the condition among the filters of the optional side."""
        word, optional = _EVENT[type(plan)]
        sides: list[Lines] = []
        for index, side in enumerate((plan.left, plan.right)):
            if index == optional:
                lines = yield self.optional_side(side, getattr(plan, "condition", None))
            else:
                lines = yield self.group(side)
            sides.append(_block("", lines))
        return _joined(sides[0], word, sides[1])

    def block(self, plan: Plan, bare: bool) -> Lines:
        """Triple patterns and paths, in the braces that say where they are read."""
        matchings = list(matchings_of(plan))
        reading = reading_of(matchings[0])
        lines = []
        for matching in matchings:
            found = matching_of(matching)
            if isinstance(found, Path):
                ends = self.write.term(found.subject), self.write.term(found.object)
                lines.append(f"{ends[0]} {self.write.path(found.path)} {ends[1]} .")
            else:
                lines.append(f"{self.write.pattern(found.pattern)} .")
        window = self.group_window(matchings)
        if window is not None:
            text = native(window)
            if text is None:
                raise UnsupportedFeature(f"no group can have a {type(window).__name__}")
            lines.append(text)
        head = self.head(reading)
        if head is None:
            return _block("", lines) if bare or window is not None else lines
        return _block(head, lines)

    def group_window(self, matchings: list[Plan]) -> w.Window | None:
        """The window of a block's group, told by its patterns, or by a path that has no FROM's."""
        for matching in matchings:
            reading = reading_of(matching)
            if reading.group_window is not None:
                return reading.group_window
            if not isinstance(matching_of(matching), Path):
                continue
            declared = self.sources.default if reading.default else self.sources.streams
            for name, window in reading.streams:
                if name in declared and declared[name] != window:
                    return window
        return None

    def head(self, reading: Reading) -> str | None:
        """GRAPH, STREAM or WINDOW before a group; None where the default graph is read."""
        if reading.default:
            names = [name for name, _ in reading.streams]
            if names == list(self.sources.default) or len(names) != 1:
                return None
            return f"GRAPH {names[0]}"
        if reading.graph is not None:
            name = reading.graph.graphs[0]
            declared = isinstance(name, IRI) and name in self.sources.named
            return f"GRAPH {name}" if declared else None
        ((stream, window),) = reading.streams
        if window is not None and window.name is not None:
            word = "GRAPH" if self.dialect.name == "cqels" else "WINDOW"
            return f"{word} {window.name}"
        if self.dialect.name == "cqels":
            return f"STREAM {stream}{window_clause(window, self.dialect)}"
        return f"GRAPH {stream}"

    def filter(self, node: Plan) -> Steps[Lines]:
        """FILTER; a mark only remembers what its variable stands for."""
        match node:
            case Filter(condition):
                return [f"FILTER {self.write.condition(condition)}"]
            case SemiJoin(_, pattern):
                return _block("FILTER EXISTS", (yield self.group(pattern)))
            case AntiJoin(_, pattern):
                return _block("FILTER NOT EXISTS", (yield self.group(pattern)))
            case Mark():
                yield self.mark(node)
        return []

    def mark(self, node: Mark) -> Steps[None]:
        """What the mark's variable stands for in expressions."""
        group = yield self.braces(node.pattern)
        self.shown[node.variable] = f"EXISTS {_one_line(group)}"

    def table(self, table: shape.Table) -> Lines:
        """VALUES."""
        head = " ".join(map(str, table.variables))
        rows = [
            "(" + " ".join("UNDEF" if x is None else self.write.term(x) for x in row) + ")"
            for row in table.rows
        ]
        return [f"VALUES ({head}) {{", *rows, "}"]


_FILTERING = Filter | SemiJoin | AntiJoin | Mark | shape.Number
_ANNOTATED = Annotate | _FILTERING
_GROUPED = (
    Join
    | LeftJoin
    | Minus
    | Filter
    | SemiJoin
    | AntiJoin
    | shape.Extend
    | shape.Slice
    | shape.Distinct
    | shape.Reduced
    | shape.Projection
)
_EVENT: dict[type[Plan], tuple[str, int | None]] = {
    ev.SeqJoin: ("SEQ", None),
    ev.EqJoin: ("EQUALS", None),
    ev.SeqRightJoin: ("OPTIONALSEQ", 0),
    ev.EqLeftJoin: ("EQUALSOPTIONAL", 1),
}


def _named_stream(branch: Plan, name: Variable) -> IRI | None:
    """The stream at which a branch is GRAPH ?name, beside the graphs that only the caller knows."""
    match branch:
        case Join(shape.Table((variable,), ((IRI() as stream,),)), _) if variable == name:
            return stream
    return None


def _without_slice(plan: Plan) -> tuple[Plan, Lines]:
    if not isinstance(plan, shape.Slice):
        return plan, []
    lines = [] if plan.limit is None else [f"LIMIT {plan.limit}"]
    return plan.input, lines + ([f"OFFSET {plan.offset}"] if plan.offset else [])


def _spine(plan: Plan) -> tuple[list[Plan], Plan]:
    """The operators that can stand above groups, top first, and what they stand on."""
    above: list[Plan] = []
    kinds = shape.Extend | Filter | SemiJoin | AntiJoin | Mark | shape.Number
    while isinstance(plan, kinds) or (
        isinstance(plan, Join) and isinstance(plan.right, shape.Table)
    ):
        above.append(plan)
        plan = plan.inputs[0]
    return above, plan


def _is_annotated(plan: Plan) -> bool:
    """Whether filters lead down to an AGGREGATE clause."""
    while isinstance(plan, _FILTERING):
        plan = plan.inputs[0]
    return isinstance(plan, Annotate)


def _is_select(plan: Plan) -> bool:
    """Whether a plan is a subquery; DISTINCT is also the content of a window that holds a set."""
    kinds = shape.Slice | shape.Distinct | shape.Reduced | shape.Projection
    return isinstance(plan, kinds) and not is_block(plan)


def _marks_a_filter(plan: Plan, filters: list[Plan]) -> bool:
    """Whether a mark or a number belongs to the filter above it."""
    return bool(filters) and isinstance(plan, Mark | shape.Number)


def _block(head: str, lines: Lines) -> Lines:
    head = f"{head} " if head else ""
    return [f"{head}{{", *lines, "}"] if lines else [f"{head}{{}}"]


def _joined(left: Lines, word: str, right: Lines) -> Lines:
    """Two groups with an operator between them."""
    if not left:
        return right
    return [*left[:-1], f"{left[-1]} {word} {right[0]}", *right[1:]]


def _one_line(lines: Lines) -> str:
    return " ".join(lines)


def _indented(lines: Lines) -> str:
    """Lines with the indentation of their braces; it stops growing where nobody reads it."""
    depth, made = 0, []
    for line in lines:
        depth -= line.startswith("}")
        made.append("  " * min(depth, 20) + line)
        depth += line.endswith("{")
    return "\n".join(made)
