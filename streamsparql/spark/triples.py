"""The triples of static graphs as DataFrames, from files that tasks read, DataFrames or tables.

The columns are `s`, `p` and `o`: terms in normal form, so that equal strings are equal terms, with
the labels of blank nodes scoped to their graph. There may be duplicate triples.
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
from streamsparql.spark.file_slices import CHUNK_ITEMS, Split, located, split_chunks
from streamsparql.spark.joins import PLACES, Patterns
from streamsparql.spark.read_log import READ_LOG_SCHEMA, ReadLog

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TRIPLE_SCHEMA = "s string, p string, o string"
"""The schema of triples, in Spark's DDL."""


@dataclass(frozen=True, eq=False)
class GraphSource:
    """A static graph, and its triples: in `splits` of files, in a `frame`, or in a `table`."""

    name: str
    """The graph's name in messages."""
    scope: str
    """The prefix of the labels of its blank nodes."""
    size: str = ""
    """Its size, as text."""
    strict: bool = False
    splits: tuple[Split, ...] = ()
    frame: DataFrame | None = None
    table: pa.Table | None = None

    @property
    def summary(self) -> str:
        """The graph and its size, for `explain`."""
        return f"{self.name} has {self.size}"

    def triples(self, spark: SparkSession, patterns: Patterns) -> DataFrame:
        """Return the triples that match one of the patterns, and possibly others."""
        if self.table is not None:
            return spark.createDataFrame(with_scope(self.table, self.scope), TRIPLE_SCHEMA)
        bare = replace(self, frame=None)
        if self.frame is not None:
            rows = triple_columns(self.frame, self.name)
            if patterns is not None and not self.strict:
                rows = rows.where(_possible(patterns))
            return rows.mapInArrow(partial(triples_of_rows, bare, patterns), TRIPLE_SCHEMA)
        count = len(self.splits)
        read = partial(triples_of_files, bare, patterns)
        return spark.range(0, count, 1, count).mapInArrow(read, TRIPLE_SCHEMA)

    def rejects(self, spark: SparkSession) -> list[Reject]:
        """Return the rejects of a DataFrame or of files; a table in memory has none."""
        bare, log = replace(self, frame=None, strict=False), ReadLog()
        if self.frame is not None:
            rows = triple_columns(self.frame, self.name)
            logs = rows.mapInArrow(partial(log_of_graph_rows, bare), READ_LOG_SCHEMA)
        elif self.splits:
            count = len(self.splits)
            read = partial(log_of_graph_files, bare)
            logs = spark.range(0, count, 1, count).mapInArrow(read, READ_LOG_SCHEMA)
        else:
            return []
        log.read(logs.toArrow())
        return log.rejects


def with_scope(table: pa.Table, scope: str) -> pa.Table:
    """Return triples as columns of strings, with a scope before the labels of blank nodes.

    >>> table = pa.table({"subject": ["_:b"], "predicate": ["<p>"], "object": ['"_:b"']})
    >>> with_scope(table, "d.").to_pylist()
    [{'s': '_:d.b', 'p': '<p>', 'o': '"_:b"'}]
    """
    texts = [column.cast(pa.string()) for column in table.columns]
    columns = [pc.replace_substring_regex(column, "^_:", f"_:{scope}") for column in texts]
    return pa.table(columns, names=list(PLACES))


def without_scope(table: pa.Table, scope: str) -> pa.Table:
    """Return triples as the source of a graph: without scopes, which reading it adds again.

    >>> table = pa.table({"s": ["_:d.b"], "p": ["<p>"], "o": ['"x"']})
    >>> without_scope(table, "d.").to_pylist()
    [{'subject': '_:b', 'predicate': '<p>', 'object': '"x"'}]
    """
    label = f"^_:{re.escape(scope)}"
    columns = [pc.replace_substring_regex(column, label, "_:") for column in table.columns]
    return dictionary_encoded(pa.table(columns, names=["subject", "predicate", "object"]))


