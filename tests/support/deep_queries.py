"""Deep and broad groups, by what nests in them; `SELECT * ` goes before each."""

from __future__ import annotations

DEEP = 2_000
NESTED = {
    "groups": "{ ?s ?p ?o " * 5_000 + "}" * 5_000,
    "empty groups": "{" * 5_000 + "}" * 5_000,
    "optionals": "{ ?s ?p ?o OPTIONAL " * DEEP + "{}" + "}" * DEEP,
    "minus": "{ ?s ?p ?o MINUS " * DEEP + "{ ?s ?p ?o }" + "}" * DEEP,
    "unions": "{ " + " UNION ".join(["{ ?s ?p ?o }"] * DEEP) + " }",
    "nested unions": "{ { ?s ?p ?o } UNION " * DEEP + "{}" + "}" * DEEP,
    "exists": "{ ?s ?p ?o FILTER EXISTS " * DEEP + "{}" + "}" * DEEP,
    "graphs": "{ GRAPH <g> " * DEEP + "{ ?s ?p ?o }" + "}" * DEEP,
    "subqueries": "{ SELECT * WHERE " * DEEP + "{ ?s ?p ?o }" + "}" * DEEP,
    "brackets": "{ FILTER(" + "(" * DEEP + "1" + ")" * DEEP + ") }",
    "disjunctions": "{ ?s ?p ?o FILTER(" + " || ".join(["?o = 1"] * DEEP) + ") }",
    "sums": "{ ?s ?p ?o FILTER(" + " + ".join(["?o"] * DEEP) + " > 0) }",
    "paths": "{ ?s " + "(" * DEEP + "<p>" + ")*" * DEEP + " ?o }",
    "path sequences": "{ ?s " + "/".join(["<p>"] * DEEP) + " ?o }",
    "blank nodes": "{ ?s ?p " + "[ <p> " * DEEP + "1" + " ]" * DEEP + " }",
    "lists": "{ ?s ?p " + "( " * DEEP + "1" + " )" * DEEP + " }",
    "binds": "{ " + " ".join(f"BIND({k} AS ?v{k})" for k in range(500)) + " }",
}
