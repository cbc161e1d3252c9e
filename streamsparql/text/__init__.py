"""Text primitives that running and looking share: instants, widths and numbers as text."""
