"""Recursive rules row by row: the pipeline of a stratum, as functions on single rows.

A round of a pipeline calls each operator, which takes some 20 us whatever it consumes. Most rules
that feed themselves derive few rows at an instant, in rounds that depend on each other: query (5)
of WWW 2011 makes each sum from the one before. So here each operator has a *twin*: a function that
takes one row and calls those of its readers. Derived triples are fed back in the next round.

Rows may come one by one, and in any order within an instant, because all operators with twins are
monotone in what follows from the rules: they add pairs to sets, and a least fixpoint does not
depend on the order. What they are not monotone in is known when an instant begins, or does not
follow from the rules:

- the left rows and the absent rows that matter to a right row of a sequence precede its start;
- of the right rows of a sequence without an absent row, the last to start counts. They come from
  outside (`has_twins`), and those that take time wait until their instant is complete.

States are sets, so that operators that only remove duplicates are the identity here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from operator import add, eq, ge, itemgetter, lt, mul, ne, sub
from typing import Any, TypeAlias

import numpy as np

from streamsparql.algebra import closure
from streamsparql.algebra.expressions import Call, Constant
from streamsparql.algebra.graph import Construct as Rule
from streamsparql.algebra.graph import node_of_cells
from streamsparql.algebra.solutions import Expression, Variable
from streamsparql.algebra.streams import INFINITY
from streamsparql.algebra.terms import IRI, XSD, BlankNode, Term
from streamsparql.algebra.xsd.values import date_time_lexical
from streamsparql.limits import check_rows, checked
from streamsparql.overriding import override
from streamsparql.physical.batch import TRIPLE, UNBOUND, Batch, IdRow, IntArray
from streamsparql.physical.dictionary.inline_ids import (
    BASES,
    ENDS,
    INTEGER_BASE,
    INTEGER_BOUND,
    TAG_DOUBLE,
)
from streamsparql.physical.dictionary.term_dictionary import (
    BLANK_SORT,
    IRI_SORT,
    LITERAL_SORT,
    TermDictionary,
)
from streamsparql.physical.expressions.occurrence import END, START, EventCondition
from streamsparql.physical.hidden import SINCE, variable_of
from streamsparql.physical.kernels.occurrences import SHIFT, STATIC, static_rows
from streamsparql.physical.operator import Operator, Stateless, inputs_first
from streamsparql.physical.operators.access import StreamAccess
from streamsparql.physical.operators.binary import shared_names
from streamsparql.physical.operators.columns import Constants, Rename
from streamsparql.physical.operators.entailment import EntailedMatching
from streamsparql.physical.operators.event import EqJoin, EventJoin, NeverBefore, SeqJoin
from streamsparql.physical.operators.event_absence import SeqWithout
from streamsparql.physical.operators.event_sets import (
    DistinctEvents,
    FirstToEnd,
    LastToStart,
    Occurring,
)
from streamsparql.physical.operators.filter import Filter
from streamsparql.physical.operators.graph import Construct
from streamsparql.physical.operators.join import Union
from streamsparql.physical.operators.match import TriplePatternMatching
from streamsparql.physical.operators.shape import Extend, Projection
from streamsparql.physical.state.event_rows import (
    AbsentRows,
    EventRow,
    EventRows,
    RowsByKey,
    RowsOfInstant,
    batch_of_rows,
    picking,
    rows_of_batch,
    variables_of,
)
from streamsparql.physical.state.parts import Stateful

Take: TypeAlias = Callable[[IdRow, int, int], None]
"""An input of a twin: it takes the ids of a row, its SINCE, and its instant."""


_UNCHECKED = 1 << 10
"""The number of derived triples after which the limits are checked."""


_Paired: TypeAlias = EventJoin | SeqJoin | EqJoin | SeqWithout | NeverBefore
"""The operators that retain rows, which move to their twins and back."""


def has_twins(root: Operator, derived: Operator) -> bool:
    """Return whether rules can be evaluated row by row; they read `derived` triples."""
    return all(_has_twin(operator, derived) for operator in inputs_first(root))


def _has_twin(operator: Operator, derived: Operator) -> bool:
    match operator:
        case StreamAccess():
            return True
        case TriplePatternMatching():
            return {*operator.names} == {*_variables(operator), SINCE}
        case EntailedMatching():
            variables = {v.name for v in operator.pattern if isinstance(v, Variable)}
            return {*operator.names} == {*variables, SINCE}
        case NeverBefore():
            return operator.condition is None or operator.condition.rest is None
        case EventJoin() | SeqJoin():
            return type(operator) in _TWINS and operator.condition is None
        case SeqWithout():
            _, right, absent = operator.inputs
            fed_back = {*inputs_first(right), *inputs_first(absent)}
            keys = shared_names(absent.names, operator.names)
            return derived not in fed_back and {*keys} <= {*right.names}
    return type(operator) in _TWINS


class RulesByRow(Stateful):
    """The rules of a stratum: rows from outside are consumed, and the derived triples returned."""

    scalars = ("open",)
    derived = ("rounds",)

    def __init__(
        self,
        root: Operator,
        derived: Operator,
        leaves: Sequence[Operator],
        rules: Sequence[Rule],
        terms: TermDictionary,
    ) -> None:
        self.terms = terms
        self._rules = tuple(rules)
        self._names = root.names
        self._known = RowsOfInstant(root.names)
        self.open: int | None = None
        """The last instant, if more rows of it may follow."""
        self.rounds = 0
        """The number of rounds of the last step."""
        self.operators: dict[_Paired, dict[int, EventRows]] = {}
        """The operators whose twins retain rows, by input."""
        self._states: dict[str, EventRows] = {"known": self._known}
        self._moving: list[EventRows] = [self._known]  # those that evict rows from time to time
        self._completing: list[Callable[[], None]] = []
        self._nodes: dict[tuple[BlankNode, tuple[str, ...]], dict[EventRow, int]] = {}
        self._memos: list[dict[IdRow, tuple[IdRow, ...]]] = []
        self._derived: list[EventRow] = []
        self._most = closure.most_triples(rules)
        self._unchecked = _UNCHECKED  # the number of derived triples from which on to check
        readers: dict[Operator, list[Take]] = {each: [] for each in inputs_first(root)}
        readers[root].append(self._take_derived)
        for operator in reversed(inputs_first(root)):
            make = _TWINS.get(type(operator))
            if make is not None:
                takes = make(self, operator, _to_all(readers[operator]))
                for below, take in zip(operator.inputs, takes, strict=True):
                    readers[below].append(take)
        self._leaves = [_to_all(readers.get(leaf, [])) for leaf in leaves]
        self._feed_back = _reordered(root.names, derived.names, _to_all(readers.get(derived, [])))

    # -- for twins

    def retain(self, operator: _Paired, states: Mapping[int, EventRows]) -> None:
        """Make the rows that the twin of an operator retains, by input, a part of this state."""
        self.operators[operator] = dict(states)
        for rows in states.values():
            self._states[f"rows {len(self._states)}"] = rows
            if not rows.endless:
                self._moving.append(rows)

    def when_complete(self, call: Callable[[], None]) -> None:
        """Have a function called once all rows of an instant from outside are known."""
        self._completing.append(call)

    def memo(self) -> dict[IdRow, tuple[IdRow, ...]]:
        """Return a new memo by ids, which is cleared before ids are reused."""
        self._memos.append(memo := dict[IdRow, tuple[IdRow, ...]]())
        return memo

    def nodes(self, place: BlankNode, names: tuple[str, ...]) -> dict[EventRow, int]:
        """Return the blank nodes of rows at the present instant."""
        return self._nodes.setdefault((place, names), {})

    # -- steps

    def consume(self, batches: Sequence[Batch], bound: int) -> Batch:
        """Consume the rows of each leaf up to a bound; no later row starts before it."""
        self._derived.clear()
        self.rounds = 0
        static = [static_rows(batch) for batch in batches]
        for take, batch, mask in zip(self._leaves, batches, static, strict=True):
            for row in rows_of_batch(batch.where(mask)):
                take(*row)
        due = [batch.where(~mask) for batch, mask in zip(batches, static, strict=True)]
        starts = np.concatenate([batch.start for batch in due])
        results: list[EventRow] = []
        if self.open is not None and not (len(starts) and starts.min() == self.open):
            self._complete(self.open, (), bound, results)
        last = int(starts.max()) if len(starts) else self.open
        for t, rows in groupby(checked(self._in_order(due, starts)), key=itemgetter(0)):
            self._complete(t, rows, bound, results)
        self.open = last if last is not None and last >= bound else None
        assert not self._derived, "a rule was applied after its instant"
        if self.open is None:
            self._begin(bound)
        return batch_of_rows(self._names, results)

    def _in_order(
        self, batches: Sequence[Batch], starts: IntArray
    ) -> Iterator[tuple[int, Take, IdRow, int]]:
        """Yield the rows of all leaves in the order of their instants, with the leaves' takes."""
        leaves = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
        rows = [rows_of_batch(batch) for batch in batches]
        for k in leaves[starts.argsort(kind="stable")].tolist():
            mu, since, t = next(rows[k])
            yield t, self._leaves[k], mu, since

    def _take_derived(self, mu: IdRow, since: int, t: int) -> None:
        """Take a triple that a rule derives in this round."""
        derived = self._derived
        derived.append((mu, since, t))
        if len(derived) >= self._unchecked:
            check_rows(_UNCHECKED, len(self._names))
            self._unchecked += _UNCHECKED
            if len(derived) > self._most:
                raise closure.too_many(self._rules, t)

    def _begin(self, t: int) -> None:
        """Evict what is not needed from an instant on."""
        for state in self._states.values() if t == INFINITY else self._moving:
            state.expire(t)
        for nodes in self._nodes.values():
            nodes.clear()

    def _complete(
        self,
        t: int,
        rows: Iterable[tuple[int, Take, IdRow, int]],
        bound: int,
        results: list[EventRow],
    ) -> None:
        """Take the rows of an instant, and what the rules derive until there is nothing new."""
        self._begin(t)
        for _, take, mu, since in rows:
            take(mu, since, t)
        if t < bound:
            for call in self._completing:
                call()
        derived, insert = self._derived, self._known.insert
        for _ in range(closure.MAX_CLOSURE_ROUNDS):
            self.rounds += 1
            new = [row for row in derived if insert(*row)]
            derived.clear()
            self._unchecked = _UNCHECKED
            if not new:
                return
            if len(self._known) > self._most:
                raise closure.too_many(self._rules, t)
            check_rows(len(new), len(self._names))
            results += new
            for row in checked(new):
                self._feed_back(*row)
        raise closure.endless(self._rules, t)

    # -- from and to columns

    def take_known(self) -> Batch:
        """Remove and return the triples of the instant that is open."""
        known = self._known.rows()
        self._known.expire(INFINITY)
        return known

    def put_known(self, rows: Batch) -> None:
        """Set the triples of the instant that is open."""
        self._known.put_back(rows.project(self._known.names))

    def sizes(self) -> Iterator[tuple[Operator, int]]:
        """Yield the operators whose twins retain rows, with the number of these."""
        for operator, states in self.operators.items():
            yield operator, sum(map(len, states.values()))

    def take_rows(self) -> Iterator[tuple[_Paired, list[Batch]]]:
        """Remove and yield the rows that twins retain, with their operators, by input."""
        for operator, states in self.operators.items():
            batches = [Batch.empty(below.names) for below in operator.inputs]
            for k, state in states.items():
                batches[k] = state.rows()
                state.expire(INFINITY)
            yield operator, batches

    def put_rows(self, operator: _Paired, batches: Sequence[Batch], t: int) -> None:
        """Retain rows of each input of an operator; all instants before `t` are complete."""
        for k, state in self.operators[operator].items():
            rows = batches[k].project(state.names)
            state.put_back(rows.where(rows.start >= t) if state.of_instant else rows)

    # -- state

    @override
    def parts(self) -> Mapping[str, Stateful]:
        return self._states

    @override
    def forget(self) -> None:
        super().forget()
        for nodes in self._nodes.values():
            nodes.clear()
        for memo in self._memos:
            memo.clear()


