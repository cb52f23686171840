"""Runs a server as an unprivileged user with a root folder and its own folder only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def wrapper(*root: str, uid: int, home: Path, shown_as: str = "") -> tuple[str, ...]:
    """Return the words before a command: `root` mounts form its /, and only `home` is writable.

    PostgreSQL refuses to run as root; in its user namespace it runs as `uid`, mapped to the user
    outside. There is no --die-with-parent: servers outlive the command that starts them. Process
    ids are shared, so pid files have the same meaning on both sides.
    """
    inside = shown_as or str(home)
    return (
        *("bwrap", "--unshare-user", "--uid", str(uid), "--gid", str(uid)),
        *root,
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108 - a private one
        *("--bind", str(home), inside, "--chdir", inside, "--"),
    )
