"""CONSTRUCT rules of EP-SPARQL: several in one text, and the closure of a stream under them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from streamsparql.algebra.closure import Closure
from streamsparql.algebra.entailment import reads_entailed
from streamsparql.algebra.graph import Construct
from streamsparql.algebra.partition import reads_stream
from streamsparql.algebra.plan import Plan
from streamsparql.algebra.rule_sets import contradiction
from streamsparql.algebra.terms import IRI
from streamsparql.errors import QueryError, Span, UnsupportedFeature
from streamsparql.translator import syntax as s


class ConstructRule(NamedTuple):
    """A rule, the stream whose triples it derives, and its places in its text."""

    name: str
    text: str
    construct: Construct
    stream: IRI
    form: Span
    spans: Mapping[int, tuple[Plan, Span]]


def check_modifiers(query: s.QueryUnit) -> None:
    """Refuse a rule whose rows change after WHERE."""
    after = query.modifiers
    unsupported = (
        after.group,
        after.having,
        after.aggregates,
        after.limit,
        after.offset,
        query.values,
    )
    if any(part not in ((), None) for part in unsupported):
        raise UnsupportedFeature(
            "a rule's triples become part of the stream, so its rows cannot be changed after WHERE",
            (after if query.values is None else query.values).span,
            hint="move the condition into WHERE, as a FILTER or VALUES",
        )


def create_closure(where: Plan, stream: IRI, rules: Sequence[ConstructRule]) -> Plan:
    """Return WHERE over the stream and all triples that the rules derive from it.

    Derived triples join the first default stream; a WHERE that does not read it needs no closure.
    """
    for rule in rules:
        if rule.stream != stream:
            error = QueryError(
                f"{rule.name} derives triples of the stream {rule.stream}, but the query reads"
                f" {stream}",
                rule.form,
                hint="begin both with the same FROM STREAM",
            )
            raise error.about(rule.text)
    if not rules or not reads_stream(where, stream.value):
        return where
    _check_consistency(stream, rules)
    return Closure(stream, tuple(rule.construct for rule in rules), where)


def _check_consistency(stream: IRI, rules: Sequence[ConstructRule]) -> None:
    """Refuse rules of which one requires the absence of what follows from its own triples."""
    contradicted = contradiction(stream, [rule.construct for rule in rules])
    if contradicted is None:
        return
    pattern, cycle = contradicted
    rule = rules[cycle[0]]
    derived = "triples that may entail a match" if reads_entailed(pattern.input) else "such triples"
    message = f"this pattern is optional in a rule that derives {derived}: its absence would depend"
    if len(cycle) > 1:
        steps = [f"{rules[k].name} feeds {rules[j].name}" for k, j in _pairs(cycle)]
        message = f"this pattern is optional in {rule.name}, and {', '.join(steps)}: its absence"
        message += " would depend"
    _, span = rule.spans.get(id(pattern), (pattern, rule.form))
    raise UnsupportedFeature(
        f"{message} on itself",
        span,
        hint="match earlier events only, with SEQ, or derive another predicate",
    ).about(rule.text)


def _pairs(cycle: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(cycle, (*cycle[1:], cycle[0]), strict=True)


_TOKEN = re.compile(
    r"""#[^\n]*|<[^<>"{}|^`\\\s]*>|\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|[?$]\w+|[\w.-]*:[\w.:-]*|(?P<word>\w+)|(?P<brace>[{}])""",
    re.DOTALL,
)
_PROLOGUE = ("PREFIX", "BASE", "REGISTER")


def split_rules(text: str) -> tuple[str, ...]:
    """Return the rules of a text, one text for each, in which they have the same place.

    The declarations before a rule hold for it, and for those that follow.

    >>> one, two = split_rules("PREFIX : <a> CONSTRUCT {} {} CONSTRUCT {} { :x :y :z }")
    >>> " ".join(two.split())
    'PREFIX : <a> CONSTRUCT {} { :x :y :z }'
    """
    prologues: list[tuple[int, int]] = []
    bodies: list[tuple[int, int]] = []
    depth, start, body = 0, 0, -1
    for token in _TOKEN.finditer(text):
        if token["brace"]:
            depth += 1 if token["brace"] == "{" else -1
        word = (token["word"] or "").upper()
        if depth or word not in ("CONSTRUCT", *_PROLOGUE):
            continue
        if body >= 0:
            bodies.append((body, token.start()))
            start, body = token.start(), -1
        if word == "CONSTRUCT":
            prologues.append((start, token.start()))
            body = token.start()
    if body < 0:
        return (text,)
    bodies.append((body, len(text)))
    return tuple(_only(text, [*prologues[: k + 1], bodies[k]]) for k in range(len(bodies)))


def _only(text: str, parts: Sequence[tuple[int, int]]) -> str:
    """Return a text with all but some parts of it blank."""
    kept, at = "", 0
    for start, end in parts:
        kept += re.sub(r"\S", " ", text[at:start]) + text[start:end]
        at = end
    return kept
