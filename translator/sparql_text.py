"""The algebra's terms, patterns, paths and expressions as SPARQL text.

`unparse` writes whole queries with it, `explain` the lines of a plan. The text of a hidden variable
depends on the caller: `explain` shows its name, `unparse` the part of the query that it represents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from streamsparql.algebra import expressions as e
from streamsparql.algebra import path as p
from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import Parameter
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, RDF, XSD, XSD_STRING, BlankNode, Literal, Term
from streamsparql.overriding import override

_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_\-/]*[A-Za-z0-9_\-])?|")
_BARE = {
    XSD + "integer": re.compile(r"[+-]?[0-9]+"),
    XSD + "decimal": re.compile(r"[+-]?[0-9]*\.[0-9]+"),
    XSD + "double": re.compile(r"[+-]?(?:[0-9]+\.[0-9]*|\.?[0-9]+)[eE][+-]?[0-9]+"),
    XSD + "boolean": re.compile(r"true|false"),
}
Show = Callable[[Variable], str]


class Writer:
    """A writer of terms with a set of prefixes; `variable` writes the variables.

    >>> write = Writer({"ex": "http://example.org/"})
    >>> write.term(IRI("http://example.org/a")), write.term(Literal("1", IRI(XSD + "integer")))
    ('ex:a', '1')
    """

    def __init__(self, prefixes: Mapping[str, str] | None = None, variable: Show = str) -> None:
        known = sorted((prefixes or {}).items(), key=lambda item: -len(item[1]))
        self._prefixes = [(prefix, iri) for prefix, iri in known if iri]
        self.variable = variable

    # -- terms and patterns

    def term(self, term: Term | Variable | Parameter) -> str:
        """Return a term, a variable or a parameter as text."""
        match term:
            case Variable():
                return self.variable(term)
            case Parameter():
                return str(term)
            case IRI():
                return self.iri(term)
            case BlankNode():
                return str(term)
        return self.literal(term)

    def iri(self, iri: IRI) -> str:
        """Return an IRI as text, shortened by a prefix that fits."""
        for prefix, start in self._prefixes:
            if iri.value.startswith(start) and _LOCAL.fullmatch(iri.value, len(start)):
                return f"{prefix}:{self.local_name(iri.value[len(start) :])}"
        return str(iri)

    def local_name(self, local: str) -> str:
        """Return the part of an IRI after its prefix, with the escapes that SPARQL requires."""
        return local.replace("/", r"\/")

    def literal(self, literal: Literal) -> str:
        """Return a literal as text, bare if SPARQL parses the bare form to the same literal."""
        bare = _BARE.get(literal.datatype.value)
        if bare is not None and bare.fullmatch(literal.lexical):
            return literal.lexical
        if literal.language is not None or literal.datatype == XSD_STRING:
            return str(literal)
        return f"{Literal(literal.lexical)}^^{self.iri(literal.datatype)}"

    def predicate(self, predicate: Term | Variable | Parameter) -> str:
        """Return a predicate as text; rdf:type is written `a`."""
        return "a" if predicate == IRI(RDF + "type") else self.term(predicate)

    def pattern(self, pattern: TriplePattern) -> str:
        """Return a triple pattern as text."""
        subject, predicate, value = pattern
        return f"{self.term(subject)} {self.predicate(predicate)} {self.term(value)}"

    # -- paths

    def path(self, path: p.PathExpression) -> str:
        """Return a property path as text."""
        text: str = path.fold(self._path)
        return text

    def _path(self, node: Node, parts: list[str]) -> str:
        match node:
            case p.Link(predicate):
                return self.predicate(predicate)
            case p.Inverse():
                return f"^{_grouped(parts[0])}"
            case p.Sequence(p.Sequence()):
                return f"{parts[0]}/{_grouped(parts[1])}"
            case p.Sequence():
                return f"{_grouped(parts[0])}/{_grouped(parts[1])}"
            case p.Alternative(p.Alternative()):
                return f"({parts[0][1:-1]}|{parts[1]})"
            case p.Alternative():
                return f"({parts[0]}|{parts[1]})"
            case p.ZeroOrMore():
                return f"{_grouped(parts[0])}*"
            case p.OneOrMore():
                return f"{_grouped(parts[0])}+"
            case p.ZeroOrOne():
                return f"{_grouped(parts[0])}?"
            case p.NegatedSet(forward, backward):
                there = [self.predicate(iri) for iri in forward or ()]
                back = [f"^{self.predicate(iri)}" for iri in backward or ()]
                return f"!({'|'.join(there + back)})"
        raise AssertionError(node)

    # -- expressions

    def expression(self, expression: Expression) -> str:
        """Return an expression as text, with brackets around each operation."""
        text: str = expression.fold(self._expression)
        return text

    def condition(self, expression: Expression) -> str:
        """Return an expression in brackets, as FILTER and HAVING require it."""
        text = self.expression(expression)
        return text if text.startswith("(") and _closes(text) else f"({text})"

    def _expression(self, node: Node, parts: list[str]) -> str:
        match node:
            case Variable():
                return self.variable(node)
            case Parameter():
                return str(node)
            case e.Constant(term):
                return self.term(term)
            case e.Or():
                return f"({' || '.join(parts)})"
            case e.And():
                return f"({' && '.join(parts)})"
            case e.Not():
                return f"(!{parts[0]})"
            case e.In():
                return f"({parts[0]} IN ({', '.join(parts[1:])}))"
            case e.Bound():
                return f"BOUND({parts[0]})"
            case e.If():
                return f"IF({', '.join(parts)})"
            case e.Coalesce():
                return f"COALESCE({', '.join(parts)})"
            case e.Volatile(function, args):
                return f"{function}({', '.join(parts[: len(args)])})"
            case e.Aggregate():
                return self._aggregate(node, parts)
            case e.Call(function, (e.Call(before), _)) if _chained(before, function):
                return f"({parts[0][1:-1]} {function} {parts[1]})"
            case e.Call(function):
                return self._call(function, parts)
        raise AssertionError(node)

    def _call(self, function: str | IRI, parts: list[str]) -> str:
        if isinstance(function, IRI):
            return f"{self.iri(function)}({', '.join(parts)})"
        if function == "IRI":
            return f"IRI({parts[0]})"  # a second argument is the query's BASE
        if function in ("u+", "u-"):
            return f"({function[1]}({parts[0]}))"
        if function[0].isalpha():
            return f"{function}({', '.join(parts)})"
        return f"({parts[0]} {function} {parts[1]})"

    def _aggregate(self, call: e.Aggregate, parts: list[str]) -> str:
        argument = parts[0] if parts else "*"
        distinct = "DISTINCT " if call.distinct else ""
        separator = ""
        if call.separator is not None:
            separator = f"; SEPARATOR={Literal(call.separator)}"
        return f"{call.function}({distinct}{argument}{separator})"

    def variables(self, variables: Iterable[Variable]) -> str:
        """Return variables as text, with spaces between them."""
        return " ".join(self.variable(variable) for variable in variables)


class DisplayWriter(Writer):
    """A writer for readers: local names are not escaped, so not every text can be parsed.

    >>> prefixes, road = {"": "http://example.org/"}, IRI("http://example.org/road/1")
    >>> print(DisplayWriter(prefixes).iri(road), Writer(prefixes).iri(road))
    :road/1 :road\\/1
    """

    @override
    def local_name(self, local: str) -> str:
        return local


def _chained(before: str | IRI, operator: str | IRI) -> bool:
    """Return whether two operators have equal precedence, as in `?a + ?b - ?c`."""
    return any(before in alike and operator in alike for alike in (("+", "-"), ("*", "/")))


def _grouped(text: str) -> str:
    """Return a path as an operand: in brackets unless it is an IRI or in brackets already."""
    plain = re.fullmatch(r"<[^>]*>|[\w.\-]*:[\w.\-]*|a|!?\([^()]*\)", text)
    return text if plain else f"({text})"


def _closes(text: str) -> bool:
    """Return whether the bracket that opens a text closes at its end."""
    depth = 0
    for index, char in enumerate(
        re.sub(r'"(?:[^"\\]|\\.)*"|<[^<>\s]*>', lambda m: "x" * len(m[0]), text)
    ):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return index == len(text) - 1
    return False