def dictionary_encoded(table: pa.Table) -> pa.Table:
    """Return a table with all columns dictionary-encoded.

    >>> dictionary_encoded(pa.table({"x": ["<a>", "<a>"]})).schema.field("x").type
    DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
    """
    columns = [column.combine_chunks().dictionary_encode() for column in table.columns]
    return pa.table(columns, names=table.column_names)


# -- A DataFrame of the caller ------------------------------------------------------------------


def triple_columns(frame: DataFrame, name: str) -> DataFrame:
    """Return the columns of a DataFrame that have triples, as `s`, `p` and `o`."""
    from pyspark.sql import functions

    columns = roles(frame.columns, Encoder(name, TermDictionary()), False)
    kinds = dict(frame.dtypes)
    for column in columns.values():
        if kinds[column] != "string":
            raise SourceError(
                f"{name}: column {column} has type {kinds[column]}; terms must be strings"
            )
    quoted = {role: "`" + column.replace("`", "``") + "`" for role, column in columns.items()}
    return frame.select(*(functions.col(quoted[place]).alias(place) for place in PLACES))


def _possible(patterns: Iterable[TriplePattern]) -> Column:
    """Return a condition that selects triples with the IRIs of a pattern, or with escapes."""
    from pyspark.sql import functions

    possible: Column = functions.lit(False)
    for pattern in patterns:
        matches: Column = functions.lit(True)
        for column, place in zip(PLACES, pattern, strict=True):
            if isinstance(place, IRI) and "\\" not in str(place):
                text = functions.col(column)
                matches = matches & (
                    (text == functions.lit(str(place)))
                    | functions.contains(text, functions.lit("\\"))
                )
        possible = possible | matches
    return possible


# -- In tasks -----------------------------------------------------------------------------------


