"""Search paths of a program: which entries cause failed look-ups, and what removing them saves.

A program searches a file in the entries of a search path (LD_LIBRARY_PATH, PYTHONPATH, PATH) in
their order, until it finds the file. Every entry before that costs failed look-ups.

Source: docs/experiments.md, "Search-path entries".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Collection

MISSING = ("ENOENT", "ENOTDIR")
MAX_PROPOSED = 3
MIN_SAVING = 0.01  # of the look-ups in an area, by an entry that is proposed
NAMES_SHOWN = 5

# Subdirectories that the dynamic linker tries in every entry.
_HARDWARE = (
    r"(?:/(?:glibc-hwcaps/[^/]+|glibc-hwcaps|tls|haswell|xeon_phi|avx512_1|x86_64|i[3-6]86"
    r"|power[0-9]+|aarch64|atomics|sse2|z[0-9]+))+"
)
_PACKAGE = r"^(.*)/(?:__pycache__/)?__init__\.[^/]*py[co]?$"
# A module is searched under several names; libraries with a version have one.
_MODULE = r"^(\w+?)(?:module)?(?:\.(?:cpython-|abi3|pypy)[-\w]*)?(?:\.(?:so|py|pyc|pyo))?$"
_SOURCE = r"^(\w+)(?:\.[-\w]+)?\.py[co]?$"
_DEEPEST_PACKAGE = 8  # levels of packages below an entry

# Variables with the search paths of libraries, Python modules and programs.
LIBRARY_PATH, PYTHON_PATH, PROGRAM_PATH = "LD_LIBRARY_PATH", "PYTHONPATH", "PATH"
_VARIABLE_SHARE = 0.1  # of an entry's wasted look-ups
# Names that Python looks up at its start to find its installation, outside search paths.
_OWN_PLACES = ("os", "os.py", "os.pyc", "lib-dynload", "pyvenv.cfg")

# Libraries and modules count as searched even if the first entry has them.
_SEARCHED_NAME = r"\.so(?:\.[0-9.]+)?$|\.py[co]?$"

_COUNT, _NAME, _ENTRY, _FOLDER = (pl.col(name) for name in ("count", "name", "entry", "folder"))
_FAILED, _LINE = pl.col("failed"), pl.col("first_line")
_IS_OPEN = pl.col("kind") == "open"


@dataclass(frozen=True)
class Searches:
    """Look-ups by entry of a search path.

    Attributes:
        attempts: `entry`, `name`, `area`, `kind`, `failed`, `count`, `duration_s`, `first_line`,
            `is_wasted`, `is_needed`. Failed attempts are look-ups of missing files; they are wasted
            if the name was found in another entry. `name` is relative to the entry, and null for a
            subdirectory that the dynamic linker tries. A found name is needed if it exists in no
            other entry.
        entries: `entry`, `area`, `failed`, `wasted`, `wasted_open`, `found`, `names` (wasted ones),
            `duration_s` (wasted), `first_line` (of the first wasted look-up), `needed` (names),
            `examples` (needed names), `variables` (with the search path, by the names looked up);
            one row per entry with wasted look-ups, most first. What Python looks for to find its
            own installation is left out.
    """

    attempts: pl.DataFrame
    entries: pl.DataFrame


@dataclass(frozen=True)
class Entry:
    """An entry of a search path with its wasted look-ups, in an area."""

    path: str
    look_ups: int
    variables: tuple[str, ...] = ()  # whose search path has it, by the names looked up there
    needed: int = 0  # names that exist in this entry only
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Saving:
    """What removing entries from search paths saves in a storage area.

    Attributes:
        look_ups: all look-ups in the area.
        failed: of these, the failed ones.
        opens, failed_opens: all and failed look-ups by opens only.
        removed: the entries to remove, largest saving first. Every file stays reachable.
        blocked: entries with many wasted look-ups that have needed files.
    """

    area: str
    look_ups: int
    failed: int
    opens: int
    failed_opens: int
    removed: tuple[Entry, ...]
    blocked: tuple[Entry, ...]

    @property
    def saved_look_ups(self) -> int:
        """The look-ups that disappear."""
        return sum(entry.look_ups for entry in self.removed)


def searches(look_ups: pl.DataFrame) -> Searches:
    """Assign look-ups to entries of search paths.

    `lib/glibc-hwcaps/x86-64-v3` and similar subdirectories belong to the entry `lib`. Directories
    with an `__init__.py` are Python packages and belong to the directory that contains them.
    Variants of a module's name (`x.so`, `xmodule.so`, `x.py`, `x`) are one name if the program
    looked for its source.

    Args:
        look_ups: see `lookups.look_ups`.
    """
    relevant = look_ups.filter(~_FAILED | pl.col("error").is_in(MISSING))
    located = _with_entries(relevant.with_columns(_place()).unnest("place"), _packages(relevant))
    attempts = _rated(
        _with_modules(located)
        .group_by("entry", "name", "area", "kind", "failed")
        .agg(
            pl.sum("count", "duration_s"),
            pl.min("first_line"),
            is_searched=(
                pl.col("path").str.contains(_SEARCHED_NAME) | (pl.col("kind") == "execute")
            ).any(),
            is_source=pl.col("path").str.contains(r"\.py[co]?$").any(),
            is_library=pl.col("path").str.contains(r"\.so(?:\.|$)").any(),
            is_program=(pl.col("kind") == "execute").any(),
        )
        .sort("first_line")
    )
    return Searches(attempts, _entries(attempts))


def _place() -> pl.Expr:
    """Return folder and name of paths, without subdirectories of the dynamic linker."""
    path = pl.col("path")
    probe = path.str.extract_groups(rf"^(?P<folder>.*?){_HARDWARE}(?:/(?P<name>[^/]*\.so[^/]*))?$")
    plain = path.str.extract_groups(r"^(?P<folder>.*/|)(?P<name>[^/]*)$")
    probed, folder = probe.struct["folder"], plain.struct["folder"]
    is_probe = _FAILED & probed.is_not_null()
    return pl.struct(
        folder=pl.when(is_probe)
        .then(probed)
        .otherwise(folder.replace({"": "./", "/": "//"}).str.strip_suffix("/")),
        name=pl.when(is_probe).then(probe.struct["name"]).otherwise(plain.struct["name"]),
    ).alias("place")


def _packages(look_ups: pl.DataFrame) -> pl.Series:
    """Return the folders with an `__init__.py` that was found."""
    folders = look_ups.filter(~_FAILED)["path"].str.extract(_PACKAGE)
    return folders.drop_nulls().unique()


def _with_entries(located: pl.DataFrame, packages: pl.Series) -> pl.DataFrame:
    """Add the entry of each look-up: its folder, or the folder that contains its package."""
    folders = located.select("folder", entry=_FOLDER.str.strip_suffix("/__pycache__")).unique()
    is_package = _ENTRY.is_in(packages.implode())
    parent = _ENTRY.str.extract(r"^(.+)/[^/]*$")
    for _ in range(_DEEPEST_PACKAGE):
        folders = folders.with_columns(pl.when(is_package).then(parent).otherwise("entry"))
    folders = folders.with_columns(pl.coalesce("entry", "folder")).with_columns(
        package=_FOLDER.str.slice(_ENTRY.str.len_chars() + 1)
    )
    return located.join(folders, "folder")


def _with_modules(located: pl.DataFrame) -> pl.DataFrame:
    """Make names relative to the entry, and replace the variants of Python modules by one name."""
    names = located["name"].drop_nulls().unique().to_frame()
    variants = names.with_columns(
        module=_NAME.str.extract(_MODULE), source=_NAME.str.extract(_SOURCE)
    )
    sources = variants["source"].drop_nulls().unique()
    is_module = pl.col("module").is_in(sources.implode())
    short = variants.select("name", short=pl.when(is_module).then("module").otherwise("name"))
    relative = (
        pl.when(pl.col("package") == "")
        .then("short")
        .otherwise(pl.concat_str("package", "short", separator="/"))
    )
    return located.join(short, "name", "left").with_columns(name=relative)


def _rated(attempts: pl.DataFrame) -> pl.DataFrame:
    """Add which look-ups were wasted and which found names are needed."""
    names = attempts.group_by("name").agg(
        owners=_ENTRY.filter(~_FAILED).n_unique(),
        owner=_ENTRY.filter(~_FAILED).first(),
        entries=_ENTRY.n_unique(),
        is_name_searched=pl.col("is_searched").any(),
        variable=pl.when(pl.col("is_source").any())
        .then(pl.lit(PYTHON_PATH))
        .when(pl.col("is_library").any())
        .then(pl.lit(LIBRARY_PATH))
        .when(pl.col("is_program").any())
        .then(pl.lit(PROGRAM_PATH)),
    )
    found_elsewhere = (pl.col("owners") > 1) | (pl.col("owner") != _ENTRY)
    return (
        attempts.join(names, "name", "left", maintain_order="left")
        .with_columns(
            is_wasted=_FAILED & (_NAME.is_null() | found_elsewhere.fill_null(value=False)),
            is_needed=~_FAILED
            & (pl.col("owners") == 1)
            & (pl.col("is_name_searched") | (pl.col("entries") > 1)),
        )
        .drop("owners", "owner", "entries", "is_searched", "is_name_searched")
        .drop("is_source", "is_library", "is_program")
    )


def _entries(attempts: pl.DataFrame) -> pl.DataFrame:
    is_wasted, needed = pl.col("is_wasted"), _NAME.filter("is_needed")
    variables = (
        attempts.filter("is_wasted")
        .group_by("entry", "variable")
        .agg(share=_COUNT.sum())
        .with_columns(pl.col("share") / pl.col("share").sum().over("entry"))
        .filter(pl.col("share") >= _VARIABLE_SHARE)
        .sort("share", "variable", descending=True)
        .group_by("entry", maintain_order=True)
        .agg(variables=pl.col("variable").drop_nulls())
    )
    return (
        attempts.group_by("entry")
        .agg(
            area=pl.first("area"),
            failed=_COUNT.filter(_FAILED).sum(),
            wasted=_COUNT.filter(is_wasted).sum(),
            wasted_open=_COUNT.filter(is_wasted & _IS_OPEN).sum(),
            found=_COUNT.filter(~_FAILED).sum(),
            names=_NAME.filter(is_wasted).n_unique(),
            duration_s=pl.col("duration_s").filter(is_wasted).sum(),
            first_line=_LINE.filter(is_wasted).min(),
            is_own_place=_NAME.filter(is_wasted).is_in(_OWN_PLACES).all(),
            needed=needed.n_unique(),
            examples=needed.unique(maintain_order=True).head(NAMES_SHOWN),
        )
        .filter(pl.col("wasted") > 0, ~pl.col("is_own_place"))
        .drop("is_own_place")
        .join(variables, "entry", "left")
        .sort("wasted", "entry", descending=[True, False])
    )


def saving(look_ups: pl.DataFrame, found: Searches, area: str) -> Saving:
    """Predict what removing up to `MAX_PROPOSED` entries from search paths saves in an area.

    Entries are chosen by their wasted look-ups. An entry with a needed name is never proposed, nor
    is the last remaining entry with a name.

    Args:
        look_ups: see `lookups.look_ups`.
        found: the searches of the same look-ups.
        area: a storage area.
    """
    here = look_ups.filter(pl.col("area") == area)
    opens = here.filter(_IS_OPEN)
    total = int(here["count"].sum())
    large = found.entries.filter(
        pl.col("area") == area, pl.col("wasted") >= max(1, MIN_SAVING * total)
    )
    owners = _Owners(found.attempts)
    removed: list[Entry] = []
    blocked: list[Entry] = []
    for row in large.iter_rows(named=True):
        lost = owners.lost_without(row["entry"])
        variables = tuple(row["variables"] or ())
        examples = tuple(lost[:NAMES_SHOWN])
        entry = Entry(row["entry"], row["wasted"], variables, len(lost), examples)
        if lost:
            blocked.append(entry)
        elif len(removed) < MAX_PROPOSED:
            removed.append(entry)
            owners.remove(entry.path)
    return Saving(
        area,
        total,
        int(here.filter(_FAILED)["count"].sum()),
        int(opens["count"].sum()),
        int(opens.filter(_FAILED)["count"].sum()),
        tuple(removed),
        tuple(blocked[:MAX_PROPOSED]),
    )


class _Owners:
    """The entries that have each name, while entries are removed."""

    def __init__(self, attempts: pl.DataFrame) -> None:
        found = attempts.filter(~_FAILED).unique(["entry", "name"], maintain_order=True)
        self._names = found.group_by("entry").agg("name", "is_needed")
        counts = found.group_by("name").len()
        self._left: dict[str, int] = dict(counts.filter(pl.col("len") > 1).iter_rows())

    def lost_without(self, entry: str) -> list[str]:
        """Return the names that no remaining entry has after its removal."""
        return [
            name for name, is_needed in self._of(entry) if is_needed or self._left.get(name) == 1
        ]

    def remove(self, entry: str) -> None:
        """Remove an entry."""
        for name, _ in self._of(entry):
            if name in self._left:
                self._left[name] -= 1

    def _of(self, entry: str) -> list[tuple[str, bool]]:
        rows = self._names.filter(entry == _ENTRY).explode("name", "is_needed")
        return list(rows.select("name", "is_needed").iter_rows())


def chains(found: Searches, limit: int) -> pl.DataFrame:
    """Return the names with the most wasted look-ups.

    Args:
        found: searches.
        limit: maximum number of names.

    Returns:
        `name`, `wasted`, `entries` (tried), `found_in`, `first_line`; most wasted look-ups first.
    """
    return (
        found.attempts.drop_nulls("name")
        .group_by("name")
        .agg(
            wasted=_COUNT.filter("is_wasted").sum(),
            entries=_ENTRY.n_unique(),
            found_in=_ENTRY.filter(~_FAILED).first(),
            first_line=_LINE.min(),
        )
        .filter(pl.col("wasted") > 0)
        .sort("wasted", "first_line", descending=[True, False])
        .head(limit)
    )


def chain(found: Searches, name: str) -> pl.DataFrame:
    """Return the look-ups of a name by entry, in the order of the first attempt.

    Returns:
        `entry`, `failed`, `found` (look-ups), `first_line`.
    """
    return (
        found.attempts.filter(name == _NAME)
        .group_by("entry")
        .agg(
            failed=_COUNT.filter(_FAILED).sum(),
            found=_COUNT.filter(~_FAILED).sum(),
            first_line=_LINE.min(),
        )
        .sort("first_line")
    )


def first_searched(found: Searches, entries: Collection[str]) -> int:
    """Return how many names were searched in some entries first, and found elsewhere."""
    is_here = _ENTRY.is_in(list(entries))
    names = (
        found.attempts.drop_nulls("name")
        .group_by("name")
        .agg(
            is_wasted=(is_here & pl.col("is_wasted")).any(),
            is_first=is_here.sort_by("first_line").first(),
        )
        .filter("is_wasted")
    )
    return int(names["is_first"].sum())
