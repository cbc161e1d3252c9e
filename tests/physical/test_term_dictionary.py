"""The term dictionary: equal terms have equal ids, and ids have the properties of their terms.

A term has one id whatever its source (a term, a text in a list, an Arrow array or a dictionary-
encoded array, in a small or large batch, or a computed number), and the id maps back to the term.
Properties of ids are compared with the definitions in the algebra. The tests have terms that
N-Triples can express and terms that only a computation can create, but not millions of them.
"""

from __future__ import annotations

import math
import random
import sys
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import rdflib
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsparql.algebra.ntriples import parse_term
from streamsparql.algebra.order import order_key
from streamsparql.algebra.terms import IRI, RDF, XSD, BlankNode, Literal, Term
from streamsparql.algebra.xsd.numeric import EXACT, INTEGERS, Single, double
from streamsparql.algebra.xsd.values import literal_of, value_of
from streamsparql.physical.dictionary import inline_ids, inline_parsing
from streamsparql.physical.dictionary.term_dictionary import (
    BLANK_SORT,
    DECIMAL,
    DOUBLE,
    FLOAT,
    INTEGER,
    IRI_SORT,
    LITERAL_SORT,
    NO_NUMBER,
    UNBOUND_SORT,
    TermDictionary,
)
from streamsparql.sources.term_texts import ntriples_texts

# -- Terms, and texts that may or may not be terms ----------------------------------------------

NASTY = [
    "",
    " ",
    "01",
    "+1",
    "-0",
    "-0.0",
    "0.0",
    "1.",
    ".5",
    "-.5",
    "1e400",
    "1.0E400",
    "-1.0E-400",
    "1.0E6",
    "1.0E-7",
    "1e6",
    "1000000",
    "999999.9",
    "0.000001",
    "0.0000001",
    "1.7976931348623157E308",
    "5.0E-324",
    "9007199254740993",
    "9" * 18,
    "-" + "9" * 18,
    "1" + "0" * 18,
    "9" * 19,
    "9" * 400,
    "9" * 5000,
    "0." + "0" * 14 + "1",
    "0." + "0" * 15 + "1",
    "999999999999999",
    "9999999999999999",
    "22.500000",
    "22.123456",
    "NaN",
    "INF",
    "-INF",
    "+INF",
    "true",
    "1",
    "0",
    "TRUE",
    "a\nb",
    'a"b',
    "a\\b",
    "a\x00b",
    "a\x7fb",
    "ä€😀",
    "\ud800",
    "１",
    "1\n",
    "1 ",
    "2020-02-30",
    "2020-02-29T00:00:00Z",
    "P1D",
]
NUMERIC = ["integer", "decimal", "float", "double", "boolean", "byte", "long", "unsignedLong"]
DATATYPES = [
    *(IRI(XSD + name) for name in (*NUMERIC, "string", "dateTime", "duration")),
    IRI(RDF + "langString"),
    IRI("http://example.org/d"),
    IRI("relative d"),
]

