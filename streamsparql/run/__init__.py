"""Running a query: its input, its execution in this process, replay, result and live query."""
