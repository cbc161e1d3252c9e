"""Tools that show and check queries, plans and runs: explain, notebooks, traces, lints and more."""