digits = st.from_regex(r"[+-]?[0-9]{0,17}(\.[0-9]{0,17})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
canonical_numbers = st.one_of(
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.floats(-1e7, 1e7),
    st.decimals(allow_nan=False, allow_infinity=False).filter(lambda d: abs(d.adjusted()) < 50),
    st.floats(width=32).map(Single.nearest),
    st.booleans(),
).map(literal_of)
lexicals = st.one_of(st.sampled_from(NASTY), digits, st.text(max_size=6))
literals = st.one_of(
    st.builds(Literal, lexicals, st.sampled_from(DATATYPES)),
    st.builds(
        lambda text, tag: Literal(text, language=tag), lexicals, st.sampled_from(["en", "FR-be"])
    ),
    canonical_numbers,
)
iris = st.one_of(st.sampled_from(NASTY), st.text(max_size=6)).map(IRI)
blanks = st.sampled_from(["b", "b0", "s.b", "_:", "ü"]).map(BlankNode)
terms = st.one_of(literals, iris, blanks)

UPPER = '"a"@EN-Us'
spellings = st.one_of(
    terms.map(str),
    terms.map(lambda term: f'"{term}"'),
    lexicals,
    lexicals.map(lambda text: f'"{text}"'),
    lexicals.map(lambda text: f"<{text}>"),
    st.tuples(lexicals, st.sampled_from(DATATYPES)).map(lambda pair: f'"{pair[0]}"^^{pair[1]}'),
    st.sampled_from(
        [
            UPPER,
            '"a"@en-us',
            "_:b",
            "_: b",
            "_:",
            "<a b>",
            "<a\\u0020b>",
            "<a\\u0062>",
            "<ab>",
            '"\\u0061"',
            '"a"',
            '"\\uD800"',
            '"\\U00110000"',
            '"\\q"',
            '"a\tb"',
            '"a\\tb"',
            '"',
            '"a',
            "<",
            f'"a"^^<{XSD}string>',
            f'"\\u0031"^^<{XSD}integer>',
            f'"1"^^<{XSD}\\u0069nteger>',
            f'"^^<{XSD}double>',
            f'<"1"^^<{XSD}double>',
            f'""^^<{XSD}integer>',
            '"a"^^<>',
            '"a"@',
            "<\u2028>",
            "<\xa0>",
            "<\x01>",
            '"a\x85"',
        ]
    ),
)


def as_arrow(texts: list[str | None]) -> pa.Array | None:
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return None


# -- One term, one id ---------------------------------------------------------------------------


@given(st.lists(terms, min_size=1, max_size=8))
def test_ids_are_equal_exactly_if_terms_are(sample: list[Term]) -> None:
    dictionary = TermDictionary()
    ids = [dictionary.id_of(term) for term in sample]
    for one, a in zip(sample, ids, strict=True):
        assert dictionary.term_of(a) == one
        for other, b in zip(sample, ids, strict=True):
            assert (a == b) == (one == other)
    assert dictionary.ids_of([*sample, None]).tolist() == [*ids, 0]
    assert dictionary.terms_of(np.array([*ids, 0])) == [*sample, None]


@given(st.lists(spellings | st.none(), min_size=1, max_size=8), st.sampled_from(["", "s."]))
def test_texts_are_encoded_as_the_terms_they_parse_to(texts: list[str | None], source: str) -> None:
    parsed = [None if text is None else parse_term(text, source) for text in texts]
    many = texts * (300 // len(texts) + 1)  # enough for the vectorised path
    expected = [parsed[k % len(texts)] for k in range(len(many))]
    array = as_arrow(many)
    sources = [many] if array is None else [many, array, array.dictionary_encode()]
    for values in [texts, *sources]:
        dictionary = TermDictionary()
        ids = dictionary.encode(values, source)
        assert dictionary.terms_of(ids) == expected[: len(ids)]
        again = [0 if term is None else dictionary.id_of(term) for term in expected[: len(ids)]]
        assert ids.tolist() == again == dictionary.encode(values, source).tolist()


@given(st.lists(terms, max_size=8))
def test_texts_are_written_as_terms_are_and_read_back(sample: list[Term]) -> None:
    dictionary = TermDictionary()
    ids = np.append(dictionary.ids_of(sample), [0, 0]).repeat(2)
    written = dictionary.texts(ids).to_pylist()
    assert written == dictionary.dictionary(ids).to_pylist()
    assert written[-4:] == [None] * 4
    for text, term in zip(written[:-4:2], sample, strict=True):
        try:
            assert text == str(term)
        except AssertionError:  # half of a surrogate pair is written as an escape
            assert text.encode()
            assert parse_term(text) == term
        if parse_term(str(term)) == term:
            assert dictionary.encode([text])[0] == dictionary.id_of(term)


def test_blank_nodes_are_scoped_to_their_source() -> None:
    dictionary = TermDictionary()
    one, other = (dictionary.encode(["_:b", "_:b"], source).tolist() for source in ("s0.", "s1."))
    assert one[0] == one[1] != other[0] == other[1]
    assert dictionary.encode(["_:s0.b"]).tolist() == one[:1]
    assert dictionary.term_of(other[0]) == BlankNode("s1.b")


def test_arrays_reject_the_same_white_space_in_iris() -> None:
    spaces = [chr(code) for code in range(sys.maxunicode + 1) if chr(code).isspace()]
    texts = [f"<a{space}b>" for space in spaces] * 20
    assert not TermDictionary().encode(pa.array(texts)).any()


def test_chunked_and_sliced_arrays_are_encoded() -> None:
    texts = [f'"{k % 7}.{k}"^^<{XSD}double>' for k in range(1000)] + ["<a>", None, "nothing"]
    dictionary = TermDictionary()
    expected = dictionary.encode(texts).tolist()
    whole = pa.array(texts)
    chunks = pa.chunked_array([whole[:10], whole[10:900], whole[900:]])
    assert dictionary.encode(chunks).tolist() == expected
    assert dictionary.encode(whole[300:]).tolist() == expected[300:]
    assert dictionary.encode(whole.cast(pa.large_string())).tolist() == expected
    assert dictionary.encode(whole.dictionary_encode()[500:]).tolist() == expected[500:]
    assert dictionary.encode([]).tolist() == dictionary.encode(chunks[:0]).tolist() == []


# -- Inlined literals ---------------------------------------------------------------------------


def inlined_ids(texts: pa.Array) -> np.ndarray:
    return inline_parsing.inlined_ids(
        inline_parsing.TextSpans.of_array(texts), lambda at: texts.take(pa.array(at))
    )


names = st.sampled_from([*inline_ids.ENDS])


@given(st.lists(lexicals | canonical_numbers.map(lambda literal: literal.lexical)), names)
def test_arrays_of_lexical_forms_are_parsed_like_single_forms(forms: list[str], name: str) -> None:
    forms = [form for form in forms if as_arrow([form]) is not None]
    texts = pa.array([f'"{form}{inline_ids.ENDS[name]}' for form in forms], pa.string())
    expected = [inline_parsing.lexical_id(form, name) for form in forms]
    assert inlined_ids(texts).tolist() == expected
    for form, id_ in zip(forms, expected, strict=True):
        if id_:
            assert inline_ids.inlined_literal(id_) == Literal(form, IRI(XSD + name))


@pytest.mark.parametrize("name", [*inline_ids.ENDS])
def test_numbers_of_any_size_are_parsed_in_arrays_like_single_forms(name: str) -> None:
    draw = random.Random(7)
    forms = [f"{draw.uniform(-30, 30):.6f}" for _ in range(2000)]
    forms += [str(draw.randrange(-(10**k), 10**k)) for k in range(1, 21) for _ in range(100)]
    forms += [repr(draw.uniform(-1, 1) * 10.0 ** draw.randrange(-12, 12)) for _ in range(2000)]
    forms += [
        literal_of(draw.uniform(-1, 1) * 10.0 ** draw.randrange(-300, 300)).lexical
        for _ in range(2000)
    ]
    forms += ["".join(draw.choices("0123.-E", k=draw.randrange(1, 6))) for _ in range(2000)]
    ids = inlined_ids(pa.array([f'"{form}{inline_ids.ENDS[name]}' for form in forms]))
    assert ids.tolist() == [inline_parsing.lexical_id(form, name) for form in forms]
    kept = [form for form, id_ in zip(forms, ids.tolist(), strict=True) if id_]
    written = TermDictionary().texts(ids[ids != 0]).to_pylist()
    assert written == [f'"{form}{inline_ids.ENDS[name]}' for form in kept]


@given(canonical_numbers)
def test_a_computed_number_has_the_id_of_its_literal(literal: Literal) -> None:
    dictionary, value = TermDictionary(), value_of(literal)
    expected = dictionary.id_of(literal)
    if isinstance(value, bool):
        assert dictionary.of_booleans(np.array([value])).tolist() == [expected]
    elif isinstance(value, int) and abs(value) < 1 << 63:
        assert dictionary.of_integers(np.array([value])).tolist() == [expected]
    elif type(value) is float:
        assert dictionary.of_doubles(np.array([value])).tolist() == [expected]
    if type(value) in (int, float):
        assert dictionary.encode([str(literal)] * 300).tolist() == [expected] * 300


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 18))
def test_decimals_are_encoded_from_scaled_integers(scaled: int, places: int) -> None:
    dictionary = TermDictionary()
    expected = dictionary.id_of(literal_of(EXACT.scaleb(Decimal(scaled), -places)))
    assert dictionary.of_decimals(np.array([scaled]), places).tolist() == [expected]


