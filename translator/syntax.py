"""The syntax tree: the structure of a query's text, before translation.

The classes have the names of the SPARQL grammar: a `FilterClause` is a part of the text, the
algebra's `Filter` is its meaning. Names of group patterns end in Pattern, names of calls in
expressions in Call, those of other parts in Clause, Form, Key or Item.

Nodes are frozen and have their place in the text (`span`, which comparisons ignore). The tree keeps
the structure of the text, except for three abbreviations of the grammar: `;` and `,` lists,
`[ .. ]` and `( .. )` become plain triple patterns with blank nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal

from streamsparql.algebra import node
from streamsparql.errors import Span
from streamsparql.overriding import override

NOWHERE = Span(0, 0)


class SyntaxNode(node.Node):
    """The base of all syntax nodes."""

    span: Span = field(default=NOWHERE, kw_only=True)

    @override
    def members(self) -> tuple[Any, ...]:
        return super().members()[1:]

    @override
    def walk(self) -> Iterator[SyntaxNode]:
        return self.walk_outside()

    def walk_outside(self, *kinds: type[SyntaxNode]) -> Iterator[SyntaxNode]:
        """Yield this node and those below it, but not those below nodes of these kinds."""
        pending: list[node.Node] = [self]
        while pending:
            part = pending.pop()
            assert isinstance(part, SyntaxNode)
            yield part
            if not isinstance(part, kinds):
                pending.extend(reversed(part.parts()))


# -- terms and expressions -------------------------------------------------------------------------


class Var(SyntaxNode):
    """`?name` or `$name`."""

    name: str


class Iri(SyntaxNode):
    """`<value>`, or `prefix:value` if `prefix` is not None."""

    value: str
    prefix: str | None = None


class Lit(SyntaxNode):
    """A literal; `datatype` is None for a plain string."""

    lexical: str
    datatype: Iri | None = None
    language: str | None = None


class Blank(SyntaxNode):
    """`_:label`; `[]`, `[ .. ]` and the cells of `( .. )` have labels that no query can write."""

    label: str


class OperatorCall(SyntaxNode):
    """An operator or a built-in call: `op` is `+`, `&&`, `u-`, `IN`, `STRLEN`, `GETDURATION`, .."""

    op: str
    args: tuple[SyntaxExpression, ...]


class FunctionCall(SyntaxNode):
    """A call of a function by its IRI."""

    function: Iri
    args: tuple[SyntaxExpression, ...]
    distinct: bool = False


class AggregateCall(SyntaxNode):
    """`COUNT(DISTINCT ?x)`; `argument` is None for `COUNT(*)`."""

    name: str
    argument: SyntaxExpression | None
    distinct: bool = False
    separator: str | None = None


class ExistsCall(SyntaxNode):
    """`EXISTS { .. }`; `NOT EXISTS` is its negation."""

    group: GroupPattern


SyntaxExpression = Var | Iri | Lit | OperatorCall | FunctionCall | AggregateCall | ExistsCall


class PathOperation(SyntaxNode):
    """A property path that is more than an IRI: op is one of ``^ / | * + ? !``."""

    op: str
    args: tuple[PropertyPath, ...]


PropertyPath = Iri | PathOperation
GraphTerm = Var | Iri | Lit | Blank


# -- windows ---------------------------------------------------------------------------------------


class DurationLiteral(SyntaxNode):
    """A duration in milliseconds; `unit` is the unit written last, None for a bare number."""

    milliseconds: int
    unit: int | None = None


class WindowClause(SyntaxNode):
    """The base of window clauses. Their meaning depends on the dialect."""


class WindowSlide(WindowClause):
    """Streaming SPARQL: `WINDOW RANGE width SLIDE slide`; `SLIDE` is optional."""

    width: DurationLiteral
    slide: DurationLiteral | None = None


class WindowFixed(WindowClause):
    """Streaming SPARQL: `WINDOW RANGE width FIXED`."""

    width: DurationLiteral


class WindowElems(WindowClause):
    """Streaming SPARQL: `WINDOW ELEMS count`."""

    count: int


class WindowRange(WindowClause):
    """`[RANGE width STEP step]`, or `SLIDE` for `STEP`."""

    width: DurationLiteral
    step: DurationLiteral | None = None
    tumbling: bool = False


class WindowRows(WindowClause):
    """`[RANGE TRIPLES count STEP step]`, `[TRIPLES n]`, `[ELEMENTS n]`, `[ROWS n]`."""

    count: int
    step: int | None = None


class WindowNow(WindowClause):
    """`[NOW]`."""


class WindowAll(WindowClause):
    """`[ALL]`."""


class WindowInThePast(WindowClause):
    """SPARQLstream, a sixth language: `[NOW - 10 S SLIDE 1 S]`, `[FROM NOW-PT2H TO NOW-PT1H]`."""


# -- patterns --------------------------------------------------------------------------------------


class TriplePath(SyntaxNode):
    """One triple pattern; the predicate may be a property path."""

    subject: GraphTerm
    predicate: Var | PropertyPath
    object: GraphTerm


class TriplesBlock(SyntaxNode):
    """Consecutive triple patterns."""

    triples: tuple[TriplePath, ...]


class GroupPattern(SyntaxNode):
    """`{ elements WINDOW .. }`."""

    elements: tuple[GroupElement, ...]
    window: WindowClause | None = None


class UnionPattern(SyntaxNode):
    """`{..} UNION {..}`. A chain is a left-deep tree; `operand_chain` lists its links."""

    left: GroupOperand
    right: GroupPattern


class EventPattern(SyntaxNode):
    """EP-SPARQL: `{..} SEQ {..}`; op is SEQ, EQUALS, OPTIONALSEQ or EQUALSOPTIONAL."""

    op: str
    left: GroupOperand
    right: GroupPattern


GroupOperand = GroupPattern | UnionPattern | EventPattern


class OptionalPattern(SyntaxNode):
    """`OPTIONAL { .. }`."""

    group: GroupPattern


class MinusPattern(SyntaxNode):
    """`MINUS { .. }`."""

    group: GroupPattern


class GraphPattern(SyntaxNode):
    """`GRAPH name { .. }`."""

    name: Var | Iri
    group: GroupPattern


class ServicePattern(SyntaxNode):
    """`SERVICE name { .. }`."""

    name: Var | Iri
    group: GroupPattern


class StreamPattern(SyntaxNode):
    """CQELS: `STREAM name [window] { .. }`."""

    name: Var | Iri
    window: WindowClause | None
    group: GroupPattern


class WindowPattern(SyntaxNode):
    """RSP-QL: `WINDOW name { .. }`."""

    name: Var | Iri
    group: GroupPattern


class FilterClause(SyntaxNode):
    """`FILTER condition`."""

    condition: SyntaxExpression


class BindClause(SyntaxNode):
    """`BIND(expression AS variable)`."""

    expression: SyntaxExpression
    variable: Var


class InlineData(SyntaxNode):
    """`VALUES (variables) { rows }`; None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Lit | None, ...], ...]


