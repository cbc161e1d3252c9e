"""The folder of the checkpoints of a running session: numbered files, of which the last counts."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import IO

from streamsparql.errors import EngineError
from streamsparql.run.checkpoint.file import Checkpoint, read_checkpoint, write_checkpoint
from streamsparql.run.checkpoint.shared_parts import SharedParts

FIRST = "checkpoint-00000001"
"""The name of the first checkpoint of a folder."""
_NAME = re.compile(r"checkpoint-([0-9]{8})")


class CheckpointFolder:
    """Numbered checkpoints; an old one is removed once a newer one counts everywhere.

    >>> import tempfile
    >>> folder = CheckpointFolder(tempfile.mkdtemp())
    >>> folder.open()
    >>> folder.write(Checkpoint({"n": 1}, {})), folder.write(Checkpoint({"n": 2}, {}))
    ('checkpoint-00000001', 'checkpoint-00000002')
    >>> folder.remove_before("checkpoint-00000002"); folder.close(); folder.names()
    ['checkpoint-00000002']
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._lock: IO[str] | None = None
        self._shared = SharedParts(self.path)

    def open(self) -> None:
        """Create the folder, and let no other process use it until it is closed or ends."""
        try:
            os.makedirs(self.path, exist_ok=True)
            self._lock = open(self.file("lock"), "w")  # noqa: SIM115 -- until it is closed
        except OSError as error:
            raise EngineError(f"cannot use the folder {self.path}: {error.strerror}") from None
        try:
            lock_file(self._lock)
        except OSError:
            self.close()
            raise EngineError(f"another process uses the checkpoints in {self.path}") from None
        for name in os.listdir(self.path):
            if name.startswith((".checkpoint-", ".part-")) and name.endswith(
                ".part"
            ):  # of a killed process
                with suppress(OSError):
                    os.unlink(os.path.join(self.path, name))

    def close(self) -> None:
        """Let other processes use the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def names(self) -> list[str]:
        """Return the names of the checkpoints, from the oldest to the newest."""
        return sorted(filter(_NAME.fullmatch, os.listdir(self.path)))

    def file(self, name: str) -> str:
        """Return the path of a checkpoint."""
        return os.path.join(self.path, name)

    def read(self, name: str) -> Checkpoint:
        """Read a checkpoint."""
        return read_checkpoint(self.file(name))

    def next_name(self) -> str:
        """Return the name of the next checkpoint."""
        names = self.names()
        return f"checkpoint-{int(names[-1][-8:]) + 1:08}" if names else FIRST

    def write(self, checkpoint: Checkpoint, name: str | None = None) -> str:
        """Write the next checkpoint; return its name."""
        name = name or self.next_name()
        write_checkpoint(self.file(name), checkpoint, self._shared.store)
        return name

    def remove_before(self, name: str) -> None:
        """Remove the checkpoints before one."""
        for other in self.names():
            if other < name:
                with suppress(OSError):
                    os.unlink(self.file(other))
        self._shared.remove_unused(map(self.file, self.names()))

    def remove_after(self, name: str) -> None:
        """Remove the checkpoints after one, whose rows were not committed."""
        for other in self.names():
            if other > name:
                with suppress(OSError):
                    os.unlink(self.file(other))


def lock_file(file: IO[str]) -> None:
    """Lock a file until it is closed; raise an OSError if another process has locked it."""
    if os.name != "nt":
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
