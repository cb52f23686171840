"""Durable files: they survive a power failure after a function has returned."""

import os
from pathlib import Path


def write(path: Path, content: bytes) -> None:
    """Write or replace a file atomically.

    Raises:
        OSError: the file could not be written and is unchanged.
    """
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        unfinished.unlink(missing_ok=True)
        with unfinished.open("xb") as file:  # never follow a planted link
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Create a folder with mode 0700, and its parents."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Sync creations, renames and deletions in a folder."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