class SubSelect(SyntaxNode):
    """`SELECT ..` inside a group."""

    select: SelectClause
    where: GroupPattern
    modifiers: Modifiers
    values: InlineData | None


GroupElement = (
    TriplesBlock
    | GroupPattern
    | UnionPattern
    | EventPattern
    | OptionalPattern
    | MinusPattern
    | GraphPattern
    | ServicePattern
    | StreamPattern
    | WindowPattern
    | FilterClause
    | BindClause
    | InlineData
    | SubSelect
)


# -- the query -------------------------------------------------------------------------------------


class Declaration(SyntaxNode):
    """`BASE <iri>` (prefix None) or `PREFIX prefix: <iri>`."""

    prefix: str | None
    iri: Iri


class RegisterClause(SyntaxNode):
    """`REGISTER kind name COMPUTED EVERY every AS`."""

    kind: str
    name: str | Iri | None
    every: DurationLiteral | None


class FromClause(SyntaxNode):
    """`FROM ..`: a graph or a stream, default or named, with its window.

    `kind` is how a stream is written: `FROM STREAM <s> ..`, CQELS' `FROM <s> [..]`, RSP-QL's
    `FROM NAMED WINDOW <w> ON <s> [..]`. `window_name` is `<w>` there, or CQELS' `?w`.
    """

    name: Iri
    named: bool
    kind: Literal["graph", "stream", "bracket", "window"] = "graph"
    window: WindowClause | None = None
    window_name: Var | Iri | None = None


