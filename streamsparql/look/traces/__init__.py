"""Traces: the rows that each operator emits over a small input, and the state that it retains.

`recording` runs the physical plan instant by instant and records every step; `trace` presents the
record with decoded rows; `definitions` evaluates the logical plan over the same data; `lineage`
finds the items that a row derives from; `trace_text` prints all this in a terminal, and
`streamsparql.look.jupyter.trace_view` draws it.
"""
