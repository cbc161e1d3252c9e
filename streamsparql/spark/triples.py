"""The triples of static graphs as DataFrames: files that tasks read, DataFrames, tables.

The columns are `s`, `p` and `o`: terms in normal form, so that equal texts are equal terms, with
the labels of blank nodes scoped to their graph. A triple may come more than once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamsparql.algebra.match import TriplePattern
from streamsparql.algebra.solutions import Variable
from streamsparql.algebra.terms import IRI
from streamsparql.errors import SourceError
from streamsparql.physical.batch import BoolArray, IntArray
from streamsparql.physical.dictionary.term_dictionary import TermDictionary
from streamsparql.sources.chunk import Chunk, Reject, Rejected, Wanted
from streamsparql.sources.encoder import Encoder
from streamsparql.sources.paths import extension_of
from streamsparql.sources.tables import chunks_of_batches, roles
from streamsparql.spark.file_slices import Split, located, split_chunks
from streamsparql.spark.joins import PLACES, Patterns
from streamsparql.spark.tasks import REJECTED, as_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CHUNK = 65_536
TRIPLES = "s string, p string, o string"
"""The schema of triples, as Spark writes it."""


@dataclass(frozen=True, eq=False)
class Source:
    """A static graph, and where its triples are: just one of the last three is there."""

    name: str
    """As people know it."""
    scope: str
    """What goes before the labels of its blank nodes."""
    size: str = ""
    """How large it is, for people."""
    strict: bool = False
    splits: tuple[Split, ...] = ()
    frame: DataFrame | None = None
    table: pa.Table | None = None

    @property
    def what(self) -> str:
        """The graph and how large it is, for people."""
        return f"{self.name} has {self.size}"

    def triples(self, spark: SparkSession, patterns: Patterns) -> DataFrame:
        """The triples that match one of the patterns, and perhaps others."""
        if self.table is not None:
            return spark.createDataFrame(scoped(self.table, self.scope), TRIPLES)
        reading = replace(self, frame=None)
        if self.frame is not None:
            rows = columns_of(self.frame, self.name)
            if patterns is not None and not self.strict:
                rows = rows.where(_possible(patterns))
            return rows.mapInArrow(partial(triples_of_rows, reading, patterns), TRIPLES)
        count = len(self.splits)
        read = partial(triples_of_files, reading, patterns)
        return spark.range(0, count, 1, count).mapInArrow(read, TRIPLES)

    def rejects(self, spark: SparkSession) -> list[Reject]:
        """What in it is no triple; a table in memory has none, as it was read already."""
        reading = replace(self, frame=None, strict=False)
        if self.frame is not None:
            rows = columns_of(self.frame, self.name)
            found = rows.mapInArrow(partial(rejects_of_rows, reading), REJECTED)
        elif self.splits:
            count = len(self.splits)
            read = partial(rejects_of_files, reading)
            found = spark.range(0, count, 1, count).mapInArrow(read, REJECTED)
        else:
            return []
        return [Reject(**row) for row in found.toArrow().to_pylist()]


def scoped(table: pa.Table, scope: str) -> pa.Table:
    """Triples with the labels of their blank nodes scoped, as columns of texts.

    >>> table = pa.table({"subject": ["_:b"], "predicate": ["<p>"], "object": ['"_:b"']})
    >>> scoped(table, "d.").to_pylist()
    [{'s': '_:d.b', 'p': '<p>', 'o': '"_:b"'}]
    """
    texts = [column.cast(pa.string()) for column in table.columns]
    made = [pc.replace_substring_regex(column, "^_:", f"_:{scope}") for column in texts]
    return pa.table(made, names=list(PLACES))


def unscoped(table: pa.Table, scope: str) -> pa.Table:
    """Triples as a source of a graph, which will be scoped once more.

    >>> table = pa.table({"s": ["_:d.b"], "p": ["<p>"], "o": ['"x"']})
    >>> unscoped(table, "d.").to_pylist()
    [{'subject': '_:b', 'predicate': '<p>', 'object': '"x"'}]
    """
    label = f"^_:{re.escape(scope)}"
    made = [pc.replace_substring_regex(column, label, "_:") for column in table.columns]
    return coded(pa.table(made, names=["subject", "predicate", "object"]))


def coded(table: pa.Table) -> pa.Table:
    """A table with each text written once in a column.

    >>> coded(pa.table({"x": ["<a>", "<a>"]})).schema.field("x").type
    DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
    """
    columns = [column.combine_chunks().dictionary_encode() for column in table.columns]
    return pa.table(columns, names=table.column_names)


# -- A DataFrame of the caller ------------------------------------------------------------------


def columns_of(frame: DataFrame, name: str) -> DataFrame:
    """The three columns of a DataFrame, as `s`, `p` and `o`."""
    from pyspark.sql import functions

    part = roles(frame.columns, Encoder(name, TermDictionary()), False)
    kinds = dict(frame.dtypes)
    for column in part.values():
        if kinds[column] != "string":
            raise SourceError(f"{name}: the column {column} holds {kinds[column]}, not terms")
    quoted = {role: "`" + column.replace("`", "``") + "`" for role, column in part.items()}
    return frame.select(*(functions.col(quoted[place]).alias(place) for place in PLACES))


def _possible(patterns: Iterable[TriplePattern]) -> Column:
    """Whether a triple may have the IRIs of a pattern: with escapes in it, one cannot tell."""
    from pyspark.sql import functions

    found: Column = functions.lit(False)
    for pattern in patterns:
        its: Column = functions.lit(True)
        for column, place in zip(PLACES, pattern, strict=True):
            if isinstance(place, IRI) and "\\" not in str(place):
                text = functions.col(column)
                its = its & (
                    (text == functions.lit(str(place)))
                    | functions.contains(text, functions.lit("\\"))
                )
        found = found | its
    return found


# -- In tasks -----------------------------------------------------------------------------------


def triples_of_files(
    source: Source, patterns: Patterns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The triples of the splits whose numbers come."""
    terms = TermDictionary()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            split = source.splits[number]
            names = Generated(split.path) if generates(split.path) else None
            chunks = _named(
                split_chunks(split, _reading(source, terms, patterns), CHUNK, False), split
            )
            yield from _relevant(chunks, patterns, terms, names)


