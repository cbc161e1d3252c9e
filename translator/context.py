"""The state that the steps of one translation share: the dialect, names, and hidden variables.

Hidden variables of each kind are numbered in the order of the text, so that the same text has
the same plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streamsparql.algebra.hidden_variables import Hidden, PlanKind
from streamsparql.algebra.match import Stamp, TriplePattern
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI, BlankNode, Literal, Term
from streamsparql.algebra.window import Window
from streamsparql.errors import Span
from streamsparql.translator import syntax as s
from streamsparql.translator.dialects import Dialect
from streamsparql.translator.dialects.base import Windowing, WindowSetting
from streamsparql.translator.names import Names


@dataclass
class Context:
    """The state of one translation."""

    dialect: Dialect
    names: Names
    origin: int
    entailment: bool = False
    """Whether patterns match what the triples entail (SEMANTICS.md section 9)."""
    stamps: RequestedStamps = field(default_factory=lambda: RequestedStamps())
    spans: dict[int, tuple[Plan, Span]] = field(default_factory=dict)
    unused_windows: dict[int, s.WindowClause] = field(default_factory=dict)
    shared: dict[Any, Plan] = field(default_factory=dict)
    _used: Counter[PlanKind] = field(default_factory=Counter)
    _blanks: dict[str, Variable] = field(default_factory=dict)

    def fresh(self, kind: PlanKind) -> Hidden:
        """Return a new hidden variable of a kind."""
        self._used[kind] += 1
        return Hidden(kind, self._used[kind] - 1)

    def site(self) -> int:
        """Return a new number, for a call of RAND, UUID, STRUUID or BNODE and its row variable."""
        self._used[PlanKind.ROW] += 1
        return self._used[PlanKind.ROW]

    def locate(self, plan: Plan, node: s.SyntaxNode) -> Plan:
        """Record the part of the text that a plan node is from, for messages."""
        self.spans.setdefault(id(plan), (plan, node.span))
        return plan

    def windowing(self, clause: s.WindowClause, name: IRI | Variable | None = None) -> Windowing:
        """Return the window of a clause in this dialect; applying it marks the clause as used."""
        setting = WindowSetting(str(name) if name else None, self.origin)
        window = self.dialect.windowing(clause, setting)
        self.unused_windows[id(clause)] = clause

        def apply(plan: Plan) -> Window:
            self.unused_windows.pop(id(clause), None)
            return window(plan)

        return apply

    def term(self, node: s.GraphTerm) -> Term | Variable:
        """Return a term of a triple pattern; a blank node becomes a hidden variable.

        Equal labels become one variable: the instance mapping of ESWC 2008, Definition 6.
        """
        match node:
            case s.Var(name):
                return Variable(name)
            case s.Iri():
                return self.names.iri(node)
            case s.Lit():
                return self.names.literal(node)
            case s.Blank(label):
                if label not in self._blanks:
                    self._blanks[label] = self.fresh(PlanKind.BLANK)
                return self._blanks[label]

    def value(self, node: s.Iri | s.Lit) -> IRI | Literal:
        """Return the IRI or the literal of a syntax node."""
        return self.names.iri(node) if isinstance(node, s.Iri) else self.names.literal(node)

    def template(self, triples: Iterable[s.TriplePath]) -> tuple[TriplePattern, ...]:
        """Return a CONSTRUCT template, whose blank nodes are new for each row."""
        labels: dict[str, BlankNode] = {}

        def place(node: s.GraphTerm) -> Term | Variable:
            if isinstance(node, s.Blank):
                return labels.setdefault(node.label, BlankNode(f"b{len(labels)}"))
            return self.term(node)

        patterns: list[TriplePattern] = []
        for triple in triples:
            assert isinstance(triple.predicate, s.Var | s.Iri)
            patterns.append(
                TriplePattern(place(triple.subject), place(triple.predicate), place(triple.object))
            )
        return tuple(patterns)


class RequestedStamps:
    """The stamps that a query reads, collected before the patterns that bind them are translated.

    `bound` are those that a pattern binds.
    """

    def __init__(self) -> None:
        self.variables: dict[Variable, set[IRI | None]] = {}
        self.triples: dict[TriplePattern, Hidden] = {}
        self.bound: set[Variable] = set()

    def of_variable(self, variable: Variable, stream: IRI | None) -> Hidden:
        """Return the hidden variable of `timestamp(?x)` or `timestamp(?x, <stream>)`."""
        self.variables.setdefault(variable, set()).add(stream)
        return Hidden(PlanKind.STAMP, of=(variable, stream) if stream else (variable,))

    def of_triple(self, pattern: TriplePattern) -> Hidden:
        """Return the hidden variable of `f:timestamp(s, p, o)`."""
        return self.triples.setdefault(pattern, Hidden(PlanKind.STAMP, of=tuple(pattern)))

    @property
    def any(self) -> bool:
        """Whether the query reads a stamp."""
        return bool(self.variables or self.triples)

    def on(self, pattern: TriplePattern) -> tuple[Stamp, ...]:
        """Return the stamps that a matching of this pattern has to bind."""
        stamps = [
            Stamp(self.of_variable(variable, stream), stream)
            for variable in pattern.variables()
            for stream in sorted(self.variables.get(variable, ()), key=str)
        ]
        if pattern in self.triples:
            stamps.append(Stamp(self.triples[pattern]))
        self.bound.update(stamp.variable for stamp in stamps)
        return tuple(stamps)
