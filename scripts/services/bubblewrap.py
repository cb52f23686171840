"""How a server is shown a root folder, its own folder and nothing else, as an unprivileged user."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def wrapper(*root: str, uid: int, home: Path, shown_as: str = "") -> tuple[str, ...]:
    """The words before a command: `root` mounts make up its /, and it writes below `home` only.

    PostgreSQL refuses to run as root; in its user namespace it runs as `uid`, which is whoever
    started it outside. There is no --die-with-parent: servers outlive the command that starts them.
    Process ids stay shared, so that those in pid files mean the same on both sides.
    """
    inside = shown_as or str(home)
    return (
        *("bwrap", "--unshare-user", "--uid", str(uid), "--gid", str(uid)),
        *root,
        *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"),  # noqa: S108 - a private one
        *("--bind", str(home), inside, "--chdir", inside, "--"),
    )