@given(st.lists(st.integers(-(10**18) + 1, 10**18 - 1), min_size=2))
def test_ids_of_inlined_integers_and_doubles_are_in_the_order_of_their_values(
    values: list[int],
) -> None:
    dictionary = TermDictionary()
    integers = np.array(sorted(values))
    assert (np.diff(dictionary.of_integers(integers)) >= 0).all()
    assert (np.diff(dictionary.of_doubles(integers / 1000)) >= 0).all()
    assert dictionary.integers_of(dictionary.of_integers(integers)).tolist() == integers.tolist()


@given(st.lists(st.floats() | st.floats(1e5, 1e23) | st.floats(1e-9, 1e-3)))
def test_doubles_are_written_as_their_literals(values: list[float]) -> None:
    written = inline_ids.double_texts(np.array(values, np.float64)).to_pylist()
    assert written == [literal_of(value).lexical for value in values]


def test_doubles_with_trailing_zeros_are_inlined() -> None:
    dictionary = TermDictionary()
    texts = [f'"{k / 8:.6f}"^^<{XSD}double>' for k in range(1000)]
    assert (dictionary.encode(texts) < 0).all()
    assert len(dictionary) == 0


DIGITS = st.from_regex(r"-?(0|[1-9][0-9]{0,9})(\.[0-9]{1,10})?", fullmatch=True)