# -- the twins -------------------------------------------------------------------------------------


def _to_all(takes: Sequence[Take]) -> Take:
    """Return the function that calls all of these."""
    if len(takes) == 1:
        return takes[0]
    fixed = tuple(takes)

    def take(mu: IdRow, since: int, t: int) -> None:
        for each in fixed:
            each(mu, since, t)

    return take


def _reordered(names: Sequence[str], wanted: Sequence[str], emit: Take) -> Take:
    """Return the function that emits the `wanted` columns of rows; those missing are unbound."""
    before, after = variables_of(names), variables_of(wanted)
    if before == after:
        return emit
    pick = picking([before.index(n) if n in before else len(before) for n in after])
    if set(after) <= set(before):
        return lambda mu, since, t: emit(pick(mu), since, t)
    return lambda mu, since, t: emit(pick((*mu, UNBOUND)), since, t)


def _same(machine: RulesByRow, operator: Operator, emit: Take) -> list[Take]:
    return [emit]


def _union(machine: RulesByRow, operator: Operator, emit: Take) -> list[Take]:
    return [_reordered(below.names, operator.names, emit) for below in operator.inputs]


def _rename(machine: RulesByRow, operator: Rename, emit: Take) -> list[Take]:
    olds = [operator.columns[name] for name in variables_of(operator.names)]
    return [_reordered(operator.inputs[0].names, olds, emit)]