def triples_of_rows(
    source: Source, patterns: Patterns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows that are triples."""
    terms = TermDictionary()
    reading = _reading(source, terms, patterns)
    yield from _relevant(chunks_of_batches(batches, reading, CHUNK, False), patterns, terms)


def _reading(source: Source, terms: TermDictionary, patterns: Patterns) -> Encoder:
    """What reads triples. What is no triple is an error if reading strictly, wanted or not."""
    wanted = None
    if patterns is not None and not source.strict:
        predicates = [pattern.predicate for pattern in patterns]
        constants = [p for p in predicates if not isinstance(p, Variable)]
        if len(constants) == len(predicates):
            wanted = Wanted(frozenset(terms.id_of(p, keep=True) for p in constants))
    return Encoder(source.name, terms, source.scope, wanted, source.strict)


def _relevant(
    chunks: Iterable[Chunk],
    patterns: Patterns,
    terms: TermDictionary,
    names: Generated | None = None,
) -> Iterator[pa.RecordBatch]:
    """The triples that match a pattern, as texts."""
    for chunk in chunks:
        columns = (chunk.s, chunk.p, chunk.o)
        if patterns is not None:
            mask = matches(columns, patterns, terms)
            columns = chunk.s[mask], chunk.p[mask], chunk.o[mask]
        texts = [terms.texts(ids) for ids in columns]
        if names is not None:
            texts = [names.in_order(texts[0]), texts[1], names.in_order(texts[2])]
        yield pa.RecordBatch.from_arrays(texts, list(PLACES))
        if terms.due():
            terms.recycle([])


def matches(
    columns: tuple[IntArray, IntArray, IntArray],
    patterns: Iterable[TriplePattern],
    terms: TermDictionary,
) -> BoolArray:
    """Which triples match one of the patterns.

    >>> x, terms = Variable("x"), TermDictionary()
    >>> pattern = TriplePattern(x, IRI("p"), x)
    >>> s, p, o = map(terms.encode, (["<a>", "<a>"], ["<p>", "<p>"], ["<a>", "<b>"]))
    >>> matches((s, p, o), [pattern], terms).tolist()
    [True, False]
    """
    found = np.zeros(len(columns[0]), np.bool_)
    for pattern in patterns:
        its = np.ones(len(found), np.bool_)
        first: dict[Variable, IntArray] = {}
        for ids, place in zip(columns, pattern, strict=True):
            if isinstance(place, Variable):
                its &= first.setdefault(place, ids) == ids
            else:
                its &= ids == terms.id_of(place, keep=True)
        found |= its
    return found


_NODES = frozenset({"ttl", "n3", "rdf", "owl", "xml", "jsonld", "trig"})
_MADE_UP = r"^_:(?:d\.|g[0-9]+\.)?[a-f][0-9a-f]{19,31}$"
"""A label that pyoxigraph made up, scoped: a number of 128 bits, which begins with a letter."""


def generates(path: str) -> bool:
    """Whether a file may hold blank nodes without labels, which its parser makes up.

    >>> generates("a/b.ttl.gz"), generates("a/b.nt")
    (True, False)
    """
    return extension_of(path) in _NODES


class Generated:
    """The labels that a parser makes up at random, replaced by the same ones at each reading.

    A task that is tried again, or a second job, has to find the same blank nodes in the file.

    >>> labels = ["_:" + "a" * 32, "_:mine", "_:" + "b" * 32]
    >>> one, other = (Generated("f.ttl").in_order(pa.array(labels[::step])) for step in (1, -1))
    >>> one[0] == other[0], one[0] == one[2], str(one[1])
    (True, False, '_:mine')
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, str] = {}

    def in_order(self, texts: pa.Array) -> pa.Array:
        """The texts, made-up labels replaced in the order in which they come."""
        made_up = pc.match_substring_regex(texts, _MADE_UP)
        if not pc.any(made_up).as_py():
            return texts
        labels = pa.array([self._label(text) for text in texts.filter(made_up).to_pylist()])
        return pc.replace_with_mask(texts, made_up, labels)

    def _label(self, text: str) -> str:
        if text not in self._known:
            number = f"{self._path}\n{len(self._known)}"
            digest = hashlib.sha256(number.encode(errors="surrogatepass")).hexdigest()
            scope = text[: text.rfind(".") + 1] or "_:"
            self._known[text] = f"{scope}f{digest[:31]}"
        return self._known[text]


