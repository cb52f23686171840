"""Opens files in folders that other users may write to, and files with secrets.

An agent that runs as root must not ship what another user could not read: neither through a
symbolic link, nor through a hard link or a file that was moved to where the agent looks. All
checks are made on what is open, so that nothing can be exchanged behind them.

Source: docs/operations.md, "Files the agent opens".
"""

import errno
import os
import stat
from glob import has_magic
from pathlib import Path
from typing import BinaryIO

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_SECRET = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
_OF_A_LINK = (errno.ELOOP, errno.ENOTDIR)  # of a file, of a folder
_WRITTEN_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class Unsafe(OSError):  # noqa: N818  (a state of the file, not a fault of ours)
    """A file that is not read; the message names it, the reason and the remedy."""


def open_found(path: Path, pattern: str) -> BinaryIO:
    """Open a regular file that a pattern has found.

    Args:
        path: of the file.
        pattern: absolute, or a path. Links are followed up to its first component with a
            wildcard, and not from there on; never to the file itself.

    Raises:
        Unsafe: it is a link or no regular file, or others may have put it there.
        OSError: it cannot be opened.
    """
    base = configured_folder(pattern)
    folder = os.open(base, _FOLDER)
    try:
        folders = [os.fstat(folder)]
        for name in path.relative_to(base).parts[:-1]:
            inner = _open_at(name, _FOLDER | os.O_NOFOLLOW, folder, path)
            os.close(folder)
            folder = inner
            folders.append(os.fstat(folder))
        file = _open_at(path.name, _FILE, folder, path)
        try:
            _check(path, os.fstat(file), folders)
        except Unsafe:
            os.close(file)
            raise
        return os.fdopen(file, "rb", buffering=0)  # it may be held open, and grow
    finally:
        os.close(folder)


def read_secret(path: Path) -> str:
    """Return what a file says that only its user may read.

    As for the keys of ssh: what belongs to the agent's user is its alone. Another owner, such as
    root or systemd (`LoadCredential=`), may let it read by group.

    Raises:
        Unsafe: others can read it.
        OSError: it cannot be opened.
    """
    with os.fdopen(os.open(path, _SECRET)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(path)
        mode = stat.S_IMODE(status.st_mode)
        is_own = status.st_uid == os.geteuid()
        if mode & (0o077 if is_own else 0o037):
            raise Unsafe(f"{path}: mode {mode:04o} lets other users read it: chmod 600 {path}")
        return file.read().strip()


def configured_folder(pattern: str) -> Path:
    """Return the folder that a pattern begins with, up to its first wildcard."""
    return next(folder for folder in Path(pattern).parents if not has_magic(str(folder)))


def _open_at(name: str, flags: int, folder: int, path: Path) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _OF_A_LINK:
            raise Unsafe(
                f"{path}: {name} is a symbolic link, which is not followed: configure the path "
                "that it leads to"
            ) from error
        if error.errno == errno.ENXIO:
            raise _not_regular(path) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def _not_regular(path: Path) -> Unsafe:
    return Unsafe(f"{path}: is not a regular file")


def _check(path: Path, file: os.stat_result, folders: list[os.stat_result]) -> None:
    """Refuse a file that a user may have put there without being able to read it."""
    if not stat.S_ISREG(file.st_mode):
        raise _not_regular(path)
    shared = next(filter(_is_written_by_others, folders), None)
    if shared is None:
        return
    if file.st_nlink > 1:
        raise Unsafe(
            f"{path}: has {file.st_nlink} hard links, and other users can write to its folder: "
            "copy it there instead"
        )
    is_of_root = _is_trusted(shared)
    if is_of_root and not shared.st_mode & stat.S_IWOTH:
        return  # as /var/log, whose group is trusted
    if file.st_uid not in {shared.st_uid, os.geteuid()}:
        raise Unsafe(
            f"{path}: belongs to uid {file.st_uid}, and other users can write to its folder, which "
            f"belongs to uid {shared.st_uid}: let both belong to one user, or the folder to root "
            "(chmod o-w)"
        )
    is_sticky = is_of_root and shared.st_mode & stat.S_ISVTX  # as /tmp, where Lustre dumps
    if _is_trusted(file) and not is_sticky and not file.st_mode & stat.S_IROTH:
        raise Unsafe(
            f"{path}: is not readable for others, who may have moved it to a folder that they can "
            f"write to: chmod o+r {path}, or let the folder belong to root (chmod o-w)"
        )


def _is_written_by_others(folder: os.stat_result) -> bool:
    return not _is_trusted(folder) or bool(folder.st_mode & _WRITTEN_BY_OTHERS)


def _is_trusted(entry: os.stat_result) -> bool:
    return entry.st_uid in {0, os.geteuid()}
