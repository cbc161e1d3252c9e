"""Checkpoints: the state of a session in one file, from which another process continues.

`file` is the format of the file, `streams`, `rows`, `plans` and `queries` are the parts of the
state, `sessions` saves and restores a session. `files`, `serving` and `folder` run queries over
files so that a process that was killed continues where its last checkpoint was.
"""