def _constants(machine: RulesByRow, operator: Constants, emit: Take) -> list[Take]:
    before = [*variables_of(operator.inputs[0].names), *operator.constants]
    places = {name: place for place, name in enumerate(before)}  # a constant is the last
    pick = picking([places[name] for name in variables_of(operator.names)])
    constants = tuple(operator.constants.values())
    return [lambda mu, since, t: emit(pick(mu + constants), since, t)]


def _variables(operator: TriplePatternMatching) -> list[str]:
    return list(dict.fromkeys(v.name for v in operator.pattern if isinstance(v, Variable)))


def _matching(machine: RulesByRow, operator: TriplePatternMatching, emit: Take) -> list[Take]:
    columns = variables_of(operator.inputs[0].names)
    tests = [(columns.index(name), term) for name, term in operator.constants()]
    places: dict[str, list[int]] = {}
    for column, place in zip(TRIPLE, operator.pattern, strict=True):
        if isinstance(place, Variable):
            places.setdefault(place.name, []).append(columns.index(column))
    same = [tuple(each) for each in places.values() if len(each) > 1]
    pick = picking([places[name][0] for name in variables_of(operator.names)])

    def take(mu: IdRow, since: int, t: int) -> None:
        for place, term in tests:
            if mu[place] != term:
                return
        for first, *others in same:
            if any(mu[first] != mu[other] for other in others):
                return
        emit(pick(mu), since, t)

    return [take]


