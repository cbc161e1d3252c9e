"""The title of each operator: its parameters on one line, with the query's prefixes."""

from __future__ import annotations

from streamsparql.algebra import align, event, filter, graph, group, join, match, path, shape
from streamsparql.algebra import window as w
from streamsparql.algebra.access import AccessGraph, AccessStream, Merge
from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import Entailed, Entailing
from streamsparql.algebra.inputs import DEFAULT_STREAM
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.terms import IRI, Term
from streamsparql.look.explain.boxes.phrases import MAX_VALUES_ROWS, with_units
from streamsparql.translator.sparql_text import Writer


def title(plan: Plan, write: Writer) -> str:
    """Return the title of an operator's box.

    >>> title(shape.Slice(0, 10, (), shape.UNIT), Writer())
    'limit 10'
    """
    match plan:
        case AccessStream() | AccessGraph() | w.Window():
            return _source(plan, write)
        case Entailed():
            return "RDFS"
        case Entailing(pattern):
            return write.pattern(pattern)
        case align.Align():
            return _align(plan)
        case match.TriplePatternMatching(pattern, _, stamps):
            binds = [write.variable(stamp.variable) for stamp in stamps]
            return _joined(write.pattern(pattern), _prefixed("binds", ", ".join(binds)))
        case path.Path(subject, expression, value):
            return f"{write.term(subject)} {write.path(expression)} {write.term(value)}"
        case filter.Filter(condition):
            return write.condition(condition)
        case filter.Mark(variable) | shape.Number(variable):
            return write.variable(variable)
        case filter.SemiJoin():
            return "EXISTS"
        case filter.AntiJoin():
            return "NOT EXISTS"
        case join.LeftJoin(_, _, condition) if condition is not None:
            return write.condition(condition)
        case event.EventPair():
            return _event(plan, write)
        case Closure(stream):
            return _stream(stream, write)
        case graph.Graph(name):
            return write.term(name)
        case graph.Construct(template):
            return " . ".join(map(write.pattern, template)) or "no triples"
        case graph.Describe(resources):
            return " ".join(map(write.term, resources)) or "no resources"
        case group.Aggregation() | group.Annotate():
            return _grouped(plan, write)
        case shape.Table() | shape.Extend() | shape.Projection() | shape.OrderBy() | shape.Slice():
            return _shaped(plan, write)
        case Merge() | match.BasicGraphPattern() | join.Join() | join.LeftJoin() | join.Minus():
            return ""
        case join.Union() | shape.Distinct() | shape.Reduced() | graph.Ask() | event.Detect():
            return ""
    raise AssertionError(plan)


def _source(plan: AccessStream | AccessGraph | w.Window, write: Writer) -> str:
    match plan:
        case AccessStream(stream, stamped):
            return _joined(_stream(stream, write), "stamped" if stamped else "")
        case AccessGraph(graphs, background, stamped):
            names = ["default graph"] * background + [write.term(name) for name in graphs]
            return _joined(" + ".join(names) or "no graph", "stamped" if stamped else "")
    text = _window(plan)
    if isinstance(plan, w.TimeWindow) and plan.origin:
        text = _joined(text, f"origin {plan.origin}")
    if plan.name is None:
        return text
    name = write.iri(IRI(plan.name[1:-1])) if plan.name.startswith("<") else plan.name
    return f"{name}: {text}" if text else name


def _align(plan: align.Align) -> str:
    period = f"every {with_units(plan.period)}" + f", origin {plan.origin}" * bool(plan.origin)
    closing = "just before the report" * plan.closing
    return _joined(period, closing, "equal rows consolidated" * plan.consolidate)


def _stream(stream: IRI, write: Writer) -> str:
    return "default stream" if stream == DEFAULT_STREAM else write.iri(stream)


def _window(plan: w.Window) -> str:
    match plan:
        case w.SlidingDeltaWindow():
            return f"range {with_units(plan.width)}, slide {with_units(plan.slide)}"
        case w.FixedWindow():
            return f"range {with_units(plan.width)}"
        case w.SteppedWindow():
            edges = "[from, to)" if plan.closed == "left" else "(from, to]"
            return f"range {with_units(plan.width)}, step {with_units(plan.step)}, {edges}"
        case w.SlidingTupleWindow():
            return f"last {_elements(plan.count)}"
        case w.SteppedTupleWindow():
            return f"last {_elements(plan.count)}, step {plan.step}"
        case w.NowWindow() | w.UnboundedWindow():
            return ""
    raise AssertionError(plan)


def _elements(count: int) -> str:
    return "element" if count == 1 else f"{count} elements"


def _event(plan: event.EventPair, write: Writer) -> str:
    match plan:
        case event.SeqRightJoin(_, _, condition) | event.EqLeftJoin(_, _, condition):
            word = "OPTIONALSEQ" if isinstance(plan, event.SeqRightJoin) else "EQUALSOPTIONAL"
            return word if condition is None else f"{word} {write.condition(condition)}"
        case event.SeqJoin():
            return "SEQ"
        case event.EqJoin():
            return "EQUALS"
        case event.NeverBefore(_, _, condition):
            return "" if condition is None else write.condition(condition)
        case event.SeqWithout():
            return "SEQ"
    raise AssertionError(plan)


def _grouped(plan: group.Aggregation | group.Annotate, write: Writer) -> str:
    match plan:
        case group.Aggregation(_, aggregates):
            computed = aggregates
        case group.Annotate(variable, call):
            computed = ((variable, call),)
    by = f"by {write.variables(plan.keys)}" if plan.keys else "one group"
    bound = [f"{write.variable(v)} := {write.expression(call)}" for v, call in computed]
    return f"{by}: {', '.join(bound)}" if bound else by


def _shaped(
    plan: shape.Table | shape.Extend | shape.Projection | shape.OrderBy | shape.Slice, write: Writer
) -> str:
    match plan:
        case shape.Table(variables, rows):
            head = write.variables(variables) or "no variables"
            return f"{head}: {_rows(rows, write)}"
        case shape.Extend(variable, expression):
            return f"{write.variable(variable)} := {write.expression(expression)}"
        case shape.Projection(variables):
            return write.variables(variables) or "no variables"
        case shape.OrderBy(keys, columns):
            order = (("DESC " if down else "") + write.expression(key) for key, down in keys)
            return _joined(*order, _prefixed("ties by", write.variables(columns)))
        case shape.Slice(offset, limit, columns):
            first = f"offset {offset}" if offset else ""
            last = "" if limit is None else f"limit {limit}"
            return _joined(first, last, _prefixed("ranked by", write.variables(columns)))


def _rows(rows: tuple[tuple[Term | None, ...], ...], write: Writer) -> str:
    texts = [
        "(" + " ".join("UNDEF" if term is None else write.term(term) for term in row) + ")"
        for row in rows[:MAX_VALUES_ROWS]
    ]
    if len(rows) > MAX_VALUES_ROWS:
        texts.append(f"and {len(rows) - MAX_VALUES_ROWS} more")
    return " ".join(texts) or "no rows"


def _joined(*parts: str) -> str:
    return ", ".join(part for part in parts if part)


def _prefixed(word: str, text: str) -> str:
    return f"{word} {text}" if text else ""