@given(st.lists(DIGITS | st.sampled_from(NASTY), min_size=16, max_size=80), st.booleans())
def test_numbers_of_one_type_are_encoded_together_as_one_by_one(
    lexical: list[str], doubles: bool
) -> None:
    end = f'"^^<{XSD}{"double" if doubles else "integer"}>'
    alike = [f'"{text}{end}' for text in lexical]
    for texts in (alike, [*alike, f'"1{end}\n"2{end}'], [*alike, "<a>"]):
        together = TermDictionary()
        ids, one_by_one = together.encode(texts), [together.encode([text])[0] for text in texts]
        assert ids.tolist() == one_by_one
    plain = [text for text in alike if "." in text or not doubles]
    parsed = inline_parsing.alike_ids(plain) if plain else None
    if parsed is not None:
        expected = [inline_parsing.inlined_id(text) for text in plain]
        assert [one or expected[k] for k, one in enumerate(parsed.tolist())] == expected


# -- Properties of terms ------------------------------------------------------------------------

KINDS = {int: INTEGER, Decimal: DECIMAL, Single: FLOAT, float: DOUBLE}


@given(st.lists(terms, max_size=8), st.integers(1, 60))
def test_numbers_are_the_values_of_terms(sample: list[Term], repeats: int) -> None:
    dictionary = TermDictionary()
    sample = sample * repeats
    ids = dictionary.ids_of(sample)
    numbers = dictionary.numbers(ids)
    integers, whole = dictionary.exact_integers(ids)
    scaled, exact = dictionary.decimals(ids)
    for k, term in enumerate(sample):
        value = value_of(term)
        kind = KINDS.get(type(value), NO_NUMBER)
        assert numbers.kinds[k] == kind
        if isinstance(value, int | float | Decimal) and kind:
            nearest = double(value)
            assert numbers.values[k] == nearest or math.isnan(nearest)
            assert math.copysign(1, numbers.values[k]) == math.copysign(1, nearest)
        fits = kind == INTEGER and abs(value) < 1 << 63
        assert whole[k] == fits
        assert not fits or integers[k] == value
        millionths = EXACT.scaleb(Decimal(value), 6) if kind in (INTEGER, DECIMAL) else None
        if exact[k]:
            assert scaled[k] == millionths
            assert abs(int(scaled[k])) <= 1 << 53
        elif millionths is not None and millionths.copy_abs() < 1 << 53:
            assert millionths != millionths.to_integral_value()


