"""Rewriting rules: equivalences of the temporal algebra, each in a file of its own.

A rule is a function from a plan to another plan with the same `phi`, or to None where it does not
apply; it looks at the root of a plan and at as much below as its law needs. The head of its file
states the law, the side condition and the source; the file ends with the rule's declaration, a
`Rule`, which says at which operators and in which places it is tried. Snapshot reducibility
(SEMANTICS.md section 2) is what lets the laws of the bag algebra of SPARQL hold at every instant.

Two places in a plan are not like the others, and the files say where it matters:

- *The pattern of an EXISTS* is evaluated under an outer row: its expressions read that row where
  their own is silent, and its leaves must agree with it. "This variable is certainly bound" still
  holds there, "this variable is not in scope, hence unbound" does not; and a `Projection` also says
  which variables of the outer row are let in.
- *Below Detect* plans are about events, where equal solutions count once and some operators mean
  something else (SEMANTICS.md section 7).

`rule` defines what a rule is, `properties` and `conditions` have what the rules ask of plans and
expressions, `sketch` writes the plans of the examples.
"""
