"""A short notation for plans, to build and print the examples of the rules.

>>> plan = Filter(equals("?y", "1"), Join(triples("?x p ?y"), triples("?x q ?z")))
>>> print(sketch(plan))
Filter(?y = 1, Join(?x p ?y, ?x q ?z))
"""

from __future__ import annotations

from typing import Any

from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.algebra.expressions import Bound, Call, Constant, Volatile
from streamsparql.algebra.filter import Filter
from streamsparql.algebra.join import Join
from streamsparql.algebra.match import TriplePattern, TriplePatternMatching
from streamsparql.algebra.node import Node
from streamsparql.algebra.parameter import Parameter
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.shape import Table
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.terms import IRI, Literal, Term, integer
from streamsparql.algebra.window import SlidingDeltaWindow

__all__ = ["Filter", "Join", "equals", "expression", "inline_data", "sketch", "streamed", "triples"]

_DATA = AccessGraph(background=True)


def _place(word: str) -> Term | Variable:
    if word.startswith("?"):
        return Variable(word[1:])
    return integer(int(word)) if word.isdigit() else IRI(word)


def triples(words: str, source: Plan = _DATA) -> TriplePatternMatching:
    """Return a triple pattern over a source; each word is a variable, a number or an IRI."""
    return TriplePatternMatching(TriplePattern(*map(_place, words.split())), source)


def streamed(words: str, stream: str = "s") -> TriplePatternMatching:
    """Return a triple pattern over the last ten milliseconds of a stream."""
    return triples(words, SlidingDeltaWindow(AccessStream(IRI(stream)), 10, 1))


def inline_data(variable: str, *numbers: int) -> Table:
    """Return the VALUES of one variable."""
    return Table((Variable(variable[1:]),), tuple((integer(n),) for n in numbers))


def expression(word: str) -> Expression:
    """Return a variable or a constant."""
    place = _place(word)
    return place if isinstance(place, Variable) else Constant(place)


def equals(one: str, other: str) -> Expression:
    """Return the condition `one = other`."""
    return Call("=", (expression(one), expression(other)))


def sketch(node: Node) -> str:
    """Return a plan or an expression on one line, without the sources of its patterns."""
    return node.fold(_sketch)


def _sketch(node: Node, parts: list[str]) -> str:
    match node:
        case Variable() | Parameter():
            return repr(node)
        case Constant(term):
            return _term(term)
        case Call(str() as function, args) if len(args) == 2 and not function.isalpha():
            return f"{parts[0]} {function} {parts[1]}"
        case Call(function):
            return f"{function}({', '.join(parts)})"
        case Bound() | Volatile():
            return f"{type(node).__name__.upper()}({', '.join(parts)})"
        case TriplePatternMatching(pattern):
            return " ".join(map(_term, pattern))
        case Table():
            rows = " ".join(f"({' '.join(map(_term, row))})" for row in node.rows)
            return f"Table({' '.join(map(repr, node.variables))}: {rows or 'no rows'})"
    texts = iter(parts)
    shown = [_show(value, texts) for value in node.members()]
    return f"{type(node).__name__}({', '.join(text for text in shown if text)})"


def _show(value: Any, texts: Any) -> str:
    if isinstance(value, Node):
        return str(next(texts))
    if isinstance(value, tuple):
        inner = [_show(item, texts) for item in value]
        listed = any(isinstance(item, Node) and not isinstance(item, Variable) for item in value)
        return (", " if listed else " ").join(text for text in inner if text)
    return "" if value in (None, False, "") else str(value)


def _term(term: Any) -> str:
    if isinstance(term, Literal):
        return term.lexical
    return term.value if isinstance(term, IRI) else "UNDEF" if term is None else str(term)