@pytest.mark.parametrize("name", [*INTEGERS, "decimal", "float", "double", "boolean", "string"])
def test_numbers_of_many_new_literals_are_their_values(name: str) -> None:
    draw = random.Random(3)
    forms = [f"0{draw.randrange(-(10**k), 10**k)}" for k in range(1, 21) for _ in range(20)]
    forms += [f"+{draw.uniform(-1, 1) * 10.0 ** draw.randrange(-30, 30)!r}" for _ in range(300)]
    forms += [f"{draw.uniform(-1, 1):.20f}" for _ in range(300)]
    forms += [f"{draw.uniform(-1, 1)}e{draw.randrange(-400, 400)}" for _ in range(300)]
    sample = [Literal(form, IRI(XSD + name)) for form in NASTY + forms]
    dictionary = TermDictionary()
    ids = dictionary.ids_of(sample)
    numbers = dictionary.numbers(ids)
    for term, number, kind in zip(sample, numbers.values.tolist(), numbers.kinds, strict=True):
        value = value_of(term)
        assert kind == KINDS.get(type(value), NO_NUMBER), term
        if kind:
            assert number == (expected := double(value)) or math.isnan(expected), term


@given(st.lists(st.none() | terms, max_size=12))
def test_ranks_are_in_the_order_of_terms(sample: list[Term | None]) -> None:
    dictionary = TermDictionary()
    ranks = dictionary.order_ranks(dictionary.ids_of(sample)).tolist()
    keys = [order_key(term) for term in sample]
    for a, one in zip(ranks, keys, strict=True):
        for b, other in zip(ranks, keys, strict=True):
            assert (a < b) == (one < other)


def test_each_nasty_term_has_its_rank() -> None:
    sample: list[Term | None] = [Literal(form, kind) for form in NASTY for kind in DATATYPES]
    sample += [None, *map(IRI, NASTY), *map(BlankNode, "abc"), Literal("1", language="en")]
    dictionary = TermDictionary()
    ranks = dictionary.order_ranks(dictionary.ids_of(sample)).tolist()
    expected = sorted(sample, key=order_key)
    assert [sample[k] for k in np.argsort(ranks, kind="stable")] == expected


@given(st.lists(terms, max_size=12))
def test_sorts_are_the_classes_of_terms(sample: list[Term]) -> None:
    sort = {IRI: IRI_SORT, BlankNode: BLANK_SORT, Literal: LITERAL_SORT, type(None): UNBOUND_SORT}
    dictionary = TermDictionary()
    ids = dictionary.ids_of([*sample, None])
    assert dictionary.sorts(ids).tolist() == [sort[type(term)] for term in [*sample, None]]
    plain = [type(term) is Literal and term.datatype == IRI(XSD + "string") for term in sample]
    assert dictionary.plain_strings(ids).tolist() == [*plain, False]