def _named(chunks: Iterator[Chunk], split: Split) -> Iterator[Chunk]:
    """The chunks, in whose rejects positions are counted from where the file begins."""
    try:
        for chunk in chunks:
            chunk.rejects[:] = [located(reject, split) for reject in chunk.rejects]
            yield chunk
    except Rejected as error:
        raise Rejected(located(error.reject, split)) from None


def rejects_of_files(source: Source, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What in the splits whose numbers come is no triple, as rows of `REJECTED`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            split, terms = source.splits[number], TermDictionary()
            chunks = split_chunks(split, Encoder(source.name, terms), CHUNK, False)
            yield from _rejected(_named(chunks, split), terms)


def rejects_of_rows(source: Source, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows that are no triples, as rows of `REJECTED`."""
    terms = TermDictionary()
    chunks = chunks_of_batches(batches, Encoder(source.name, terms), CHUNK, False)
    yield from _rejected(chunks, terms)


def _rejected(chunks: Iterable[Chunk], terms: TermDictionary) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        yield as_rows(chunk.rejects)
        if terms.due():
            terms.recycle([])


def counted(number: int, what: str) -> str:
    """So many of something, for people.

    >>> counted(3_000_000, "triple"), counted(1, "row")
    ('3,000,000 triples', '1 row')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