def _entailed(machine: RulesByRow, operator: EntailedMatching, emit: Take) -> list[Take]:
    """Match one triple as the operator does, once for each triple of late."""
    columns = variables_of(operator.inputs[0].names)
    pick = picking([columns.index(name) for name in TRIPLE])
    wanted = operator.matcher.predicates()
    memo = machine.memo()
    matches: list[IdRow] = []
    compute = _apply(operator, lambda mu, since, t: matches.append(mu))

    def take(mu: IdRow, since: int, t: int) -> None:
        triple = pick(mu)
        if wanted is not None and triple[1] not in wanted:
            return
        known = memo.get(triple)
        if known is None:
            matches.clear()
            compute(mu, since, t)
            if len(memo) >= _MEMORISED:
                memo.clear()
            known = memo[triple] = tuple(matches)
        for match in known:
            emit(match, since, t)

    return [take]


_MEMORISED = 1 << 14
"""The number of triples of which the entailed matches are known."""


def _occurring(machine: RulesByRow, operator: Occurring, emit: Take) -> list[Take]:
    """Leave times unbound: `_construct`, which reads them, has them from the row."""
    times = (UNBOUND,) * (len(operator.names) - len(operator.inputs[0].names))

    def take(mu: IdRow, since: int, t: int) -> None:
        if since != STATIC:
            emit(mu + times, since, t)

    return [take]


def _apply(operator: Stateless, emit: Take) -> Take:
    """Return the operator itself, on batches of one row."""
    names = operator.inputs[0].names
    ordered = (*variables_of(names), SINCE)
    wanted = [*variables_of(operator.names), SINCE]

    def take(mu: IdRow, since: int, t: int) -> None:
        ids = np.array([(*mu, since)], np.int64).T
        at = np.array([t])
        batch = Batch(dict(zip(ordered, ids, strict=True)), at, at + 1)
        for row in rows_of_batch(operator.apply(batch).project(wanted)):
            emit(*row)

    return take


def _filter(machine: RulesByRow, operator: Filter, emit: Take) -> list[Take]:
    compiled = operator.compiled
    if not isinstance(compiled, EventCondition) or compiled.rest is not None:
        return [_apply(operator, emit)]

    holds = _times_hold(compiled)

    def take(mu: IdRow, since: int, t: int) -> None:
        if holds(since, t):
            emit(mu, since, t)

    return [take]


