"""Path look-ups of a program by storage area, and the files that it opened.

A look-up is a call with a path. Interrupted calls, which are repeated, are no look-ups.

Source: docs/experiments.md, "strace" and "Storage areas".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from collectors.tables import SYSTEM_CALLS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MAX_PATHS = 1_000_000
_PENDING_ROWS = 400_000  # added before they are summed up

_CALL = ("call", "path", "error")
_WINDOW = ("second", "call", "failed")
_PATH = pl.col("path")
_DIRECTORY = _PATH.str.strip_chars_end("/").str.extract(r"^(.*/)")  # null: a relative name
_TOP_DIRECTORY = _PATH.str.extract(r"^(/[^/]*/)").fill_null("/")


class Totals:
    """Sums of frames of `tables.SYSTEM_CALLS`.

    Beyond `max_paths` distinct paths, later paths are replaced by their directory, with a final
    slash: counts stay complete.
    """

    def __init__(self, max_paths: int = MAX_PATHS) -> None:
        self._max_paths = max_paths
        self._calls = _Sums(_summed_calls)
        self._windows = _Sums(_summed_windows)

    def add(self, part: pl.DataFrame) -> None:
        """Add the rows of a part.

        Args:
            part: a frame of `tables.SYSTEM_CALLS`, in the order of the log.
        """
        windows = part.filter(pl.col("second").is_not_null()).with_columns(
            failed=pl.col("error") != ""
        )
        self._windows.add(windows.select(*_WINDOW, "count", "duration_s"))
        if self._calls.add(part.drop("second")):
            self._fold()

    @property
    def calls(self) -> pl.DataFrame:
        """One row per call x path x error: count, timed, duration_s, first_line; by first_line."""
        self._sum_up()
        return self._calls.total.sort("first_line", *_CALL)

    @property
    def windows(self) -> pl.DataFrame:
        """One row per 10 s x call x failed: count, duration_s; calls without a time are missing."""
        self._windows.sum_up()
        return self._windows.total.sort(_WINDOW)

    def _sum_up(self) -> None:
        self._calls.sum_up()
        self._fold()

    def _fold(self) -> None:
        """Replace paths that exceed the limit: by their directory, then by shorter ones."""
        for folded in (_DIRECTORY.fill_null("./"), _TOP_DIRECTORY, pl.lit("/")):
            paths = self._calls.total.group_by("path").agg(pl.min("first_line"))
            if paths.height <= self._max_paths:
                return
            # Half of the limit leaves room for the directories.
            kept = paths.bottom_k(self._max_paths // 2, by="first_line")["path"].implode()
            self._calls.replace(
                self._calls.total.with_columns(
                    path=pl.when(_PATH.is_null() | _PATH.is_in(kept)).then(_PATH).otherwise(folded)
                )
            )


class _Sums:
    """Rows that are summed up whenever many were added."""

    def __init__(self, summed: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
        self._summed = summed
        self.total = summed(pl.DataFrame(schema={**SYSTEM_CALLS.columns, "failed": pl.Boolean()}))
        self._parts: list[pl.DataFrame] = []
        self._rows = 0

    def add(self, part: pl.DataFrame) -> bool:
        """Add rows; return whether they were summed up."""
        self._parts.append(part)
        self._rows += part.height
        if self._rows < _PENDING_ROWS:
            return False
        self.sum_up()
        return True

    def sum_up(self) -> None:
        """Include the added rows in the total."""
        self.replace(pl.concat([self.total, *self._parts], how="diagonal"))

    def replace(self, rows: pl.DataFrame) -> None:
        """Replace all rows."""
        self._parts, self._rows = [], 0
        self.total = self._summed(rows)


def _summed_calls(rows: pl.DataFrame) -> pl.DataFrame:
    return (
        rows.lazy()
        .group_by(_CALL)
        .agg(pl.sum("count", "timed", "duration_s"), pl.min("first_line"))
        .collect(engine="streaming")  # the fastest one for many groups
    )


def _summed_windows(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by(_WINDOW).agg(pl.sum("count", "duration_s"))


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
    """Return the storage area of paths, by the longest matching prefix.

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


_LOOK_UPS = {
    "open": ("open", "openat", "openat2", "creat"),
    "stat": (
        *("stat", "lstat", "stat64", "lstat64", "oldstat", "oldlstat"),
        *("newfstatat", "fstatat64", "statx"),
    ),
    "access": ("access", "faccessat", "faccessat2"),
    "readlink": ("readlink", "readlinkat"),
    "execute": ("execve", "execveat"),
}
COUNTED = ("open", "stat")  # in the table by area

_KINDS = {call: kind for kind, calls in _LOOK_UPS.items() for call in calls}
_INTERRUPTED = r"^(?:EINTR|ERESTART.*)$"
_COUNT = pl.col("count")

WINDOW_S = 10
_INTERVALS = 120  # of a timeline, at most
_WIDTHS_S = (10, 20, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400)
FILE_PATTERNS = {"*.so*": ("*.so", "*.so.*"), "*.py(c)": ("*.py", "*.pyc")}


