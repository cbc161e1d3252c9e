"""Relative IRIs resolve as in the examples of RFC 3986, section 5.4."""

from __future__ import annotations

import pytest

from streamsparql.algebra.iri import resolve_iri


@pytest.mark.parametrize(
    ("relative", "resolved"),
    [line.split() for line in """
        g:h           g:h
        g             http://a/b/c/g
        ./g           http://a/b/c/g
        g/            http://a/b/c/g/
        /g            http://a/g
        //g           http://g
        ?y            http://a/b/c/d;p?y
        g?y           http://a/b/c/g?y
        #s            http://a/b/c/d;p?q#s
        g#s           http://a/b/c/g#s
        g?y#s         http://a/b/c/g?y#s
        ;x            http://a/b/c/;x
        g;x?y#s       http://a/b/c/g;x?y#s
        .             http://a/b/c/
        ./            http://a/b/c/
        ..            http://a/b/
        ../           http://a/b/
        ../g          http://a/b/g
        ../..         http://a/
        ../../g       http://a/g
        ../../../g    http://a/g
        /./g          http://a/g
        /../g         http://a/g
        g.            http://a/b/c/g.
        .g            http://a/b/c/.g
        g..           http://a/b/c/g..
        ..g           http://a/b/c/..g
        ./../g        http://a/b/g
        ./g/.         http://a/b/c/g/
        g/./h         http://a/b/c/g/h
        g/../h        http://a/b/c/h
        g;x=1/./y     http://a/b/c/g;x=1/y
        g;x=1/../y    http://a/b/c/y
        g?y/../x      http://a/b/c/g?y/../x
        g#s/../x      http://a/b/c/g#s/../x
        http:g        http:g
    """.strip().splitlines()],
)  # fmt: skip
def test_references_resolve_as_in_the_examples_of_rfc_3986(relative: str, resolved: str) -> None:
    assert resolve_iri("http://a/b/c/d;p?q", relative) == resolved


@pytest.mark.parametrize(
    ("base", "relative", "resolved"),
    [
        ("http://a/b/c/d;p?q", "", "http://a/b/c/d;p?q"),
        ("http://a?q", "b", "http://a/b"),
        ("http://a/b#f", "", "http://a/b"),
        ("http://a/b", "//c/../d?", "http://c/d?"),
        ("urn:a:b", "#c", "urn:a:b#c"),
        ("file:///a/b", "c", "file:///a/c"),
        ("", "../a", "../a"),
    ],
)
def test_references_resolve_against_any_base(base: str, relative: str, resolved: str) -> None:
    assert resolve_iri(base, relative) == resolved
