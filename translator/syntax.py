"""The syntax tree: what a query's text says, before it means anything.

Nodes are frozen and know where they stand (`span`, which does not count in comparisons). The tree
keeps the writer's structure, with three exceptions that the grammar calls abbreviations: `;` and
`,` lists, `[ .. ]` and `( .. )` become plain triple patterns with blank nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any, Literal

from streamsparql.algebra import node
from streamsparql.errors import Span
from streamsparql.overriding import override

NOWHERE = Span(0, 0)


class Node(node.Node):
    """The base of all syntax nodes."""

    span: Span = field(default=NOWHERE, kw_only=True)

    @override
    def members(self) -> tuple[Any, ...]:
        return super().members()[1:]

    @override
    def walk(self) -> Iterator[Node]:
        for part in super().walk():
            assert isinstance(part, Node)
            yield part


# -- terms and expressions -------------------------------------------------------------------------


class Var(Node):
    """`?name` or `$name`."""

    name: str


class Iri(Node):
    """`<value>`, or `prefix:value` where a prefix is given."""

    value: str
    prefix: str | None = None


class Lit(Node):
    """A literal; `datatype` is None for a plain string."""

    lexical: str
    datatype: Iri | None = None
    language: str | None = None


class Blank(Node):
    """`_:label`; `[]`, `[ .. ]` and the cells of `( .. )` have labels no text can have."""

    label: str


class Operation(Node):
    """An operator or built-in call: `op` is `+`, `&&`, `u-`, `IN`, `STRLEN`, `GETDURATION`, .."""

    op: str
    args: tuple[Expression, ...]


class FunctionCall(Node):
    """A call of a function by its IRI."""

    function: Iri
    args: tuple[Expression, ...]
    distinct: bool = False


class AggregateCall(Node):
    """`COUNT(DISTINCT ?x)`; `argument` is None for `COUNT(*)`."""

    name: str
    argument: Expression | None
    distinct: bool = False
    separator: str | None = None


class Exists(Node):
    """`EXISTS { .. }`; `NOT EXISTS` is its negation."""

    group: Group


Expression = Var | Iri | Lit | Operation | FunctionCall | AggregateCall | Exists


class PathOperation(Node):
    """A property path that is more than an IRI: op is one of ``^ / | * + ? !``."""

    op: str
    args: tuple[Path, ...]


Path = Iri | PathOperation
GraphTerm = Var | Iri | Lit | Blank


# -- windows ---------------------------------------------------------------------------------------


class Duration(Node):
    """A length of time in milliseconds; `unit` is the last one written, None for a bare number."""

    milliseconds: int
    unit: int | None = None


class WindowClause(Node):
    """The base of window clauses. What they mean is up to the dialect."""


class WindowSlide(WindowClause):
    """Streaming SPARQL: `WINDOW RANGE width SLIDE slide`; `slide` may be left out."""

    width: Duration
    slide: Duration | None = None


class WindowFixed(WindowClause):
    """Streaming SPARQL: `WINDOW RANGE width FIXED`."""

    width: Duration


class WindowElems(WindowClause):
    """Streaming SPARQL: `WINDOW ELEMS count`."""

    count: int


class WindowRange(WindowClause):
    """`[RANGE width STEP step]`, or `SLIDE` for `STEP`."""

    width: Duration
    step: Duration | None = None
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


class TriplePattern(Node):
    """One triple pattern; the predicate may be a property path."""

    subject: GraphTerm
    predicate: Var | Path
    object: GraphTerm


class TriplesBlock(Node):
    """Triple patterns in a row."""

    triples: tuple[TriplePattern, ...]


class Group(Node):
    """`{ elements WINDOW .. }`."""

    elements: tuple[Element, ...]
    window: WindowClause | None = None


class GroupOrUnion(Node):
    """`{..} UNION {..}`: two groups, or chains of them."""

    left: Operand
    right: Operand


class Event(Node):
    """EP-SPARQL: `{..} SEQ {..}`; op is SEQ, EQUALS, OPTIONALSEQ or EQUALSOPTIONAL."""

    op: str
    left: Operand
    right: Operand


Operand = Group | GroupOrUnion | Event


class OptionalPattern(Node):
    """`OPTIONAL { .. }`."""

    group: Group


class MinusPattern(Node):
    """`MINUS { .. }`."""

    group: Group


class GraphPattern(Node):
    """`GRAPH name { .. }`."""

    name: Var | Iri
    group: Group


class ServicePattern(Node):
    """`SERVICE name { .. }`."""

    name: Var | Iri
    group: Group


class StreamPattern(Node):
    """CQELS: `STREAM name [window] { .. }`."""

    name: Var | Iri
    window: WindowClause | None
    group: Group


class WindowPattern(Node):
    """RSP-QL: `WINDOW name { .. }`."""

    name: Var | Iri
    group: Group


class Filter(Node):
    """`FILTER condition`."""

    condition: Expression


class Bind(Node):
    """`BIND(expression AS variable)`."""

    expression: Expression
    variable: Var


class InlineData(Node):
    """`VALUES (variables) { rows }`; None stands for UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Lit | None, ...], ...]