def _times_hold(condition: EventCondition | None) -> Callable[[int, int], bool]:
    """Return the test whether the occurrence of a row satisfies the comparisons of times."""
    tests = [
        (variable.name, _SYMBOLS[symbol], symbol, limit)
        for variable, symbol, limit in (() if condition is None else condition.comparisons)
    ]

    def holds(since: int, t: int) -> bool:
        if since == STATIC and tests:
            return False
        start = since + SHIFT
        for name, compare, symbol, limit in tests:
            time = t if name == END else start if name == START else t - start
            if not (symbol == "!=" if limit is None else compare(time, limit)):
                return False
        return True

    return holds


_SYMBOLS: Mapping[str, Callable[[int, int], bool]] = {"<": lt, ">=": ge, "=": eq, "!=": ne}


def _extend(machine: RulesByRow, operator: Extend, emit: Take) -> list[Take]:
    names = variables_of(operator.inputs[0].names)
    one_by_one = _apply(operator, emit)
    value = _integer(operator.expression, names, machine.terms)
    if value is None or operator.name in names:
        return [one_by_one]
    computed = value
    emit = _reordered([*names, operator.name], operator.names, emit)

    def take(mu: IdRow, since: int, t: int) -> None:
        result = computed(mu)
        if result is None or not -INTEGER_BOUND < result < INTEGER_BOUND:
            one_by_one(mu, since, t)
        else:
            emit((*mu, result + INTEGER_BASE), since, t)

    return [take]


_Integer: TypeAlias = Callable[[IdRow], int | None]


def _integer(
    expression: Expression, names: Sequence[str], terms: TermDictionary
) -> _Integer | None:
    """Return the function that computes integers from rows; it returns None for other operands."""
    match expression:
        case Variable(name) if name in names:
            place = names.index(name)
            return lambda mu: mu[place] - INTEGER_BASE if mu[place] < _AFTER_INTEGERS else None
        case Constant(term):
            term_id = terms.id_of(term, keep=True)
            constant = term_id - INTEGER_BASE
            return (lambda mu: constant) if term_id < _AFTER_INTEGERS else None
        case Call(str() as symbol, (left, right)) if symbol in _ARITHMETIC:
            one, other = (_integer(each, names, terms) for each in (left, right))
            calculate = _ARITHMETIC[symbol]
            if one is None or other is None:
                return None
            first, second = one, other

            def value(mu: IdRow) -> int | None:
                a, b = first(mu), second(mu)
                return None if a is None or b is None else calculate(a, b)

            return value
    return None


_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {"+": add, "-": sub, "*": mul}
_AFTER_INTEGERS = BASES[TAG_DOUBLE]


def _construct(machine: RulesByRow, operator: Construct, emit: Take) -> list[Take]:
    names = variables_of(operator.inputs[0].names)
    subject, predicate, object_ = (_place_of(machine, operator, x, names) for x in operator.pattern)
    tested = [
        (k, sorts)
        for k, sorts in enumerate((_SUBJECTS, (IRI_SORT,), _OBJECTS))
        if not isinstance(operator.pattern[k], BlankNode | IRI)
    ]
    sort_of = machine.terms.sort_of
    emit = _reordered([*TRIPLE, SINCE], operator.names, emit)

    def take(mu: IdRow, since: int, t: int) -> None:
        triple = subject(mu, since, t), predicate(mu, since, t), object_(mu, since, t)
        for k, sorts in tested:
            if sort_of(triple[k]) not in sorts:
                return
        emit(triple, since, t)

    return [take]


_SUBJECTS = (IRI_SORT, BLANK_SORT)
_OBJECTS = (IRI_SORT, BLANK_SORT, LITERAL_SORT)


def _place_of(
    machine: RulesByRow, operator: Construct, place: Term | Variable, names: Sequence[str]
) -> Callable[[IdRow, int, int], int]:
    """Return the function that computes the term of a template's place from rows."""
    if isinstance(place, BlankNode):
        return _node_of(machine, operator, place)
    if isinstance(place, Variable) and place.name in names:
        column = names.index(place.name)
        return lambda mu, since, t: mu[column]
    constant = UNBOUND if isinstance(place, Variable) else machine.terms.id_of(place, keep=True)
    return lambda mu, since, t: constant


