"""Queries for the tests of `explain` and of its pictures, and a parameter for its formats."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from support.generate import Features, queries

from streamsparql.look.explain import RENDERERS

LISTING_1_1 = """\
PREFIX wtur: <http://iec.org/61400-25/root/ln-classes/WTUR#>
SELECT ?x ?y ?z
FROM STREAM <http://iec.org/61400-25/root/td.rdf> WINDOW RANGE 30 MINUTE SLIDE
WHERE {
  ?x wtur:StrCnt ?y .
  OPTIONAL { ?x wtur:StopCnt ?z . WINDOW ELEMS 1500 }
}
"""
"""The first listing of ESWC 2008."""

NASTY = r"""
PREFIX ex: <http://example.org/>
SELECT ?x (CONCAT("a\"b<i>&amp;|{x}[y](z)#35;\n`c`", "風車 é 😀 \u2028 \u202E \u0085") AS ?s)
FROM STREAM <http://example.org/a&b?c='d'#x> WINDOW RANGE 90 S SLIDE 1500 MS
WHERE { ?x ex:p "1. <script>alert(\"1\")</script>\\n" , "-->" , "]]>" , "end" , "%% x" , '"' ;
           <http://example.org/ünï> ?y .
  FILTER(REGEX(?y, "^[a-z]+\\d{2}|\\\"$") && ?y IN (1, 2, "x"@en)) }
"""
"""A query whose terms contain the special characters of all formats."""

NASTY_WORDS = ("<script>alert", "</script>", "&amp;|{x}[y](z)#35;", "風車 é 😀", r"\u202E", "]]>")
"""Substrings of `NASTY` that pictures show unchanged."""

any_query = st.one_of(
    queries(
        Features(forms=("select", "construct", "ask", "describe"), streams=True, volatile=True)
    ),
    queries(Features(forms=("select",), named_graphs=True, limits=True)),
)
every_format = pytest.mark.parametrize("format_", sorted(RENDERERS))
