"""Lints: warnings about queries that compile, and yet may not do what their writer intends.

Each lint is a function from a `Visit` (an operator of the plan, its scope, its place in the text)
to the warnings about it. `LINTS` lists them all; docs/lints.md explains each code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from streamsparql.algebra.access import AccessGraph, AccessStream
from streamsparql.errors import Span
from streamsparql.look.lints.bindings import cartesian_product, never_bound
from streamsparql.look.lints.conditions import never_true
from streamsparql.look.lints.streams import combined_readings, counted_triples
from streamsparql.look.lints.text import TEXT_LINTS, ignored_codes
from streamsparql.look.lints.visit import Visit, visits
from streamsparql.look.lints.warning import LintWarning
from streamsparql.look.lints.windows import missed_elements, months_in_bound, unbounded_state
from streamsparql.translator.translate import Translation

__all__ = ["LINTS", "LintWarning", "lint", "without_schema"]

LINTS: tuple[Callable[[Visit], Iterator[LintWarning]], ...] = (
    cartesian_product,
    never_bound,
    never_true,
    unbounded_state,
    months_in_bound,
    missed_elements,
    combined_readings,
    counted_triples,
)


def lint(translation: Translation) -> tuple[LintWarning, ...]:
    """Return the warnings about a translated query, in the order of its text.

    >>> from streamsparql.translator.translate import translate
    >>> [warning.code for warning in lint(translate("SELECT ?x ?y { ?x <p> 1 . ?z <q> 2 }"))]
    ['never-bound', 'cartesian-product']
    """
    warnings = [warning for check in TEXT_LINTS for warning in check(translation)]
    checks = LINTS
    if _is_mapping(translation):  # the columns of the table bind its variables
        checks = tuple(check for check in LINTS if check not in (never_bound, never_true))
    for visit in visits(translation):
        for check in checks:
            warnings += check(visit)
    ignored = ignored_codes(translation.text)
    own = _merged(w for w in warnings if w.code not in ignored)
    return (*own, *(warning for rule in translation.rules for warning in lint(rule)))


def without_schema(translation: Translation) -> LintWarning:
    """Return the warning about a query with entailment over static graphs without a schema.

    Only a run reads the graphs: `lint` does not return it.
    """
    return LintWarning(
        "no-schema",
        "the static graphs have no schema, so nothing is entailed",
        None,
        translation.text,
        hint="pass the graph with rdfs:subClassOf and the like as default graph: --graph FILE",
    )


def _merged(warnings: Iterable[LintWarning]) -> list[LintWarning]:
    """Return the warnings in the order of the text; equal ones become one with several places."""
    same: dict[tuple[str, str], list[LintWarning]] = {}
    for warning in sorted(set(warnings), key=lambda w: (w.span or Span(0, 0), w.code, w.message)):
        same.setdefault((warning.code, warning.message), []).append(warning)
    return [
        replace(first, others=tuple(each.span for each in others if each.span is not None))
        for first, *others in same.values()
    ]


def _is_mapping(translation: Translation) -> bool:
    """Return whether a CONSTRUCT reads no triples, and so maps the columns of a table."""
    reads = (isinstance(node, AccessStream | AccessGraph) for node in translation.plan.walk())
    return translation.form == "construct" and not any(reads)
