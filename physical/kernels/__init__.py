"""Kernels: pure functions over arrays of intervals, change points and keys, without state."""