def look_ups(calls: pl.DataFrame, prefixes: Mapping[str, str]) -> pl.DataFrame:
    """Return the path look-ups.

    Args:
        calls: `call`, `path`, `error`, `count`, `timed`, `duration_s`, `first_line`. Keys may
            repeat.
        prefixes: storage areas, see `area_of`.

    Returns:
        One row per call x path x error: also `kind` (key of `_LOOK_UPS`), `area`, `failed`.
    """
    return (
        calls.lazy()
        .filter(pl.col("path").is_not_null(), ~pl.col("error").str.contains(_INTERRUPTED))
        .filter(pl.col("call").is_in(list(_KINDS)))
        .with_columns(kind=pl.col("call").replace_strict(_KINDS, return_dtype=pl.String))
        .group_by("call", "kind", "path", "error")
        .agg(pl.sum("count", "timed", "duration_s"), pl.min("first_line"))
        .with_columns(area=area_of(pl.col("path"), prefixes), failed=pl.col("error") != "")
        .sort("first_line")
        .collect()
    )


def by_area(look_ups: pl.DataFrame) -> pl.DataFrame:
    """Count look-ups by storage area.

    Args:
        look_ups: see `look_ups`.

    Returns:
        `area`, `open_ok`, `open_failed`, `stat_ok`, `stat_failed`, `other_ok`, `other_failed`
        (access, readlink, execute), `total`, `failed`, `duration_s`; most look-ups first.
    """
    column = (
        pl.when(pl.col("kind").is_in(COUNTED)).then("kind").otherwise(pl.lit("other"))
        + "_"
        + pl.when("failed").then(pl.lit("failed")).otherwise(pl.lit("ok"))
    )
    columns = [f"{kind}_{outcome}" for kind in (*COUNTED, "other") for outcome in ("ok", "failed")]
    return (
        look_ups.lazy()
        .with_columns(column=column)
        .group_by("area")
        .agg(
            *(_COUNT.filter(pl.col("column") == name).sum().alias(name) for name in columns),
            total=_COUNT.sum(),
            failed=_COUNT.filter("failed").sum(),
            duration_s=pl.col("duration_s").sum(),
        )
        .sort("total", "area", descending=[True, False])
        .collect()
    )


def opened_files(look_ups: pl.DataFrame) -> pl.Series:
    """Return the distinct paths that were opened successfully."""
    opened = look_ups.filter(pl.col("kind") == "open", ~pl.col("failed"))
    return opened["path"].unique(maintain_order=True)


def files_by_pattern(paths: pl.Series, patterns: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Count distinct paths by the pattern of their file name.

    Args:
        paths: distinct paths.
        patterns: shell patterns (`*` and `?`) by name; a path counts once for each name.
    """
    return {
        name: int(paths.str.contains("|".join(map(_expression, globs))).sum())
        for name, globs in patterns.items()
    }


def _expression(glob: str) -> str:
    parts = {"*": "[^/]*", "?": "[^/]"}
    return "(?:^|/)" + "".join(parts.get(each, re.escape(each)) for each in glob) + "$"


def failed_files(look_ups: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return the paths with the most failed look-ups: `path`, `area`, `error`, `failed`, `open`."""
    return (
        look_ups.filter("failed")
        .group_by("path", "area")
        .agg(
            error=pl.col("error").sort_by("count").last(),
            failed=_COUNT.sum(),
            open=_COUNT.filter(pl.col("kind") == "open").sum(),
            first_line=pl.min("first_line"),
        )
        .sort("failed", "first_line", descending=[True, False])
        .head(limit)
    )


def timeline(windows: pl.DataFrame, width_s: int) -> pl.DataFrame:
    """Count look-ups over time.

    Args:
        windows: `second`, `call`, `failed`, `count`, `duration_s`; keys may repeat.
        width_s: width of the intervals, a multiple of 10 s.

    Returns:
        `second` (after the first window), `ok` and `failed` look-ups, without gaps.
    """
    start = (pl.col("second") - pl.col("second").min()) // width_s * width_s
    sums = (
        windows.with_columns(second=start)
        .filter(pl.col("call").is_in(list(_KINDS)))
        .group_by("second")
        .agg(ok=_COUNT.filter(~pl.col("failed")).sum(), failed=_COUNT.filter("failed").sum())
    )
    end = max(sums["second"].to_list(), default=-width_s) + width_s
    seconds = pl.DataFrame({"second": range(0, end, width_s)}, {"second": pl.Int64})
    return seconds.join(sums, "second", "left").fill_null(0).sort("second")


def width_s(durations_s: list[int]) -> int:
    """Return the width of the intervals of a timeline of logs, in seconds."""
    longest = max(durations_s, default=0)
    return next((width for width in _WIDTHS_S if longest <= width * _INTERVALS), _WIDTHS_S[-1])


def duration_s(windows: pl.DataFrame) -> int:
    """Return the time from the first to the end of the last window of look-ups, in seconds."""
    seconds = windows["second"].to_list()
    return max(seconds) - min(seconds) + WINDOW_S if seconds else 0
