"""From a logical plan back to a query's text, in a dialect that can express it.

`unparse` is the inverse of `create_plan`: it determines which sources are default ones, which
clause a window is from, and which of the top operators belong to SELECT and which to WHERE. The
text is compiled again and must lead to the same plan. So a plan that the dialect cannot express,
such as a plan that a rule has rewritten, is refused with an error, never written as another query.
"""

from __future__ import annotations

from streamsparql.algebra import event as ev
from streamsparql.algebra import expressions as e
from streamsparql.algebra import shape
from streamsparql.algebra import window as w
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import reads_entailed
from streamsparql.algebra.filter import AntiJoin, Filter, Mark, SemiJoin
from streamsparql.algebra.graph import Ask, Construct, Describe, Graph
from streamsparql.algebra.group import Aggregation, Annotate
from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.join import Join, LeftJoin, Minus, Union
from streamsparql.algebra.match import TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.path import Path
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, Literal
from streamsparql.algebra.traversal import recursion_headroom
from streamsparql.errors import StreamSparqlError, UnsupportedFeature
from streamsparql.translator.dialects import Dialect, dialect_named
from streamsparql.translator.dialects.base import native_clause
from streamsparql.translator.dialects.detect import TIMESTAMP
from streamsparql.translator.from_clauses import from_clauses, window_clause
from streamsparql.translator.pattern_sources import (
    PatternSources,
    PlanSources,
    is_block,
    matching_of,
    matchings_of,
    sources_of_matching,
)
from streamsparql.translator.sparql_text import Writer
from streamsparql.translator.translate import ENTAILMENTS, translate

Lines = list[str]