def _node_of(
    machine: RulesByRow, operator: Construct, place: BlankNode
) -> Callable[[IdRow, int, int], int]:
    """Return the function that names the blank node of a row, as `Construct` does."""
    assert operator.number is not None
    terms = machine.terms
    names = tuple(variables_of(operator.inputs[0].names))
    number = names.index(operator.number)
    columns = [
        (k, name) for k, name in enumerate(names) if k != number and not variable_of(name).stamp
    ]
    memo = machine.nodes(place, names)

    texts = [(f"{variable_of(name)}=", _text_of(terms, name, k)) for k, name in columns]

    def node(mu: IdRow, since: int, t: int) -> int:
        row = mu, since, t
        term_id = memo.get(row)
        if term_id is None:
            written = [(prefix, text(mu, since, t)) for prefix, text in texts]
            cells = [prefix + text for prefix, text in written if text is not None]
            named = node_of_cells(place, cells, mu[number] - INTEGER_BASE)
            term_id = memo[row] = terms.id_of(named)
        return term_id

    return node


def _text_of(
    terms: TermDictionary, name: str, place: int
) -> Callable[[IdRow, int, int], str | None]:
    """Return the function that writes a term of rows, or a time of theirs; None if unbound."""
    if name == END:
        return lambda mu, since, t: _date_time(t)
    if name == START:
        return lambda mu, since, t: _date_time(since + SHIFT)
    end = ENDS["integer"]

    def text(mu: IdRow, since: int, t: int) -> str | None:
        term_id = mu[place]
        if term_id < _AFTER_INTEGERS:
            return f'"{term_id - INTEGER_BASE}{end}'
        return str(terms.term_of(term_id)) if term_id else None

    return text


@lru_cache(1024)
def _date_time(milliseconds: int) -> str:
    return f'"{date_time_lexical(milliseconds)}"^^<{XSD}dateTime>'


def _merging(
    left: Operator, right: Operator, names: Sequence[str]
) -> Callable[[IdRow, IdRow], IdRow]:
    """Return the function that merges compatible rows."""
    one, two = variables_of(left.names), variables_of(right.names)
    both = [*one, *two]
    wanted = variables_of(names)
    pick = picking([both.index(name) for name in wanted])
    other = picking([len(both) - 1 - both[::-1].index(name) for name in wanted])

    def merge(mu: IdRow, nu: IdRow) -> IdRow:
        row = pick(mu + nu)
        if UNBOUND in row:
            return tuple([a or b for a, b in zip(row, other(mu + nu), strict=True)])
        return row

    return merge


def _event_join(machine: RulesByRow, operator: EventJoin, emit: Take) -> list[Take]:
    left, right = operator.inputs
    shared = shared_names(left.names, right.names)
    lefts = RowsByKey(left.names, shared, operator.within)
    rights = RowsByKey(right.names, shared, operator.within)
    machine.retain(operator, {0: lefts, 1: rights})
    merge = _merging(left, right, operator.names)

    def take_left(mu: IdRow, since: int, t: int) -> None:
        if lefts.insert(mu, since, t):
            for rows in rights.find(lefts.key(mu)):
                for (nu, other, *_), at in rows:
                    emit(merge(mu, nu), min(since, other), max(t, at))

    def take_right(nu: IdRow, since: int, t: int) -> None:
        if rights.insert(nu, since, t):
            for rows in lefts.find(rights.key(nu)):
                for (mu, other, *_), at in rows:
                    emit(merge(mu, nu), min(since, other), max(t, at))

    return [take_left, take_right]


def _seq_join(machine: RulesByRow, operator: SeqJoin, emit: Take) -> list[Take]:
    left, right = operator.inputs
    shared = shared_names(left.names, right.names)
    lefts = RowsByKey(left.names, shared, operator.within, firsts=True)
    machine.retain(operator, {0: lefts})
    merge = _merging(left, right, operator.names)
    key = picking([variables_of(right.names).index(name) for name in shared])

    def take_left(mu: IdRow, since: int, t: int) -> None:
        if since != STATIC:
            lefts.insert(mu, since, t)

    def take_right(nu: IdRow, since: int, t: int) -> None:
        if since == STATIC:
            return
        start = since + SHIFT
        for rows in lefts.find(key(nu)):
            for (mu, begin, *_), end in rows:
                if end >= start:
                    break
                emit(merge(mu, nu), begin, t)

    return [take_left, take_right]


