"""Regular expressions have XPath's syntax and meaning, not Python's."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.expressions import call_value, oxigraph

from streamsparql.algebra.terms import Literal, boolean
from streamsparql.algebra.xsd import regex
from streamsparql.algebra.xsd.regex import regex_matches, replace_matches
from streamsparql.errors import EngineError


@pytest.mark.parametrize(
    ("pattern", "matching", "failing"),
    [
        ("b", ["abc"], ["aBc", ""]),
        ("^a$", ["a"], ["a\n", "ba"]),
        ("a.c", ["abc", "a\rc"], ["a\nc"]),
        ("^.$", ["\U0001f46a"], ["ab"]),
        ("^(ab|a)?$", ["", "a", "ab"], ["b"]),
        ("^a{2,3}?$", ["aa", "aaa"], ["a", "aaaa"]),
        ("^(?:a|b)+$", ["abba"], ["abc"]),
        (r"^\.\*\\\^\$\-$", [r".*\^$-"], ["a"]),
        (r"^[\^\]a\-b]$", ["^", "]", "a", "-", "b"], ["c"]),
        ("^[a-]$", ["a", "-"], ["b"]),
        ("^[-a]$", ["a", "-"], ["b"]),
        ("^[a^]$", ["a", "^"], ["b"]),
        ("^[^a]$", ["b", "\n"], ["a"]),
        ("^[a-z-[aeiou]]+$", ["xyz"], ["a", "-"]),
        ("^[^a-c-[x]]$", ["y"], ["a", "x"]),
        ("^[a-z-[aeiou-[u]]]$", ["b", "u"], ["a"]),
        (r"^\s$", [" ", "\t"], ["\u00a0"]),  # XML's four characters, not Unicode's white space
        (
            r"^\w$",
            ["a", "\u00e9", "+", "7"],
            ["_", "-", " "],
        ),  # all except punctuation, separators and control characters
        (r"^\d\D$", ["7x", "\u0663x"], ["77"]),
        (r"^[\d-[5-9]]$", ["3"], ["7"]),
        (r"^[^\s\d]$", ["x"], ["1", " "]),
        (r"^\i\c*$", ["_a-1", "xs:int"], ["1a", "-"]),
        (r"^\p{Lu}\p{L}\P{L}$", ["Ab1"], ["ab1", "Abc"]),
        (r"^[\p{Lu}\p{Nd}]$", ["A", "1"], ["a"]),
        (r"^\p{IsGreek}\P{IsGreek}$", ["\u03b1a"], ["aa"]),
        (r"^(a)(b)\2\1$", ["abba"], ["abab"]),
        (r"^((a)|b)\2$", ["aa", "b"], ["ba"]),  # a group that did not match is empty
        (r"^(a)\11$", ["aa1"], ["aa"]),  # group 1, then "1"
        (r"^(?:|a)*b$", ["aab", "b"], ["a"]),
        (r"^(?:[a-c-[a-c]]|d)$", ["d"], ["a"]),
    ],
)
def test_patterns_have_the_meaning_of_xpath(
    pattern: str, matching: list[str], failing: list[str]
) -> None:
    matched = {
        text: call_value(f"REGEX({Literal(text)}, {Literal(pattern)})")
        for text in matching + failing
    }
    expected = {text: boolean(text in matching) for text in matching + failing}
    assert matched == expected


@pytest.mark.parametrize(
    ("flags", "pattern", "matching", "failing"),
    [
        ("i", "\u00c9b", ["\u00e9B"], ["eb"]),
        ("i", "^[a-c]$", ["B"], ["D"]),
        ("i", r"^(a)\1$", ["aA"], ["ab"]),
        ("i", r"^\p{Lu}$", ["A"], ["a"]),  # the flag applies to characters, not to categories
        ("i", r"^[\p{Lu}x]$", ["A", "x", "X"], ["a"]),
        ("i", r"^[^\p{Lu}x]$", ["a"], ["A", "x", "X"]),
        ("s", "a.c", ["a\nc"], ["ac"]),
        ("m", "^b$", ["a\nb\nc", "b"], ["ab"]),
        ("m", "^$", ["\n\n", ""], ["a\n"]),  # no line begins after the last newline
        ("x", " a\tb [ ] c ", ["ab c"], ["a b c"]),
        ("x", r"a \[ b \ ] c", ["a[b]c"], ["abc"]),
        ("q", "a.b*", ["a.b*"], ["axb"]),
        ("iq", "A.", ["a."], ["ab"]),
        ("smixq", "a b", ["A B"], ["ab"]),
    ],
)
def test_flags_have_the_meaning_of_xpath(
    flags: str, pattern: str, matching: list[str], failing: list[str]
) -> None:
    for text in matching + failing:
        matched = call_value(f"REGEX({Literal(text)}, {Literal(pattern)}, {Literal(flags)})")
        assert matched == boolean(text in matching), text


@pytest.mark.parametrize(
    "pattern",
    [
        *("*a", "a**", "a++", "a|*", "(", ")", "(a", "a)", "(?=a)", "(?i)a", "]", "{", "}"),
        *("a{,2}", "a{2,1}", "a{99999999999}", "[", "[]", "[^]", "[z-a]", "[a-c-e]", "[[a]]"),
        *("[a-z-[b]c]", r"[\b]", "\\", r"\b", r"\Z", r"\q", r"\0", r"\pL", r"\p{Xx}"),
        *(r"\p{IsKlingon}", r"(a\1)", r"\1(a)"),
    ],
)
def test_invalid_patterns_are_errors(pattern: str) -> None:
    assert call_value(f'REGEX("a", {Literal(pattern)})') is None


patterns = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from("?*+")).map(lambda two: f"({two[0]}){two[1]}"),
    ),
    max_leaves=5,
)


@given(st.text("abc", max_size=8), patterns)
def test_matches_and_replacements_agree_with_pyoxigraph(text: str, pattern: str) -> None:
    search = f"REGEX({Literal(text)}, {Literal(pattern)})"
    assert [call_value(search)] == oxigraph(search)
    replace = f'REPLACE({Literal(text)}, {Literal(pattern)}, "<$0>")'
    if call_value(replace) is not None:
        assert [call_value(replace)] == oxigraph(replace)


# -- Time that is linear in the text ------------------------------------------------------------

HOSTILE = [
    "(a+)+$",
    "(a|a)*$",
    "(a|aa)+$",
    "(.*a){20}$",
    "a*a*a*a*a*a*$",
    "(a*)*$",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_no_pattern_takes_exponential_time(pattern: str) -> None:
    """Each of these never ends if matching tries all ways."""
    text = "a" * 3_000 + "b"
    assert not regex_matches(text, f"^{pattern}")
    assert regex_matches(text[:-1], f"^{pattern}")
    assert replace_matches(text, f"x{pattern}|b", "c") == "a" * 3_000 + "c"
    assert replace_matches(text, f"a{pattern}", "c") == text


def test_a_failed_attempt_is_not_repeated_by_the_next_match() -> None:
    """Each of 20,000 matches first looks for a b, up to the end of the text."""
    assert replace_matches("a" * 20_000, "a.*b|a", "c") == "c" * 20_000


def test_back_references_have_a_bounded_number_of_steps() -> None:
    assert regex_matches("ab" * 500 + "=" + "ab" * 500, r"^([a-z]+)=\1$")
    with pytest.raises(EngineError, match="a regular expression with a back-reference took more"):
        regex_matches("a" * 3_000, r"^(a*)*(a*)*\1\2b")


def test_repetitions_have_a_bounded_size() -> None:
    assert regex_matches("a" * 1_000, "^a{1000}$")
    for pattern in (
        "a{20000}",
        "((a{100}){100}){100}",
        "(a{1,99999}){1,99999}",
        "(" * 99 + "a" + "){9}" * 99,
    ):
        with pytest.raises(EngineError, match="larger than 10,000 characters"):
            regex_matches("a", pattern)


def test_both_ways_to_match_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long text has the matches and the groups that a short one would have."""
    drawn = random.Random(1)
    compared = 0
    for _ in range(300):
        pattern, flags = _random_pattern(drawn, 3), "".join(drawn.sample("sim", 2))
        texts = ["".join(drawn.choices("aabAB\n", k=drawn.randrange(8))) for _ in range(5)]
        compiled = regex._Regex(*regex.parse_regex(pattern, flags))
        monkeypatch.setattr(compiled, "_longest", 100)
        by_backtracking = _answers(compiled, texts)
        monkeypatch.setattr(compiled, "_longest", -1)
        assert _answers(compiled, texts) == by_backtracking, (pattern, flags)
        compared += 1
    assert compared == 300


def _answers(compiled: regex._Regex, texts: list[str]) -> list[object]:
    answers: list[object] = [compiled.matches(text) for text in texts]
    if not compiled.matches(""):
        answers += [
            compiled.replace(text, lambda groups: f"<{','.join(groups)}>") for text in texts
        ]
    return answers


def _random_pattern(drawn: random.Random, depth: int) -> str:
    """Return a pattern; what is repeated matches at least one character."""
    kind = drawn.randrange(5) if depth else 0
    if kind == 0:
        return drawn.choice(["a", "b", ".", "[ab]", "[^a]", "A", "^", "$", "\\w"])
    if kind == 1:
        return _random_pattern(drawn, depth - 1) + _random_pattern(drawn, depth - 1)
    if kind == 2:
        return f"({_random_pattern(drawn, depth - 1)}|{_random_pattern(drawn, depth - 1)})"
    times = drawn.choice(["?", "*", "+", "{2}", "{1,2}", "{0,2}", "{2,}"]) + drawn.choice(["", "?"])
    return f"({drawn.choice('ab.')}{_random_pattern(drawn, depth - 1)}){times}"