def unparse(plan: Plan, dialect: str = "streaming") -> str:
    """Return a text of the dialect that compiles to this plan, or raise `UnsupportedFeature`.

    The origin of window grids and the entailment are not part of the text: compile it with the same
    `origin` and `entailment`.

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
    entailment = ENTAILMENTS[0] if reads_entailed(plan) else None
    writer = _Unparser(plan, chosen)
    with recursion_headroom():
        text = _indented([*writer.base(plan), *writer.query(plan)])
    try:
        origin = max(origins, default=0)
        again = translate(text, chosen.name, origin=origin, entailment=entailment).plan
    except StreamSparqlError as error:
        raise _refused(chosen, str(error)) from error
    if again != plan:
        raise _refused(chosen, _difference(plan, again))
    return text


def _refused(dialect: Dialect, why: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{dialect.title} has no text for this plan: {why}")


def _difference(plan: Plan, again: Plan) -> str:
    """Describe the first operator at which two plans differ."""
    for node, other in zip(plan.walk(), again.walk(), strict=False):
        kind = type(node).__name__
        if type(node) is not type(other):
            return f"its {kind} would be read as {type(other).__name__}"
        members = zip(node.field_names, node.members(), other.members(), strict=True)
        for name, value, read in members:
            if not isinstance(value, tuple | Node) and value != read:
                return f"its {kind} has {name} {value}, which would be read as {read}"
    return f"its {type(plan).__name__} would be read with other parameters"


class _Unparser:
    def __init__(self, plan: Plan, dialect: Dialect) -> None:
        self.dialect = dialect
        self.sources = PlanSources.of(plan, dialect)
        self.shown: dict[Variable, str] = {e.OCCURRENCE[name]: f"{name}()" for name in e.OCCURRENCE}
        self.write = Writer(variable=self._variable)
        for node in plan.walk():
            if isinstance(node, TriplePatternMatching):
                self._name_stamps(node)

    def _variable(self, variable: Variable) -> str:
        match variable:
            case Hidden(PlanKind.BLANK, number):
                return f"_:b{number}"
        return self.shown.get(variable, str(variable))

    def _name_stamps(self, node: TriplePatternMatching) -> None:
        for variable, _ in node.stamps:
            function = f"<{TIMESTAMP}>" if len(variable.of) == len(node.pattern) else "timestamp"
            places = ", ".join(map(self.write.term, variable.of))
            self.shown[variable] = f"{function}({places})"

    # -- the query

    def query(self, plan: Plan) -> Lines:
        match plan:
            case Ask(rows):
                return self.form(["ASK"], rows)
            case Construct(template, rows):
                triples = [f"{self.write.pattern(pattern)} ." for pattern in template]
                return self.form(["CONSTRUCT {", *triples, "}"], rows)
            case Describe(resources, rows):
                terms = " ".join(self.write.term(resource) for resource in resources)
                return self.form([f"DESCRIBE {terms or '*'}"], rows)
        return self.select(plan, from_clauses(self.sources, self.dialect))

    def base(self, plan: Plan) -> Lines:
        """Return the BASE line, if a call of IRI() resolves against a base."""
        bases = set[str]()
        for node in plan.walk():
            match node:
                case e.Call("IRI", (_, e.Constant(Literal() as base))):
                    bases.add(base.lexical)
        return [f"BASE {IRI(base)}" for base in sorted(bases)]

    def form(self, head: Lines, rows: Plan) -> Lines:
        """Return a CONSTRUCT, DESCRIBE or ASK."""
        rows, tail = _without_slice(rows)
        body, values = self.rows(rows, {})
        return [*head, *from_clauses(self.sources, self.dialect), *body, *tail, *values]

    def select(self, plan: Plan, clauses: Lines) -> Lines:
        """Return a SELECT, of the query or a subquery."""
        plan, tail = _without_slice(plan)
        modifier = ""
        if isinstance(plan, shape.Distinct | shape.Reduced):
            modifier = "DISTINCT " if isinstance(plan, shape.Distinct) else "REDUCED "
            plan = plan.input
        if not isinstance(plan, shape.Projection):
            raise UnsupportedFeature(f"expected a Projection on top, not {type(plan).__name__}")
        named: dict[Variable, str] = {}
        body, values = self.rows(plan.input, named)
        items = [named.get(variable, str(variable)) for variable in plan.variables]
        return [f"SELECT {modifier}{' '.join(items) or '*'}", *clauses, *body, *tail, *values]

    def rows(self, plan: Plan, named: dict[Variable, str]) -> tuple[Lines, Lines]:
        """Return WHERE with the modifiers that act on rows, and the VALUES at the end of the query.

        The select expressions are added to `named`, as `(expression AS ?v)`.
        """
        keys: tuple[tuple[Expression, bool], ...] = ()
        if isinstance(plan, shape.OrderBy):
            keys, plan = plan.keys, plan.input
        above, top = _spine(plan)
        groups: Lines = []
        having: Lines = []
        values: Lines = []
        if isinstance(top, Aggregation):
            where, groups = self.aggregation(top, named)
        elif isinstance(top, ev.Detect | Annotate):
            while above and isinstance(top, _ANNOTATED) and isinstance(above[-1], _FILTERING):
                top = above.pop()  # the filters of AGGREGATE belong to its clause
            where = self.where(top)
        else:
            above, where = [], self.where(plan)
        for node in reversed(above):
            self.above_groups(node, named, having, values)
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

    def aggregation(self, node: Aggregation, named: dict[Variable, str]) -> tuple[Lines, Lines]:
        """Return WHERE and GROUP BY."""
        below = node.input
        while isinstance(below, Mark | shape.Number):
            if isinstance(below, Mark):
                self.mark(below)
            below = below.inputs[0]
        bound: list[shape.Extend] = []
        while isinstance(below, shape.Extend) and below.variable in node.keys:
            bound.append(below)
            below = below.input
        while bound and not bound[-1].variable.hidden and not isinstance(below, ev.Detect):
            below = bound.pop()  # a visible key may as well be a BIND of WHERE
        where = self.where(below)
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
        """Return a GROUP BY condition."""
        if bound is None:
            return str(variable)
        text = self.write.expression(bound.expression)
        return f"({text})" if variable.hidden else f"({text} AS {variable})"

    def above_groups(
        self, node: Plan, named: dict[Variable, str], having: Lines, values: Lines
    ) -> None:
        """Add an operator above groups to HAVING, VALUES or the expressions of SELECT."""
        match node:
            case Filter(condition):
                having.append(self.write.condition(condition))
            case SemiJoin(_, pattern) | AntiJoin(_, pattern):
                group = self.braces(pattern)
                word = "EXISTS" if isinstance(node, SemiJoin) else "NOT EXISTS"
                having.append(f"{word} {_one_line(group)}")
            case Mark():
                self.mark(node)
            case Join(_, shape.Table() as table):
                values += self.table(table)
            case shape.Extend(variable, expression):
                named[variable] = f"({self.write.expression(expression)} AS {variable})"

    def where(self, plan: Plan) -> Lines:
        """Return WHERE, followed by C-SPARQL's AGGREGATE clauses."""
        filters: list[Plan] = []
        if _is_annotated(plan):
            while isinstance(plan, _FILTERING):
                filters.append(plan)
                plan = plan.inputs[0]
        annotations: list[Annotate] = []
        while isinstance(plan, Annotate):
            annotations.append(plan)
            plan = plan.input
        if isinstance(plan, ev.Detect):
            plan = plan.input
            plan = plan.input if isinstance(plan, Closure) else plan
        group = self.braces(plan)
        aggregates = []
        for node in reversed(annotations):
            keys = ", ".join(map(str, node.keys))
            call = self.write.expression(node.aggregate)
            aggregates.append(f"AGGREGATE {{ ({node.variable}, {call}, {{{keys}}}) }}")
        if filters:
            conditions: Lines = []
            for outer in reversed(filters):
                conditions += self.filter(outer)
            aggregates[-1] = f"{aggregates[-1][:-2]} {' '.join(conditions)} }}"
        return [f"WHERE {group[0]}", *group[1:], *aggregates]

    # -- groups

    def braces(self, plan: Plan) -> Lines:
        """Return a group in braces."""
        lines = self.group(plan)
        return ["{", *lines, "}"] if lines else ["{}"]

    def group(self, plan: Plan) -> Lines:
        """Return the clauses of a group, its filters last."""
        if _is_select(plan):
            return self.select(plan, [])
        filters: list[Plan] = []
        while isinstance(plan, Filter | SemiJoin | AntiJoin) or _marks_a_filter(plan, filters):
            filters.append(plan)
            plan = plan.inputs[0]
        lines = self.clauses(plan)
        for node in reversed(filters):
            lines += self.filter(node)
        return lines

    def clauses(self, plan: Plan) -> Lines:
        """Return the clauses that a plan joins and applies, from left to right."""
        steps: list[Plan] = []
        while not is_block(plan) and isinstance(
            plan, Join | LeftJoin | Minus | shape.Extend | Mark | shape.Number
        ):
            steps.append(plan)
            plan = plan.inputs[0]
        lines: Lines = []
        bare = False  # whether the last lines are triples, which a following block would extend
        if plan != shape.UNIT or (steps and isinstance(steps[-1], Join)):
            first = self.element(plan, bare)
            lines, bare = list(first), is_block(plan)
        for step in reversed(steps):
            if isinstance(step, Mark):
                self.mark(step)
                continue
            if isinstance(step, shape.Number):
                continue
            if isinstance(step, Join):
                lines += self.element(step.right, bare)
                bare = is_block(step.right)
                continue
            lines += self.act(step)
            bare = False
        return lines

    def act(self, step: Plan) -> Lines:
        """Return an OPTIONAL, MINUS or BIND."""
        match step:
            case LeftJoin(_, right, condition, marks):
                for variable, pattern in marks:
                    group = self.braces(pattern)
                    self.shown[variable] = f"EXISTS {_one_line(group)}"
                return _block("OPTIONAL", self.optional_side(right, condition))
            case Minus(_, right):
                return _block("MINUS", self.group(right))
            case shape.Extend(variable, expression):
                return [f"BIND({self.write.expression(expression)} AS {variable})"]
        raise AssertionError(step)

    def optional_side(self, plan: Plan, condition: Expression | None) -> Lines:
        """Return the group of an optional side, with the operator's condition as its filters."""
        while isinstance(plan, shape.Number):
            plan = plan.input
        filters: Lines = []
        if condition is not None:
            parts = condition.args if isinstance(condition, e.And) else (condition,)
            filters = [f"FILTER {self.write.condition(part)}" for part in parts]
        alone = isinstance(plan, Filter | SemiJoin | AntiJoin) or (filters and _is_select(plan))
        lines = self.braces(plan) if alone else self.group(plan)
        return [*lines, *filters]

    def element(self, plan: Plan, bare: bool) -> Lines:
        """Return a plan as one clause of a group; `bare` means that triples precede it."""
        if is_block(plan):
            return self.block(plan, bare)
        match plan:
            case Union((*_, Graph(Variable() as name, inner))) if not self.is_union(plan):
                return _block(f"GRAPH {name}", self.group(inner))
            case Union() | ev.SeqJoin() | ev.EqJoin() | ev.SeqRightJoin() | ev.EqLeftJoin():
                return self.chain(plan)
            case Graph(name, inner):
                return _block(f"GRAPH {self.write.term(name)}", self.group(inner))
            case shape.Table() if plan != shape.UNIT:
                return self.table(plan)
            case _ if plan == shape.UNIT or isinstance(plan, _GROUPED):
                return self.braces(plan)
        raise UnsupportedFeature(f"a group cannot have a {type(plan).__name__}")

    def named_streams(self) -> list[IRI]:
        """Return the streams that GRAPH ?g ranges over, in order."""
        default = self.sources.default if self.dialect.graph_reads_default_streams else {}
        return list(dict.fromkeys((*default, *self.sources.streams)))

    def is_union(self, plan: Plan) -> bool:
        """Return whether a plan is a UNION of the query, not a block of triples or a GRAPH ?g."""
        match plan:
            case Union((*streams, Graph(Variable() as name, _))):
                named = [_named_stream(branch, name) for branch in streams]
                return named != self.named_streams()
            case Union():
                return not is_block(plan)
        return False

    def chain(self, plan: Plan) -> Lines:
        """Return a chain of UNION or event operators; its left sides need no braces.

        The condition of an optional operator is among the filters of its optional side.
        """
        links = [plan]
        while self.chained(links[-1].inputs[0], links[-1]):
            links.append(links[-1].inputs[0])
        first = links[-1].inputs[0]
        if isinstance(links[-1], ev.SeqRightJoin):
            lines = _block("", self.optional_side(first, links[-1].condition))
        else:
            lines = self.braces(first)
        for link in reversed(links):
            if isinstance(link, Union):
                for branch in link.branches[1:]:
                    _append(lines, "UNION", self.braces(branch))
            elif isinstance(link, ev.EqLeftJoin):
                side = _block("", self.optional_side(link.right, link.condition))
                _append(lines, "EQUALSOPTIONAL", side)
            else:
                _append(lines, _EVENT[type(link)], self.braces(link.inputs[1]))
        return lines

    def chained(self, left: Plan, link: Plan) -> bool:
        """Return whether the left side of a link is written as a chain itself."""
        if isinstance(link, ev.SeqRightJoin):
            return False  # its left side is a group whose filters are the condition
        if isinstance(left, Union):
            return not isinstance(link, Union) and self.is_union(left)
        return type(left) in _EVENT

    def block(self, plan: Plan, bare: bool) -> Lines:
        """Return triple patterns and paths, in the braces of the sources that they read."""
        matchings = list(matchings_of(plan))
        sources = sources_of_matching(matchings[0])
        lines = []
        for matching in matchings:
            bare_matching = matching_of(matching)
            if isinstance(bare_matching, Path):
                start, end = map(self.write.term, (bare_matching.subject, bare_matching.object))
                lines.append(f"{start} {self.write.path(bare_matching.path)} {end} .")
            else:
                lines.append(f"{self.write.pattern(bare_matching.pattern)} .")
        window = self.group_window(matchings)
        if window is not None:
            text = native_clause(window)
            if text is None:
                raise UnsupportedFeature(f"a group cannot have a {type(window).__name__}")
            lines.append(text)
        head = self.head(sources)
        if head is None:
            return _block("", lines) if bare or window is not None else lines
        return _block(head, lines)

    def group_window(self, matchings: list[Plan]) -> w.Window | None:
        """Return the window of a block's group: of a pattern, or of a path if FROM has another."""
        for matching in matchings:
            sources = sources_of_matching(matching)
            if sources.group_window is not None:
                return sources.group_window
            if not isinstance(matching_of(matching), Path):
                continue
            declared = self.sources.default if sources.default else self.sources.streams
            for name, window in sources.streams:
                if name in declared and declared[name] != window:
                    return window
        return None

    def head(self, sources: PatternSources) -> str | None:
        """Return GRAPH, STREAM or WINDOW before a group; None if it reads the default graph."""
        if sources.default:
            names = [name for name, _ in sources.streams]
            if names == list(self.sources.default) or len(names) != 1:
                return None
            return f"GRAPH {names[0]}"
        if sources.graph is not None:
            name = sources.graph.graphs[0]
            declared = isinstance(name, IRI) and name in self.sources.named
            return f"GRAPH {name}" if declared else None
        ((stream, window),) = sources.streams
        if window is not None and window.name is not None:
            word = "GRAPH" if self.dialect.window_names == "variable" else "WINDOW"
            return f"{word} {window.name}"
        if self.dialect.has_stream_blocks:
            return f"STREAM {stream}{window_clause(window, self.dialect)}"
        return f"GRAPH {stream}"

    def filter(self, node: Plan) -> Lines:
        """Return a FILTER; for a mark, record its text and return no lines."""
        match node:
            case Filter(condition):
                return [f"FILTER {self.write.condition(condition)}"]
            case SemiJoin(_, pattern):
                return _block("FILTER EXISTS", self.group(pattern))
            case AntiJoin(_, pattern):
                return _block("FILTER NOT EXISTS", self.group(pattern))
            case Mark():
                self.mark(node)
        return []

    def mark(self, node: Mark) -> None:
        """Record the text of the mark's variable, for expressions."""
        group = self.braces(node.pattern)
        self.shown[node.variable] = f"EXISTS {_one_line(group)}"

    def table(self, table: shape.Table) -> Lines:
        """Return a VALUES."""
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
_EVENT: dict[type[Plan], str] = {
    ev.SeqJoin: "SEQ",
    ev.EqJoin: "EQUALS",
    ev.SeqRightJoin: "OPTIONALSEQ",
    ev.EqLeftJoin: "EQUALSOPTIONAL",
}


