"""Connectors: live sources of items, and live sinks of rows; `interface` says what they do."""
