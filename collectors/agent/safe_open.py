"""Secure opening of files in folders that other users can write to, and of secrets.

An agent that runs as root must not ship files that other users cannot read, whether through a
symbolic link, a hard link or a file moved into a configured folder. All checks apply to open file
descriptors, so files cannot be exchanged after a check.

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
_LINK_ERRORS = (errno.ELOOP, errno.ENOTDIR)  # link to a file, to a folder
_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class UnsafeFile(OSError):  # noqa: N818  (a state of the file)
    """A file that is not read; the message has path, reason and remedy."""


def open_matching(path: Path, pattern: str) -> BinaryIO:
    """Open a regular file that matches a configured pattern.

    Args:
        path: of the file.
        pattern: absolute pattern or path. Links are followed only in components before the first
            wildcard, never in the file name.

    Raises:
        UnsafeFile: the file is a link or not regular, or other users may have moved it there.
        OSError: the file cannot be opened.
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
        except UnsafeFile:
            os.close(file)
            raise
        return os.fdopen(file, "rb", buffering=0)  # unbuffered, since the file may grow
    finally:
        os.close(folder)


def read_secret(path: Path) -> str:
    """Return the content of a file with a secret.

    As with ssh keys, a file of the agent's user must not be readable by group or others. A file of
    another owner, such as root or systemd (`LoadCredential=`), may be readable by group.

    Raises:
        UnsafeFile: other users can read the file.
        OSError: the file cannot be opened.
    """
    with os.fdopen(os.open(path, _SECRET)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _not_regular(path)
        mode = stat.S_IMODE(status.st_mode)
        is_own = status.st_uid == os.geteuid()
        if mode & (0o077 if is_own else 0o037):
            raise UnsafeFile(f"{path}: mode {mode:04o} lets other users read it: chmod 600 {path}")
        return file.read().strip()


def configured_folder(pattern: str) -> Path:
    """Return the folder above a pattern's first wildcard, or above a path."""
    return next(folder for folder in Path(pattern).parents if not has_magic(str(folder)))


def _open_at(name: str, flags: int, folder: int, path: Path) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno in _LINK_ERRORS:
            raise UnsafeFile(
                f"{path}: {name} is a symbolic link, which is not followed: configure the path "
                "of its target"
            ) from error
        if error.errno == errno.ENXIO:
            raise _not_regular(path) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def _not_regular(path: Path) -> UnsafeFile:
    return UnsafeFile(f"{path}: is not a regular file")


def _check(path: Path, file: os.stat_result, folders: list[os.stat_result]) -> None:
    """Refuse a file that a user without read permission may have moved there."""
    if not stat.S_ISREG(file.st_mode):
        raise _not_regular(path)
    shared = next(filter(_is_writable_by_others, folders), None)
    if shared is None:
        return
    if file.st_nlink > 1:
        raise UnsafeFile(
            f"{path}: has {file.st_nlink} hard links, and other users can write to its folder: "
            "copy it there instead"
        )
    is_of_root = _is_trusted(shared)
    if is_of_root and not shared.st_mode & stat.S_IWOTH:
        return  # a trusted group, as for /var/log
    if file.st_uid not in {shared.st_uid, os.geteuid()}:
        raise UnsafeFile(
            f"{path}: belongs to uid {file.st_uid}, and other users can write to its folder, which "
            f"belongs to uid {shared.st_uid}: give both the same owner, or give the folder to root "
            "(chmod o-w)"
        )
    is_sticky = is_of_root and shared.st_mode & stat.S_ISVTX  # such as /tmp, for Lustre's dumps
    if _is_trusted(file) and not is_sticky and not file.st_mode & stat.S_IROTH:
        raise UnsafeFile(
            f"{path}: is not readable for others, who may have moved it to a folder that they can "
            f"write to: chmod o+r {path}, or give the folder to root (chmod o-w)"
        )


def _is_writable_by_others(folder: os.stat_result) -> bool:
    return not _is_trusted(folder) or bool(folder.st_mode & _WRITABLE_BY_OTHERS)


def _is_trusted(entry: os.stat_result) -> bool:
    return entry.st_uid in {0, os.geteuid()}