class SubSelect(Node):
    """`SELECT ..` inside a group."""

    select: Select
    where: Group
    modifiers: Modifiers
    values: InlineData | None


Element = (
    TriplesBlock
    | Group
    | GroupOrUnion
    | Event
    | OptionalPattern
    | MinusPattern
    | GraphPattern
    | ServicePattern
    | StreamPattern
    | WindowPattern
    | Filter
    | Bind
    | InlineData
    | SubSelect
)


# -- the query -------------------------------------------------------------------------------------


class Declaration(Node):
    """`BASE <iri>` (prefix None) or `PREFIX prefix: <iri>`."""

    prefix: str | None
    iri: Iri


class Register(Node):
    """`REGISTER kind name COMPUTED EVERY every AS`."""

    kind: str
    name: str | Iri | None
    every: Duration | None


class Source(Node):
    """A `FROM` clause: a graph or a stream, default or named, with its window.

    `kind` is how a stream is written: `FROM STREAM <s> ..`, CQELS' `FROM <s> [..]`, RSP-QL's
    `FROM NAMED WINDOW <w> ON <s> [..]`. `slot` is the name that a window has of its own: `<w>`, or
    CQELS' `?w`.
    """

    name: Iri
    named: bool
    kind: Literal["graph", "stream", "bracket", "window"] = "graph"
    window: WindowClause | None = None
    slot: Var | Iri | None = None


class SelectItem(Node):
    """A variable, or `(expression AS variable)`; `loose`: as only EP-SPARQL writes it (R13)."""

    variable: Var
    expression: Expression | None = None
    loose: bool = False


class BareAggregate(Node):
    """`max(?x)` in a SELECT list with no `AS` and brackets: seen in papers, never well formed."""

    aggregate: AggregateCall
    variable: Var | None


class Select(Node):
    """`SELECT modifier items`; no items stands for `*`."""

    items: tuple[SelectItem | BareAggregate, ...]
    modifier: str | None = None

    @property
    def star(self) -> bool:
        """Whether it is `SELECT *`."""
        return not self.items


class AggregationPattern(Node):
    """C-SPARQL: `(?variable, FUNCTION(argument), {keys}) FILTER(..)`."""

    variable: Var
    function: AggregateCall
    keys: tuple[Var, ...]
    filters: tuple[Filter, ...]


class GroupKey(Node):
    """A `GROUP BY` condition: an expression, with a variable where `AS` gives one."""

    expression: Expression
    variable: Var | None = None


class OrderKey(Node):
    """An `ORDER BY` condition."""

    expression: Expression
    descending: bool = False


class Modifiers(Node):
    """Everything after WHERE, in the order it is written."""

    aggregates: tuple[AggregationPattern, ...] = ()
    group: tuple[GroupKey, ...] = ()
    having: tuple[Expression, ...] = ()
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int | None = None


class SelectForm(Node):
    """What a SELECT query asks for."""

    select: Select


class ConstructForm(Node):
    """What a CONSTRUCT query makes."""

    template: tuple[TriplePattern, ...]


class DescribeForm(Node):
    """What a DESCRIBE query describes; no targets stands for `*`."""

    targets: tuple[Var | Iri, ...]


class AskForm(Node):
    """ASK."""


Form = SelectForm | ConstructForm | DescribeForm | AskForm


class Query(Node):
    """A whole query."""

    declarations: tuple[Declaration, ...]
    register: Register | None
    operator: str | None  # RSTREAM, ISTREAM or DSTREAM after SELECT, CONSTRUCT or REGISTER
    form: Form
    sources: tuple[Source, ...]
    where: Group | None
    modifiers: Modifiers
    values: InlineData | None
