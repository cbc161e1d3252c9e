"""Text primitives for all packages: instants, numbers, widths, safe characters."""