def _eq_join(machine: RulesByRow, operator: EqJoin, emit: Take) -> list[Take]:
    left, right = operator.inputs
    shared = shared_names(left.names, right.names)
    lefts = RowsByKey(left.names, shared, of_instant=True)
    rights = RowsByKey(right.names, shared, of_instant=True)
    machine.retain(operator, {0: lefts, 1: rights})
    merge = _merging(left, right, operator.names)

    def take_left(mu: IdRow, since: int, t: int) -> None:
        if since != STATIC and lefts.insert(mu, since, t):
            for rows in rights.find(lefts.key(mu)):
                for (nu, other, *_), _ in rows:
                    if other == since:
                        emit(merge(mu, nu), since, t)

    def take_right(nu: IdRow, since: int, t: int) -> None:
        if since != STATIC and rights.insert(nu, since, t):
            for rows in lefts.find(rights.key(nu)):
                for (mu, other, *_), _ in rows:
                    if other == since:
                        emit(merge(mu, nu), since, t)

    return [take_left, take_right]


def _never_before(machine: RulesByRow, operator: NeverBefore, emit: Take) -> list[Take]:
    left, right = operator.inputs
    shared = shared_names(left.names, right.names)
    lefts = RowsByKey((*shared, SINCE), shared, operator.own, firsts=True)
    machine.retain(operator, {0: lefts})
    reads_starts = operator.condition is not None or operator.own < INFINITY
    left_key = picking([variables_of(left.names).index(name) for name in shared])
    key = picking([variables_of(right.names).index(name) for name in shared])
    holds = _times_hold(operator.condition)

    def take_left(mu: IdRow, since: int, t: int) -> None:
        if since != STATIC:
            lefts.insert(left_key(mu), since if reads_starts else -SHIFT, t)

    def take_right(nu: IdRow, since: int, t: int) -> None:
        start = since + SHIFT
        if since == STATIC or not any(
            end < start and holds(begin, t)
            for rows in lefts.find(key(nu))
            for (_, begin, *_), end in rows
        ):
            emit(nu, since, t)

    return [take_left, take_right]


def _seq_without(machine: RulesByRow, operator: SeqWithout, emit: Take) -> list[Take]:
    left, right, absent = operator.inputs
    shared = shared_names(left.names, right.names)
    keys = shared_names(absent.names, operator.names)
    lefts = RowsByKey(left.names, shared, operator.within, firsts=True)
    rights = RowsOfInstant(right.names, lasts=True)
    absents = AbsentRows((*keys, SINCE), operator.within)
    machine.retain(operator, {0: lefts, 1: rights, 2: absents})
    merge = _merging(left, right, operator.names)
    columns = variables_of(right.names)
    key = picking([columns.index(name) for name in shared])
    absent_key = picking([columns.index(name) for name in keys])
    of_absent = picking([variables_of(absent.names).index(name) for name in keys])

    def take_left(mu: IdRow, since: int, t: int) -> None:
        if since != STATIC:
            lefts.insert(mu, since, t)

    def take_right(nu: IdRow, since: int, t: int) -> None:
        if since != STATIC and rights.insert(nu, since, t) and since + SHIFT == t:
            probe(nu, since, t)

    def take_absent(mu: IdRow, since: int, t: int) -> None:
        if since != STATIC:
            absents.insert(of_absent(mu), since, t)

    def probe(nu: IdRow, since: int, t: int) -> None:
        start = since + SHIFT
        low = absents.latest(absent_key(nu), start)
        for rows in lefts.find(key(nu)):
            for (mu, begin, *_), end in reversed(rows):
                if end < low:
                    break
                if end < start:
                    emit(merge(mu, nu), begin, t)

    def complete() -> None:
        for nu, since, t in rights.entries():
            if since + SHIFT < t:
                probe(nu, since, t)

    machine.when_complete(complete)
    return [take_left, take_right, take_absent]


_TWINS: Mapping[type[Operator], Callable[[RulesByRow, Any, Take], list[Take]]] = {
    DistinctEvents: _same,
    FirstToEnd: _same,
    LastToStart: _same,
    Union: _union,
    Projection: _union,
    Rename: _rename,
    Constants: _constants,
    TriplePatternMatching: _matching,
    Occurring: _occurring,
    Filter: _filter,
    Extend: _extend,
    Construct: _construct,
    EventJoin: _event_join,
    SeqJoin: _seq_join,
    EqJoin: _eq_join,
    SeqWithout: _seq_without,
    NeverBefore: _never_before,
    EntailedMatching: _entailed,
}
