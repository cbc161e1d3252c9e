"""The choice of the matcher of a pattern."""

from __future__ import annotations

from streamsparql.algebra.match import TriplePattern
from streamsparql.physical.entailment.expansion import Expansion
from streamsparql.physical.entailment.matcher import Matcher, PatternIds, all_forms, bound_places
from streamsparql.physical.entailment.membership import Membership
from streamsparql.physical.entailment.schema import End, Schema, Template


def matcher_of(pattern: TriplePattern, schema: Schema) -> Matcher:
    """Return the matcher of a pattern; operators with the same pattern and schema share it."""
    known: Matcher | None = schema.matchers.get(pattern)
    if known is None:
        bound = bound_places(pattern, schema)
        forms = all_forms(schema, bound)
        simple = bound[1] is not None and all(_binds_ends(form, bound) for form in forms)
        kind = Membership if simple else Expansion
        known = schema.matchers[pattern] = kind(pattern, schema, bound)
    return known


def _binds_ends(template: Template, bound: PatternIds) -> bool:
    """Return whether variables are bound to the subject and the object of the triple itself."""
    pairs = zip(template[:3], bound, strict=True)
    return all(id_ is not None or place in (End.SUBJECT, End.OBJECT) for place, id_ in pairs)
