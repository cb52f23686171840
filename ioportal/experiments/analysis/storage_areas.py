"""Storage areas of paths: parts of the directory tree on one kind of storage.

Source: docs/experiments.md, "Storage areas".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping

LUSTRE, GPFS, NFS, CVMFS, SHARED = "Lustre", "GPFS", "NFS", "CVMFS", "Shared storage"
SYSTEM, KERNEL, LOCAL = "System", "Kernel", "Local temporary"
WORKING_DIRECTORY = "Working directory"
RELATIVE = "Relative paths"
OTHER = "Other"

# On the node itself: no load of a shared server.
NODE_AREAS = frozenset({SYSTEM, KERNEL, LOCAL})

# Usual places; a site or an experiment may declare its own.
USUAL_PREFIXES = {
    "/lustre": LUSTRE,
    "/gpfs": GPFS,
    **dict.fromkeys(("/scratch", "/work", "/pscratch", "/p"), SHARED),
    **dict.fromkeys(("/sw", "/nfs", "/home", "/ccs", "/autofs", "/users", "/project"), NFS),
    "/cvmfs": CVMFS,
    **dict.fromkeys(("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/etc", "/opt"), SYSTEM),
    **dict.fromkeys(("/var", "/run", "/root", "/boot"), SYSTEM),
    **dict.fromkeys(("/proc", "/sys", "/dev"), KERNEL),
    **dict.fromkeys(("/tmp", "/var/tmp", "/dev/shm", "/ramdisk", "/local", "/localscratch"), LOCAL),  # noqa: S108  (names, not files)
}


def area_of(path: pl.Expr, prefixes: Mapping[str, str]) -> pl.Expr:
    """Return the storage area of paths: that of the longest matching prefix.

    Args:
        path: paths; a prefix ends at a slash or at the end of a path.
        prefixes: area by prefix, without a final slash.

    Returns:
        Names of areas; null for null. Relative paths, whose folder is unknown, are an area, and so
        is the rest of the tree.
    """
    area = pl.when(path.str.starts_with("/")).then(pl.lit(OTHER)).otherwise(pl.lit(RELATIVE))
    for prefix in sorted(prefixes, key=len):
        is_inside = (path == prefix) | path.str.starts_with(prefix.rstrip("/") + "/")
        area = pl.when(is_inside).then(pl.lit(prefixes[prefix])).otherwise(area)
    return pl.when(path.is_not_null()).then(area)


def guessed_prefixes(calls: pl.DataFrame) -> dict[str, str]:
    """Return the usual prefixes, and the working directory if the calls show it.

    Args:
        calls: `call`, `path`, `error`, `first_line`.
    """
    folder = working_directory(calls)
    return USUAL_PREFIXES | ({folder: WORKING_DIRECTORY} if folder else {})


def working_directory(calls: pl.DataFrame) -> str | None:
    """Return the directory that a program changed to last, or that it asked for; None: unknown."""
    shown = calls.filter(
        pl.col("call").is_in(["chdir", "getcwd"]),
        pl.col("error") == "",
        pl.col("path").str.starts_with("/"),
        area_of(pl.col("path"), USUAL_PREFIXES).is_in(sorted(NODE_AREAS)).not_(),
        pl.col("path").str.count_matches("/") > 1,
    )
    return shown.top_k(1, by="first_line")["path"].item() if shown.height else None
