"""The words of a command line: a query and its data files, and names with the query's prefixes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from streamsparql.cli.common_options import (
    UsageError,
    add_together,
    compile_file,
    compile_text,
    split_name,
)

if TYPE_CHECKING:
    from streamsparql.query import Query

QUERY_EXTENSIONS = (".rq", ".sparql")
GRAPH_EXTENSIONS = ("nt", "ttl", "n3", "rdf", "owl", "xml", "jsonld")
"""Formats without timestamps, which are those of static graphs."""
_NAMED = ("stream", "named", "map", "time_unit", "time_zone", "stamp_from")
"""The options whose values may start with the IRI of a stream or graph."""


class ReadingQuery(Protocol):
    """What reads streams and graphs: a query, or several."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""

    @property
    def graphs(self) -> tuple[str, ...]:
        """The static graphs that it names."""

    @property
    def prefixes(self) -> Mapping[str, str]:
        """The prefixes that it declares."""


def add_words(group: argparse._ArgumentGroup) -> None:
    """Add the query, as a file or as text, and the files of its data, as one entry of the help."""
    words, text = "queries, and the files of their streams", "the text of a query"
    add_together(
        "a file, a text or - for stdin; stream files",
        group.add_argument("words", metavar="QUERY [FILE ...]", nargs="*", help=words),
        group.add_argument("-q", dest="inline", metavar="TEXT", help=text),
    )


def name_queries(options: argparse.Namespace) -> None:
    """Set `query`, the files of queries, and `files`, the data, from the words of a command.

    Words that end in `.rq` are queries; if none does and there is no text, the first word is one.

    >>> options = argparse.Namespace(words=["wind.nq", "power.rq"], inline=None)
    >>> name_queries(options)
    >>> options.query, options.files
    (['power.rq'], ['wind.nq'])
    """
    words = list(options.words)
    queries = [word for word in words if word.lower().endswith(QUERY_EXTENSIONS)]
    if not queries and options.inline is None:
        if not words:
            raise UsageError("missing query; name its file, or write -q 'SELECT ..'")
        queries = [words[0]]
        _reject_text(words[0])
    for query in queries:
        words.remove(query)
    if queries and options.inline is not None:
        raise UsageError(f"-q is a query, and {queries[0]} another; leave out one of the two")
    options.query, options.files = queries, words


def _reject_text(word: str) -> None:
    if "{" in word and not Path(word).exists():
        raise UsageError("the text of a query is passed with -q: -q 'SELECT ..'")


def compile_query(options: argparse.Namespace) -> Query:
    """Compile the only query that `name_queries` found."""
    if options.query:
        return compile_file(options.query[0], options)
    options.name = "the query"
    return compile_text(options.inline, options)


def place_files(query: ReadingQuery, options: argparse.Namespace) -> None:
    """Add the data files to the stream that the query reads, static ones to its default graph.

    A file is static if the query reads no stream, or if its format has no timestamps.
    """
    from streamsparql.sources.paths import extension_of

    for file in options.files:
        is_static = not options.stamp_from and extension_of(file) in GRAPH_EXTENSIONS
        if is_static or not query.streams:
            options.graph = [*options.graph, file]
        elif len(query.streams) == 1:
            options.stream = [*options.stream, f"{query.streams[0]}={file}"]
        else:
            known = ", ".join(f"<{name}>" for name in query.streams)
            raise UsageError(f"{file}: the query reads {known}; write --stream IRI={file}")
    options.files = []


def expand_names(query: ReadingQuery, options: argparse.Namespace) -> None:
    """Expand prefixed names in the options that start with the IRI of a stream or graph."""
    known = (*query.streams, *query.graphs)
    for option in _NAMED:
        words: Iterable[str] = getattr(options, option)
        expanded = [expanded_name(word, known, query.prefixes) for word in words]
        setattr(options, option, expanded)


def expanded_name(text: str, known: tuple[str, ...], prefixes: Mapping[str, str]) -> str:
    """Expand the prefixed name in `NAME=VALUE`, if its prefix is declared.

    >>> expanded_name(":s=wind.nq", ("http://e/s",), {"": "http://e/"})
    'http://e/s=wind.nq'
    >>> expanded_name("urn:s=wind.nq", ("urn:s",), {"urn": "http://e/"})
    'urn:s=wind.nq'
    """
    name, equals, value = text.partition("=")
    prefix, colon, local = name.partition(":")
    is_name = equals and colon and prefix in prefixes and not local.startswith("//")
    if not is_name or split_name(text, known) is not None:
        return text
    return f"{prefixes[prefix]}{local}={value}"