def _named_stream(branch: Plan, name: Variable) -> IRI | None:
    """Return the stream of a branch of GRAPH ?name; None for the branch of the static graphs."""
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
    """Return the operators that can be above groups, top first, and the plan below them."""
    above: list[Plan] = []
    kinds = shape.Extend | Filter | SemiJoin | AntiJoin | Mark | shape.Number
    while isinstance(plan, kinds) or (
        isinstance(plan, Join) and isinstance(plan.right, shape.Table)
    ):
        above.append(plan)
        plan = plan.inputs[0]
    return above, plan


def _is_annotated(plan: Plan) -> bool:
    """Return whether only filters are above an AGGREGATE clause."""
    while isinstance(plan, _FILTERING):
        plan = plan.inputs[0]
    return isinstance(plan, Annotate)


def _is_select(plan: Plan) -> bool:
    """Return whether a plan is a subquery; a DISTINCT over a window is not one."""
    kinds = shape.Slice | shape.Distinct | shape.Reduced | shape.Projection
    return isinstance(plan, kinds) and not is_block(plan)


def _marks_a_filter(plan: Plan, filters: list[Plan]) -> bool:
    """Return whether a mark or a number belongs to the filter above it."""
    return bool(filters) and isinstance(plan, Mark | shape.Number)


def _block(head: str, lines: Lines) -> Lines:
    head = f"{head} " if head else ""
    return [f"{head}{{", *lines, "}"] if lines else [f"{head}{{}}"]


def _append(lines: Lines, word: str, group: Lines) -> None:
    """Append an operator and the group after it."""
    lines[-1] += f" {word} {group[0]}"
    lines += group[1:]


def _one_line(lines: Lines) -> str:
    return " ".join(lines)


def _indented(lines: Lines) -> str:
    """Indent lines by their braces, up to 20 levels."""
    depth, indented = 0, []
    for line in lines:
        depth -= line.startswith("}")
        indented.append("  " * min(depth, 20) + line)
        depth += line.endswith("{")
    return "\n".join(indented)