class SelectItem(SyntaxNode):
    """A variable, or `(expression AS variable)`; `loose` if in EP-SPARQL's own syntax (R13)."""

    variable: Var
    expression: SyntaxExpression | None = None
    loose: bool = False


class BareAggregate(SyntaxNode):
    """`max(?x)` in a SELECT list without `AS` and brackets, as in some papers: always an error."""

    aggregate: AggregateCall
    variable: Var | None


class SelectClause(SyntaxNode):
    """`SELECT modifier items`; without items it is `SELECT *`."""

    items: tuple[SelectItem | BareAggregate, ...]
    modifier: str | None = None

    @property
    def star(self) -> bool:
        """Whether it is `SELECT *`."""
        return not self.items


class AggregationPattern(SyntaxNode):
    """C-SPARQL: `(?variable, FUNCTION(argument), {keys}) FILTER(..)`."""

    variable: Var
    function: AggregateCall
    keys: tuple[Var, ...]
    filters: tuple[FilterClause, ...]


class GroupKey(SyntaxNode):
    """A `GROUP BY` condition: an expression, with a variable if it has an `AS`."""

    expression: SyntaxExpression
    variable: Var | None = None


class OrderKey(SyntaxNode):
    """An `ORDER BY` condition."""

    expression: SyntaxExpression
    descending: bool = False


class Modifiers(SyntaxNode):
    """Everything after WHERE, in the order it is written."""

    aggregates: tuple[AggregationPattern, ...] = ()
    group: tuple[GroupKey, ...] = ()
    having: tuple[SyntaxExpression, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int | None = None


class SelectForm(SyntaxNode):
    """The form of a SELECT query: its columns."""

    select: SelectClause


class ConstructForm(SyntaxNode):
    """The form of a CONSTRUCT query: the template that it instantiates for each row."""

    template: tuple[TriplePath, ...]


class DescribeForm(SyntaxNode):
    """The form of a DESCRIBE query; without targets it is `DESCRIBE *`."""

    targets: tuple[Var | Iri, ...]


class AskForm(SyntaxNode):
    """The form of an ASK query."""


Form = SelectForm | ConstructForm | DescribeForm | AskForm


class QueryUnit(SyntaxNode):
    """A whole query."""

    declarations: tuple[Declaration, ...]
    register: RegisterClause | None
    operator: str | None  # RSTREAM, ISTREAM or DSTREAM after SELECT, CONSTRUCT or REGISTER
    form: Form
    sources: tuple[FromClause, ...]
    where: GroupPattern | None
    modifiers: Modifiers
    values: InlineData | None


# -- chains ----------------------------------------------------------------------------------------


def operand_chain(
    operand: GroupOperand,
) -> tuple[GroupPattern, list[UnionPattern | EventPattern]]:
    """Return the first group of a chain of UNION, SEQ .., and the links that follow it, in order.

    A chain may have thousands of links and is a left-deep tree, so passes loop over its links.
    """
    links: list[UnionPattern | EventPattern] = []
    while not isinstance(operand, GroupPattern):
        links.append(operand)
        operand = operand.left
    return operand, links[::-1]


ARITHMETIC = ("+", "-", "*", "/")


def operator_chain(call: OperatorCall) -> tuple[SyntaxExpression, list[OperatorCall]]:
    """Return the first operand of a chain such as `?a + ?b - ?c`, and the operators that follow it.

    The first operand of each of these operators is the part of the chain before it.
    """
    links: list[OperatorCall] = []
    first: SyntaxExpression = call
    while isinstance(first, OperatorCall) and first.op in ARITHMETIC:
        links.append(first)
        first = first.args[0]
    return first, links[::-1]
