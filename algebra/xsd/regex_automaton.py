r"""Automata for regular expressions, whose time is linear in the length of the text.

A pattern is compiled to a program (Thompson 1968; Cox, "Regular expression matching: the virtual
machine approach", 2009). `Automaton.search` runs it as a deterministic automaton, whose states are
computed at first use and cached. `Automaton.replace` needs the groups of the matches that
backtracking would find, so it backtracks, but never twice to the same place of text and program.

With a back-reference, what follows depends on the path, so that rule does not apply: the number of
steps is bounded instead.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from streamsparql.algebra.xsd.character_sets import class_text, union
from streamsparql.algebra.xsd.regex_syntax import (
    Anchor,
    BackReference,
    Branch,
    Branches,
    Group,
    OneOf,
    Pattern,
    Repeat,
)
from streamsparql.errors import EngineError
from streamsparql.limits import active_meter, checked

MAX_PROGRAM = 10_000
"""The number of instructions of a pattern, whose repetitions are written out."""
MAX_BACKTRACKING = 1_000_000
"""The number of steps of a search with back-references."""
_MAX_MEMBERS = 100_000
"""The size of the cache of states, in instructions that they contain."""
_MAX_MOVES = 20_000
"""The size of the cache of states, in moves between them."""

_PIECE = 1 << 16
"""The number of characters, or of branches, after which the limits of the run are checked."""

_CHAR, _SPLIT, _JUMP, _LOOP, _SAVE, _ANCHOR, _REFERENCE, _MATCH = range(8)
_AT_START, _AFTER_NEWLINE, _INSIDE = range(3)

_Instruction = tuple[int, Any, Any, int]
"""An operation and its operands; targets are relative, the preferred one is first. `_LOOP` is a
`_SPLIT` behind a pattern that may match nothing, and has a slot for the place of its last visit."""


class Automaton:
    """A pattern that is matched in linear time."""

    def __init__(self, pattern: Pattern, groups: int) -> None:
        compiler = _Compiler(2 * groups + 2)
        self._program = (*compiler.compiled(pattern)[0], (_MATCH, None, None, 0))
        self._groups, self._slots = groups, compiler.slots
        self._has_references, self._has_lines = compiler.has_references, compiler.has_lines
        unanchored = self._reached((0,), lambda anchor: anchor.kind == "$" or anchor.lines)
        begins = (_CHAR, _REFERENCE, _MATCH)
        self.anchored = not any(self._program[at][0] in begins for at in unanchored)
        """Whether a match begins at the start of the text only."""
        self._begin = self._first_character()
        self._matched, self._dead = _State(self, frozenset(), 0), _State(self, frozenset(), 0)
        self._forget()

    # -- as a deterministic automaton

    def search(self, text: str) -> bool:
        """Return whether the pattern matches somewhere in a text."""
        if self._has_references:
            return self._find(text, 0, []) is not None
        state = self._start
        for at in checked(range(0, len(text), _PIECE)):
            for char in text[at : at + _PIECE]:
                state = state[char]
                if not state:
                    return state is self._matched
        return state[""] is self._matched

    def _forget(self) -> None:
        """Empty the cache of states."""
        self._states: dict[tuple[frozenset[int], int], _State] = {}
        self._moves = self._members = 0
        self._start = self._state(frozenset((0,)), _AT_START)

    def _state(self, threads: frozenset[int], after: int) -> _State:
        """Return the state of these instructions, after a character of a class."""
        state = self._states.get((threads, after))
        if state is None:
            state = self._states[threads, after] = _State(self, threads, after)
            self._members += len(threads) + 1
            state[""] = self.next_state(state, "")  # so that it is not empty
        return state

    def next_state(self, state: _State, char: str) -> _State:
        """Return the state after one more character, or at the end of the text."""
        if self._moves > _MAX_MOVES or self._members > _MAX_MEMBERS:
            self._forget()
        self._moves += 1
        code = ord(char) if char else -1
        following = set() if self.anchored else {0}
        for at in self._reached(state.threads, lambda anchor: _holds(anchor, state.after, char)):
            kind, operand, *_ = self._program[at]
            if kind == _MATCH:
                return self._matched
            if kind == _CHAR and bisect_right(operand, code) & 1:
                following.add(at + 1)
        if not char or not following:
            return self._dead
        newline = self._has_lines and char == "\n"
        return self._state(frozenset(following), _AFTER_NEWLINE if newline else _INSIDE)

    def _reached(self, threads: Iterable[int], holds: Callable[[Anchor], bool]) -> Iterator[int]:
        """Yield the instructions that are reached without a character and do more than branch."""
        stack, seen = list(threads), set[int]()
        while stack:
            at = stack.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, one, other, _ = self._program[at]
            if kind in (_SPLIT, _LOOP):
                stack += (at + one, at + other)
            elif kind == _JUMP:
                stack.append(at + one)
            elif kind == _SAVE or (kind == _ANCHOR and holds(one)):
                stack.append(at + 1)
            elif kind != _ANCHOR:
                yield at

    # -- by backtracking

    def replace(self, text: str, expand: Callable[[Sequence[str]], str]) -> str:
        """Replace each match; `expand` receives its text and those of its groups."""
        if not self._has_references and not self.search(text):
            return text
        parts, at, failed = [], 0, [0] * (len(text) + 1)
        while (match := self._find(text, at, failed)) is not None:
            begin, end, *slots = match
            groups = zip(
                slots[: 2 * self._groups : 2], slots[1 : 2 * self._groups : 2], strict=True
            )
            parts += [text[at:begin], expand([text[begin:end], *(text[a:b] for a, b in groups)])]
            # What failed behind the match fails again; what led to the match may not.
            failed[begin : end + 1] = [0] * (end + 1 - begin)
            at = end
        return "".join((*parts, text[at:]))

    def _find(self, text: str, first: int, failed: list[int]) -> tuple[int, ...] | None:
        """Return where the first match and its groups begin and end; None if there is none.

        `failed` has the instructions that lead to no match, as bits, by the place in the text.
        """
        steps, begin, after = 0, first, 1 if self.anchored else len(text) + 1
        while begin < after:
            if self._begin is not None:
                candidate = self._begin.search(text, begin, after)
                if candidate is None:
                    break
                begin = candidate.start()
            slots, steps = self._match(text, begin, failed, steps)
            if slots is not None:
                return slots
            begin += 1
        return None

    def _first_character(self) -> re.Pattern[str] | None:
        """Return an expression for the characters that matches begin with; None if unknown."""
        reached = [self._program[at] for at in self._reached((0,), lambda anchor: True)]
        if any(kind != _CHAR for kind, *_ in reached):
            return None
        edges = [
            pair for _, edges, *_ in reached for pair in zip(edges[::2], edges[1::2], strict=True)
        ]
        return re.compile(class_text(union([(low, after - 1) for low, after in edges])))

    def _match(
        self, text: str, begin: int, failed: list[int], steps: int
    ) -> tuple[tuple[int, ...] | None, int]:
        """Return the match that begins at a place, and the number of steps so far."""
        program, size, bounded = self._program, len(text), self._has_references
        stack: list[tuple[int, int, tuple[int, ...]]] = [(0, begin, (0,) * self._slots)]
        meter, branches = active_meter(), 0
        while stack:
            at, place, slots = stack.pop()
            while True:
                kind, one, other, slot = program[at]
                if kind == _CHAR:
                    if place == size or not bisect_right(one, ord(text[place])) & 1:
                        break
                    at, place = at + 1, place + 1
                elif kind in (_SPLIT, _LOOP):
                    if meter is not None:
                        branches += 1
                        if not branches % _PIECE:
                            meter.check()
                    if not bounded:
                        if failed[place] >> at & 1:
                            break
                        failed[place] |= 1 << at
                    else:
                        steps = _counted(steps + 1)
                        if kind == _LOOP and slots[slot] == place + 1:
                            at += max(one, other)  # behind an iteration that matched nothing
                            continue
                        if kind == _LOOP:
                            slots = _with(slots, slot, place + 1)
                    stack.append((at + other, place, slots))
                    at += one
                elif kind == _JUMP:
                    at += one
                elif kind == _SAVE:
                    slots = _with(slots, one, place)
                    at += 1
                elif kind == _ANCHOR:
                    after = _class_of(text[place - 1]) if place else _AT_START
                    if not _holds(one, after, text[place : place + 1]):
                        break
                    at += 1
                elif kind == _REFERENCE:
                    piece = text[slots[2 * one.group] : slots[2 * one.group + 1]]
                    steps = _counted(steps + 1 + len(piece) // 64)
                    if not _is_equal(piece, text[place : place + len(piece)], one.ignore_case):
                        break
                    at, place = at + 1, place + len(piece)
                else:
                    return (begin, place, *slots[2:]), steps
        return None, steps


class _State(dict[str, "_State"]):
    """A state with the states that follow it; the final ones are empty."""

    __slots__ = ("after", "automaton", "threads")

    def __init__(self, automaton: Automaton, threads: frozenset[int], after: int) -> None:
        super().__init__()
        self.automaton, self.threads, self.after = automaton, threads, after

    def __missing__(self, char: str) -> _State:
        """Compute the state after a character, and cache it."""
        state = self[char] = self.automaton.next_state(self, char)
        return state


def _counted(steps: int) -> int:
    if steps > MAX_BACKTRACKING:
        raise EngineError(
            f"a regular expression with a back-reference took more than {MAX_BACKTRACKING:,} steps;"
            " write it without back-references"
        )
    return steps


def _with(slots: tuple[int, ...], slot: int, place: int) -> tuple[int, ...]:
    return (*slots[:slot], place, *slots[slot + 1 :])


def _class_of(char: str) -> int:
    return _AFTER_NEWLINE if char == "\n" else _INSIDE


def _holds(anchor: Anchor, after: int, char: str) -> bool:
    """Return whether an anchor holds between two characters; the next is empty at the end."""
    if anchor.kind == "$":
        return char == "" or (anchor.lines and char == "\n")
    return after == _AT_START or (anchor.lines and after == _AFTER_NEWLINE and char != "")


def _is_equal(one: str, other: str, ignore_case: bool) -> bool:
    if one == other or not ignore_case or len(one) != len(other):
        return one == other
    pairs = zip(one, other, strict=True)
    return all(a.lower() == b.lower() or a.upper() == b.upper() for a, b in pairs)


class _Compiler:
    """The compiler of one pattern; slots are numbered from those of its groups."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.has_references = self.has_lines = False

    def compiled(self, pattern: Pattern) -> tuple[list[_Instruction], bool]:
        """Return the instructions of a pattern, and whether it can match nothing."""
        match pattern:
            case OneOf(ranges):
                edges = tuple(edge for low, high in ranges for edge in (low, high + 1))
                return [(_CHAR, edges, None, 0)], False
            case Anchor():
                self.has_lines |= pattern.lines
                return [(_ANCHOR, pattern, None, 0)], True
            case BackReference():
                self.has_references = True
                return [(_REFERENCE, pattern, None, 0)], True
            case Group(number, body):
                code, nullable = self.compiled(body)
                if number:
                    first, last = ((_SAVE, 2 * number + k, None, 0) for k in range(2))
                    code = [first, *code, last]
                return code, nullable
            case Branch(parts):
                compiled = [self.compiled(part) for part in parts]
                code = [instruction for part, _ in compiled for instruction in part]
                return _checked(code), all(nullable for _, nullable in compiled)
            case Branches(options):
                return self.branches(options)
            case Repeat():
                return self.repeat(pattern)

    def branches(self, options: Sequence[Pattern]) -> tuple[list[_Instruction], bool]:
        compiled = [self.compiled(option) for option in options]
        code = compiled[-1][0]
        for option, _ in reversed(compiled[:-1]):
            split, jump = (_SPLIT, 1, len(option) + 2, 0), (_JUMP, len(code) + 1, None, 0)
            code = _checked([split, *option, jump, *code])
        return code, any(nullable for _, nullable in compiled)

    def repeat(self, pattern: Repeat) -> tuple[list[_Instruction], bool]:
        body, nullable = self.compiled(pattern.body)
        least, most, size = pattern.least, pattern.most, len(body)

        def split(kind: int, again: int, out: int, slot: int = 0) -> _Instruction:
            return (kind, out, again, slot) if pattern.lazy else (kind, again, out, slot)

        _check_size((size + 1) * max(least, most or 0))
        if most is not None:
            rest = (most - least) * (size + 1)
            code = body * least
            for at in range(0, rest, size + 1):
                code += [split(_SPLIT, 1, rest - at), *body]
        elif least or nullable:  # x* is (x+)? if x can match nothing
            kind, slot = (_LOOP, self.slots) if nullable else (_SPLIT, 0)
            self.slots += nullable
            code = [*body * max(least, 1), split(kind, -size, 1, slot)]
            if not least:
                code.insert(0, split(_SPLIT, 1, len(code) + 1))
        else:
            code = [split(_SPLIT, 1, size + 2), *body, (_JUMP, -size - 1, None, 0)]
        return _checked(code), nullable or not least


def _checked(code: list[_Instruction]) -> list[_Instruction]:
    _check_size(len(code))
    return code


def _check_size(size: int) -> None:
    if size > MAX_PROGRAM:
        raise EngineError(
            f"a regular expression is larger than {MAX_PROGRAM:,} characters with its repetitions"
            " written out; write fewer or shorter ones"
        )