def triples_of_files(
    source: GraphSource, patterns: Patterns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the triples of the splits whose numbers arrive."""
    terms = TermDictionary()
    for batch in batches:
        for number in batch.column(0).to_pylist():
            split = source.splits[number]
            labels = StableLabels(split.path) if has_generated_labels(split.path) else None
            encoder = _encoder(source, terms, patterns)
            chunks = _with_positions(split_chunks(split, encoder, CHUNK_ITEMS, False), split)
            yield from _matching_triples(chunks, patterns, terms, labels)


def triples_of_rows(
    source: GraphSource, patterns: Patterns, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a DataFrame that are valid triples."""
    terms = TermDictionary()
    chunks = chunks_of_batches(batches, _encoder(source, terms, patterns), CHUNK_ITEMS, False)
    yield from _matching_triples(chunks, patterns, terms)


def _encoder(source: GraphSource, terms: TermDictionary, patterns: Patterns) -> Encoder:
    """Return an encoder that skips other predicates than those of patterns, unless `strict`."""
    wanted = None
    if patterns is not None and not source.strict:
        predicates = [pattern.predicate for pattern in patterns]
        constants = [p for p in predicates if not isinstance(p, Variable)]
        if len(constants) == len(predicates):
            wanted = Wanted(frozenset(terms.id_of(p, keep=True) for p in constants))
    return Encoder(source.name, terms, source.scope, wanted, source.strict)


def _matching_triples(
    chunks: Iterable[Chunk],
    patterns: Patterns,
    terms: TermDictionary,
    labels: StableLabels | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the triples that match a pattern, as strings."""
    for chunk in chunks:
        columns = (chunk.s, chunk.p, chunk.o)
        if patterns is not None:
            mask = match_mask(columns, patterns, terms)
            columns = chunk.s[mask], chunk.p[mask], chunk.o[mask]
        texts = [terms.texts(ids) for ids in columns]
        if labels is not None:
            texts = [labels.replace(texts[0]), texts[1], labels.replace(texts[2])]
        yield pa.RecordBatch.from_arrays(texts, list(PLACES))
        if terms.due():
            terms.recycle([])


def match_mask(
    columns: tuple[IntArray, IntArray, IntArray],
    patterns: Iterable[TriplePattern],
    terms: TermDictionary,
) -> BoolArray:
    """Return a mask of the triples that match one of the patterns.

    >>> x, terms = Variable("x"), TermDictionary()
    >>> pattern = TriplePattern(x, IRI("p"), x)
    >>> s, p, o = map(terms.encode, (["<a>", "<a>"], ["<p>", "<p>"], ["<a>", "<b>"]))
    >>> match_mask((s, p, o), [pattern], terms).tolist()
    [True, False]
    """
    mask = np.zeros(len(columns[0]), np.bool_)
    for pattern in patterns:
        matched = np.ones(len(mask), np.bool_)
        first: dict[Variable, IntArray] = {}
        for ids, place in zip(columns, pattern, strict=True):
            if isinstance(place, Variable):
                matched &= first.setdefault(place, ids) == ids
            else:
                matched &= ids == terms.id_of(place, keep=True)
        mask |= matched
    return mask


_UNLABELLED = frozenset({"ttl", "n3", "rdf", "owl", "xml", "jsonld", "trig"})
"""The extensions of formats that allow blank nodes without labels."""
_GENERATED = r"^_:(?:d\.|g[0-9]+\.)?[a-f][0-9a-f]{19,31}$"
"""A label that pyoxigraph generated, scoped: a number of 128 bits, which begins with a letter."""


def has_generated_labels(path: str) -> bool:
    """Return whether a file may have blank nodes without labels, which its parser generates.

    >>> has_generated_labels("a/b.ttl.gz"), has_generated_labels("a/b.nt")
    (True, False)
    """
    return extension_of(path) in _UNLABELLED


class StableLabels:
    """The replacement of random labels from a parser by labels that are the same at each reading.

    A retried task, or a second job, must read the same blank nodes in the file.

    >>> labels = ["_:" + "a" * 32, "_:mine", "_:" + "b" * 32]
    >>> first, again = (StableLabels("f.ttl").replace(pa.array(labels[::k])) for k in (1, -1))
    >>> first[0] == again[0], first[0] == first[2], str(first[1])
    (True, False, '_:mine')
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, str] = {}

    def replace(self, texts: pa.Array) -> pa.Array:
        """Return terms with generated labels replaced, numbered in order of appearance."""
        generated = pc.match_substring_regex(texts, _GENERATED)
        if not pc.any(generated).as_py():
            return texts
        labels = pa.array([self._label(text) for text in texts.filter(generated).to_pylist()])
        return pc.replace_with_mask(texts, generated, labels)

    def _label(self, text: str) -> str:
        if text not in self._known:
            number = f"{self._path}\n{len(self._known)}"
            digest = hashlib.sha256(number.encode(errors="surrogatepass")).hexdigest()
            scope = text[: text.rfind(".") + 1] or "_:"
            self._known[text] = f"{scope}f{digest[:31]}"
        return self._known[text]


def _with_positions(chunks: Iterator[Chunk], split: Split) -> Iterator[Chunk]:
    """Yield the chunks of a split; the positions of their rejects become those in the file."""
    try:
        for chunk in chunks:
            chunk.rejects[:] = [located(reject, split) for reject in chunk.rejects]
            yield chunk
    except Rejected as error:
        raise Rejected(located(error.reject, split)) from None


def log_of_graph_files(
    source: GraphSource, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the logs of the splits whose numbers arrive, as rows of `READ_LOG_SCHEMA`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            split, terms = source.splits[number], TermDictionary()
            chunks = split_chunks(split, Encoder(source.name, terms), CHUNK_ITEMS, False)
            yield from _logs(_with_positions(chunks, split), terms)


def log_of_graph_rows(
    source: GraphSource, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the logs of the rows of a DataFrame, as rows of `READ_LOG_SCHEMA`."""
    terms = TermDictionary()
    chunks = chunks_of_batches(batches, Encoder(source.name, terms), CHUNK_ITEMS, False)
    yield from _logs(chunks, terms)


def _logs(chunks: Iterable[Chunk], terms: TermDictionary) -> Iterator[pa.RecordBatch]:
    for chunk in chunks:
        yield ReadLog(chunk.rejects).batch()
        if terms.due():
            terms.recycle([])


def quantity(number: int, noun: str) -> str:
    """Return a number and its noun, as text.

    >>> quantity(3_000_000, "triple"), quantity(1, "row")
    ('3,000,000 triples', '1 row')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
