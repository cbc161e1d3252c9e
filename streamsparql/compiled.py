"""A compiled query: its text, its translation and its plans, for the code that runs or explains it.

`streamsparql.query.Query` adds the methods that users call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from streamsparql.algebra.plan import Plan
from streamsparql.display import with_prefixes
from streamsparql.limits import Limits, metered, naming
from streamsparql.translator.translate import ReportPolicy, Translation, translate

if TYPE_CHECKING:
    from streamsparql.algebra.fixpoint import Rewriting
    from streamsparql.physical.expressions.sort_keys import Ranking
    from streamsparql.physical.lowering.lower import Lowered
    from streamsparql.physical.operator import Operator


class Recipe(NamedTuple):
    """The arguments of `compile`, from which another process compiles the same query."""

    text: str
    dialect: str = "auto"
    base: str | None = None
    origin: int = 0
    optimize: bool = True
    pedantic: bool = False
    entailment: str | None = None
    rules: tuple[str, ...] = ()
    limits: Limits | None = None

    def translation(self) -> Translation:
        """Translate the text."""
        return translate(
            self.text,
            self.dialect,
            self.base or "",
            self.origin,
            self.pedantic,
            self.entailment,
            self.rules,
        )


class CompiledQuery:
    """A query's text, its translation, and its plans.

    >>> text = "SELECT ?x FROM STREAM <s> WINDOW RANGE 10 S FIXED { ?x ?p ?o }"
    >>> CompiledQuery(Recipe(text)).streams
    ('s',)
    """

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.translation = recipe.translation()

    def __reduce__(self) -> tuple[Callable[..., CompiledQuery], tuple[Any, ...]]:
        """Pickle the recipe: plans may be deep, so another process compiles the text again."""
        return _recompiled, (type(self), self.recipe)

    @property
    def text(self) -> str:
        """The text that was compiled."""
        return self.recipe.text

    @property
    def dialect(self) -> str:
        """The name of the dialect: the one passed to `compile`, or the detected one."""
        return self.translation.dialect.name

    @property
    def entailment(self) -> str | None:
        """The kind of entailment: rdfs, or None."""
        return self.recipe.entailment

    @property
    def form(self) -> str:
        """The query form: select, construct, describe or ask."""
        return self.translation.form

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The columns of a SELECT, in order."""
        return self.translation.variables

    @cached_property
    def streams(self) -> tuple[str, ...]:
        """The IRIs of the streams that the query reads."""
        return tuple(iri.value for iri in self.translation.streams)

    @cached_property
    def graphs(self) -> tuple[str, ...]:
        """The IRIs of the static graphs that the query names."""
        return tuple(iri.value for iri in self.translation.graphs)

    warned = False
    """Whether the warnings of `check` were shown."""

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that the query declares.

        >>> dict(CompiledQuery(Recipe("PREFIX : <http://example.org/> ASK { :a :b :c }")).prefixes)
        {'': 'http://example.org/'}
        """
        return self.translation.names.prefixes

    @property
    def report(self) -> ReportPolicy:
        """The kind, the period and the name of the query's reports."""
        return self.translation.report

    @property
    def logical(self) -> Plan:
        """The logical plan, whose `at(t, inputs)` defines the query's snapshots."""
        return with_prefixes(self.translation.plan, self.prefixes)

    @property
    def optimized(self) -> Plan:
        """The plan after all rewriting rules, with the same snapshots as the logical plan.

        >>> query = CompiledQuery(Recipe("SELECT ?x { ?x <p> ?y FILTER(1 + 1 = 2) }"))
        >>> query.optimized == CompiledQuery(Recipe("SELECT ?x { ?x <p> ?y }")).logical
        True
        """
        return with_prefixes(self.rewriting.plan, self.prefixes)

    @cached_property
    def rewriting(self) -> Rewriting:
        """The optimized plan with the trace of the rules; computed at first use."""
        from streamsparql.algebra.fixpoint import Rewriting
        from streamsparql.algebra.rewrite import rewrite

        if not self.recipe.optimize:
            return Rewriting(self.logical)
        limits, name = self.recipe.limits, "the rewriting of the plan"
        if limits is None:  # those of the run apply
            with naming(lambda: name):
                return rewrite(self.logical)
        with metered(limits, name):
            return rewrite(self.logical)

    @property
    def physical(self) -> Operator:
        """The root of the operators that compute the optimized plan.

        It is a plan for inspection: a run evaluates static subplans first and folds them.
        """
        return with_prefixes(self._lowered.plain, self.prefixes)

    @property
    def ranking(self) -> Ranking | None:
        """The columns that ORDER BY sorts the rows of a snapshot by; None without it."""
        return self._lowered.ranking

    @cached_property
    def _lowered(self) -> Lowered:
        from streamsparql.algebra.functions import Run
        from streamsparql.physical.dictionary.term_dictionary import TermDictionary
        from streamsparql.physical.lowering.lower import Catalog, lower

        return lower(self.optimized, TermDictionary(), Run(), Catalog(known=False))


@lru_cache(maxsize=16)
def _recompiled(kind: type[CompiledQuery], recipe: Recipe) -> CompiledQuery:
    """Compile a query from another process; all tasks of a worker share the object."""
    return kind(recipe)
