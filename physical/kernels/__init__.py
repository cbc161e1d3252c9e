"""Kernels: pure functions over arrays of intervals, change points and keys, with no state."""
