"""Looking at queries, plans and runs: explain, notebooks, traces, equivalence, analysis, lints."""