# -- Recycling ----------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.data())
def test_ids_in_use_keep_their_meaning(data: st.DataObject) -> None:
    dictionary = TermDictionary()
    live: dict[int, Term] = {}
    kept = {dictionary.id_of(term, keep=True): term for term in data.draw(st.lists(terms))}
    for _ in range(data.draw(st.integers(1, 6))):
        sample = data.draw(st.lists(terms, max_size=6))
        if data.draw(st.booleans()):
            ids = dictionary.ids_of(sample)
        else:
            sample = [term for term in sample if parse_term(str(term)) == term]
            ids = dictionary.encode([str(term) for term in sample])
        live.update(zip(ids.tolist(), sample, strict=True))
        dictionary.numbers(ids)
        for id_, term in {**live, **kept}.items():
            assert dictionary.term_of(id_) == term
            assert dictionary.id_of(term) == id_
        live = {k: term for k, term in live.items() if data.draw(st.booleans())}
        before = len(dictionary)
        freed = dictionary.recycle([np.array([*live], np.int64), np.zeros(1, np.int64)])
        in_use = {k for k in (*live, *kept) if k > 0}
        assert len(dictionary) == before - freed == len(in_use)


def test_entries_are_bounded_by_the_terms_in_use() -> None:
    dictionary = TermDictionary()
    park = dictionary.encode([f"<http://example.org/turbine/{k}>" for k in range(100)])
    rows: list[np.ndarray] = []
    most = 0
    for batch in range(60):
        texts = [f'"reading {batch} {k}"' for k in range(5000)]
        texts += [f'"0{batch}{k}"^^<{XSD}integer>' for k in range(500)]
        rows = [*rows[-1:], dictionary.encode(texts)]
        dictionary.numbers(rows[-1])
        if dictionary.due():
            dictionary.recycle([park, *rows])
        most = max(most, len(dictionary))
    assert most <= (1 << 16) + 6000
    assert len(dictionary._forms) <= 1 << 18
    assert dictionary.texts(rows[-1]).to_pylist() == texts
    assert dictionary.texts(park)[7].as_py() == "<http://example.org/turbine/7>"


def test_other_spellings_are_removed_with_the_entry() -> None:
    dictionary = TermDictionary()
    old = dictionary.encode([UPPER]).tolist()
    dictionary.recycle([])
    assert dictionary.encode(["<new>", UPPER]).tolist() == [*old, old[0] + 1]


@pytest.mark.long
@settings(max_examples=2000)
@given(st.lists(spellings, min_size=1, max_size=4), st.sampled_from(["", "s."]))
def test_many_texts_are_encoded_as_the_terms_they_parse_to(texts: list[str], source: str) -> None:
    test_texts_are_encoded_as_the_terms_they_parse_to.hypothesis.inner_test(texts, source)


@given(st.lists(terms, min_size=1, max_size=8), st.sampled_from([1, 3, 12, 80]))
@settings(max_examples=30)
def test_texts_are_the_same_on_repeated_calls(sample: list[Term], repeats: int) -> None:
    dictionary = TermDictionary()
    ids = np.repeat(dictionary.ids_of([*sample, *map(literal_of, range(repeats))]), repeats)
    first = dictionary.texts(ids).to_pylist()
    assert dictionary.texts(ids).to_pylist() == first
    assert dictionary.texts(ids[::-1]).to_pylist() == first[::-1]
    assert dictionary.terms_of(ids) == [dictionary.term_of(one) for one in ids.tolist()]


def test_terms_of_other_libraries_are_converted_only_if_unknown() -> None:
    """A term of rdflib is also a string, but not its N-Triples text."""
    dictionary = TermDictionary()
    known = dictionary.encode(["<http://ex.org/a>", '"b"', "_:c"]).tolist()
    others = [
        rdflib.URIRef("http://ex.org/a"),
        rdflib.Literal("<http://ex.org/a>"),
        "<http://ex.org/a>",
        rdflib.Literal("b"),
        None,
    ]
    for repeats in (1, 40, 400):
        ids = dictionary.encode(others * repeats, "", ntriples_texts)
        assert ids.tolist() == [known[0], ids[1], known[0], known[1], 0] * repeats
        assert dictionary.term_of(int(ids[1])) == Literal("<http://ex.org/a>")
