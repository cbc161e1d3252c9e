"""Rewrite rules: equivalences of the temporal algebra, one per file.

A rule is a function that returns an equivalent plan (with the same `phi`), or None if it does
not apply; it inspects the root of a plan and as much below as its law needs. The module docstring
states the law, the side condition and the source; the module ends with the rule's declaration, a
`Rule`, which lists the operators at which the rule is tried and the contexts in which it is sound.
Because of snapshot reducibility (SEMANTICS.md section 2), the laws of SPARQL's bag algebra hold at
every instant.

Two contexts are special; the rules state where it matters:

- *The pattern of an EXISTS* is evaluated for an outer row: its expressions read the outer row for
  variables that their own row does not bind, and its leaves must agree with it. "This variable is
  certainly bound" still holds there, "this variable is not in scope, hence unbound" does not; and a
  `Projection` also determines which variables of the outer row are visible.
- *Below Detect*, plans are about events: equal solutions count once, and some operators have
  another meaning (SEMANTICS.md section 7).

`rule` defines rules, `properties` and `conditions` analyse plans and expressions for them, and
`sketch` builds and prints the plans of the examples.
"""
