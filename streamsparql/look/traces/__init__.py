"""Traces: what passed each operator of a query over a little data, and what each one held.

`recording` runs the physical plan instant by instant and notes all that happens, `trace` says it to
people, `definitions` says what the logical plan makes of the same data, `lineage` which items a row
comes from, and `text` is what a terminal shows. `streamsparql.look.jupyter.trace_view` draws it.
"""
