"""Rules for windows: at a wrong place, or as in another language."""

from __future__ import annotations

import re
from difflib import get_close_matches

from streamsparql.translator.hints.functions import WINDOW_FUNCTIONS
from streamsparql.translator.hints.place import Place

_LENGTH = re.compile(r"\s*\(?\s*(?:SIZE\s+)?'?(\d+)'?\s*([A-Za-z]+)?", re.I)
_MILLISECONDS = {
    **dict.fromkeys(("SECOND", "SEC", "S"), 1000),
    **dict.fromkeys(("MINUTE", "MIN", "M"), 60_000),
    **dict.fromkeys(("HOUR", "H"), 3_600_000),
    **dict.fromkeys(("DAY", "D"), 86_400_000),
}
_EVENTS = ("SEQ", "EQUALS", "OPTIONALSEQ", "EQUALSOPTIONAL")
_ANY = "write WINDOW RANGE 1 MINUTE, or WINDOW ELEMS 100"


def event_operators(at: Place) -> str:
    """Recognise event operators without braces."""
    if at.word in _EVENTS and "OPTIONAL" in at.terminals:
        return "write the operands of an event operator in braces: { .. } SEQ { .. }"
    return ""


def durations(at: Place) -> str:
    """Recognise malformed durations, and lengths that are not whole numbers with a unit."""
    if at.token.type == "" and "XSD_DURATION" in at.terminals and at.word.startswith("P"):
        if at.token.text != at.word and re.fullmatch(r"P(\d+D)?(T(\d+[HMS])+)?", at.word):
            return f"write durations in upper case: {at.word}"
        return "write durations as PT10S, PT1H30M or P7D"
    if at.last() in ("RANGE", "SLIDE", "STEP") and at.token.type == "DECIMAL":
        return _whole_number(at)
    if at.before and at.before[-1].type.startswith("STRING") and at.last(2) == "RANGE":
        return f"write the number without quotes: {at.last_text()[1:-1]} {at.token.text}"
    if at.is_word and "TIME_UNIT" in at.terminals and at.last(2) in ("RANGE", "SLIDE", "STEP"):
        if at.word not in ("STEP", "TUMBLING"):
            near = get_close_matches(at.word.removesuffix("S"), _MILLISECONDS, 1, 0.6)
            return f"did you mean {near[0]}?" if near else "the units are ms, s, m, h, d and w"
    return ""


def _whole_number(at: Place) -> str:
    unit = re.match(r"\s*([A-Za-z]+)", at.after)
    name = unit[1].upper() if unit else "MS"
    factor = _MILLISECONDS.get(name, _MILLISECONDS.get(name.removesuffix("S"), 1))
    milliseconds = round(float(at.token.text) * factor)
    seconds, rest = divmod(milliseconds, 1000)
    return f"write a whole number: {f'{milliseconds} MS' if rest else f'{seconds} SECOND'}"


def misplaced_windows(at: Place) -> str:
    """Recognise windows at a wrong place, and windows of other languages."""
    if at.word == "WINDOW" and at.last(2) == "FROM" and at.before[-1].type in at.iris:
        return f"only streams have windows: write FROM STREAM {at.last_text()} WINDOW .."
    if at.word == "WINDOW" and at.last() == "}":
        return "write the window after its stream, before WHERE: FROM STREAM <s> WINDOW .. { .. }"
    if at.word == "RANGE" and "WINDOW" in at.terminals:
        return "write WINDOW before RANGE"
    if at.word == "STEP" and "SLIDE" in at.terminals:
        return "write SLIDE; STEP belongs in brackets: [RANGE .. STEP ..]"
    if at.word == "TUMBLING" and "FIXED" in at.terminals:
        return "write FIXED; TUMBLING belongs in brackets: [RANGE .. TUMBLING]"
    if at.last() == "WINDOW" and "RANGE" in at.terminals:
        return _after_window(at)
    if at.word in WINDOW_FUNCTIONS and at.is_word:
        return _function(at.word)
    if at.word == "EVERY" and "COMPUTED" not in at.terminals:
        return "reports are options of the run: --every 5s, or every= in Python"
    return _bracketed(at)


def _bracketed(at: Place) -> str:
    if at.last() == "[" and "RANGE" in at.terminals:
        return "write [RANGE 5m STEP 1m]"
    if at.token.text == "," and at.closing == "RSQB":
        return "write no comma in a window: [RANGE 5m STEP 1m]"
    if at.token.text == "(" and at.after.lstrip().upper().startswith("RANGE"):
        return "write the window in square brackets: [RANGE .. STEP ..]"
    return ""


def _after_window(at: Place) -> str:
    """Recognise what follows WINDOW in other languages."""
    if at.token.text == "[":
        return "write the brackets without WINDOW: FROM STREAM <s> [RANGE .. STEP ..]"
    if at.word in ("ROWS", "TRIPLES", "ELEMENTS", "TUPLES"):
        count = re.match(r"\s*(\d+)", at.after)
        return f"write WINDOW ELEMS {count[1] if count else 100}, which counts triples"
    if at.word == "SLIDE":
        return "write the length first: WINDOW RANGE 1 MINUTE SLIDE 10 SECOND"
    if at.word in WINDOW_FUNCTIONS:
        return _function(at.word)
    length = _LENGTH.match(at.since if at.word[:1].isdigit() else at.after)
    if length and length[2] and at.token.text != "{":
        return f"write WINDOW RANGE {length[1]} {length[2].upper()}"
    return _ANY


def _function(word: str) -> str:
    """Return the window that a window function of SQL means."""
    if word == "SESSION":
        return "there are no session windows; a window has a fixed length: WINDOW RANGE 5 MINUTE"
    moves = "FIXED" if word.startswith("TUMBL") else "SLIDE 10 SECOND"
    return f"a window belongs to its stream: FROM STREAM <s> WINDOW RANGE 1 MINUTE {moves}"
