"""Look-ups of traced runs: by storage area, by search-path entry, by name, by file, over time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.utils.html import format_html

from ioportal.core.charts.palette import MOST_ARMS
from ioportal.experiments import system_calls
from ioportal.experiments.analysis import lookup_findings, lookups, search_paths
from ioportal.experiments.analysis.lookup_findings import TracedArm
from ioportal.experiments.analysis.lookups import MAX_PATHS
from ioportal.experiments.charts import bars
from ioportal.experiments.charts.lines import over_time
from ioportal.experiments.models import SystemCall
from ioportal.experiments.pages.sections.section import Section
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, Table, by_position, lines
from ioportal.web.templatetags import ioportal as show

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ioportal.experiments.models import Arm, Run

_FOLDED = (
    f"{{}}: the log has more than {MAX_PATHS:,} paths. Later ones are counted by their directory: "
    "numbers of files and names are too low."
)
_SHOWN = 15  # entries, and names
_DRAWN_ENTRIES = 8
_SHOWN_FILES = 20
_EXPORTED = 100_000
_LONGEST_S = 30 * 86_400  # of a timeline; longer: a clock was set


@dataclass(frozen=True)
class ShownArm(TracedArm):
    """An arm with traced runs."""

    look: int
    first_run: Run
    calls: pl.DataFrame

    @cached_property
    def opened(self) -> pl.Series:
        """The files that were opened."""
        return lookups.opened_files(self.look_ups)

    @property
    def is_folded(self) -> bool:
        """Whether later paths are counted by their directory: see `analysis.lookups.Totals`."""
        path = pl.col("path")
        return bool(self.calls.select((path.str.ends_with("/") & (path != "/")).any()).item())


class LookUps(Section):
    """Look-ups of traced runs; conclusions are about the first arm with a trace."""

    name = "lookups"
    title = "File look-ups"
    template = "experiments/_lookups.html"

    @cached_property
    def _run_keys(self) -> set[int]:
        runs = SystemCall.objects.filter(run__experiment=self.page.experiment)
        return set(runs.order_by().values_list("run", flat=True).distinct())

    @property
    def is_present(self) -> bool:
        """Whether there are traced runs."""
        return bool(self._run_keys)

    @cached_property
    def _calls(self) -> list[tuple[Arm, list[Run], pl.DataFrame]]:
        arms: list[tuple[Arm, list[Run], pl.DataFrame]] = []
        for arm, runs in self.page.runs_by_arm:
            traced = [run for run in runs if run.pk in self._run_keys]
            if traced and len(arms) < MOST_ARMS:
                arms.append((arm, traced, system_calls.calls_of(traced)))
        return arms

    @cached_property
    def prefixes(self) -> dict[str, str]:
        """Storage area by prefix: of the experiment, or guessed."""
        own = system_calls.own_prefixes(self.page.experiment)
        if own is not None:
            return own
        guessed = dict(lookups.USUAL_PREFIXES)
        for _, _, calls in self._calls:
            guessed |= lookups.guessed_prefixes(calls)
        return guessed

    @cached_property
    def arms(self) -> list[ShownArm]:
        """The arms with traced runs."""
        return [
            ShownArm(
                arm.name,
                len(runs),
                lookups.look_ups(calls, self.prefixes),
                self.prefixes,
                self.page.looks[arm.pk],
                runs[0],
                calls,
            )
            for arm, runs, calls in self._calls
        ]

    @cached_property
    def _with_paths(self) -> list[ShownArm]:
        """The arms whose logs have paths: a summary of strace -c has none."""
        return [arm for arm in self.arms if arm.look_ups.height]

    @cached_property
    def first(self) -> ShownArm | None:
        """The arm that the conclusions are about."""
        return self._with_paths[0] if self._with_paths else None

    @cached_property
    def findings(self) -> list[str]:
        """What to fix, and what changed."""
        if not self._with_paths:
            return ["The log has no paths: it is a summary, or traces other calls."]
        found = lookup_findings.findings(self._with_paths)
        return [*found, *(_FOLDED.format(arm.name) for arm in self.arms if arm.is_folded)]

    @cached_property
    def areas(self) -> list[dict[str, Any]]:
        """Look-ups by storage area, a row per arm; shared storage first."""
        names: dict[str, None] = {}
        for arm in self._with_paths:
            names |= dict.fromkeys(arm.areas["area"].to_list())
        rows = []
        for area in sorted(names, key=lambda area: area in lookups.NODE_AREAS):
            first: float | None = None
            for arm in self._with_paths:
                none = dict.fromkeys(arm.areas.columns, 0)
                counts = next((row for row in arm.areas.to_dicts() if row["area"] == area), none)
                mean = counts["total"] / arm.runs
                ratio = mean / first if first else None  # of the look-ups per run
                own = {"area": area, "arm": arm.name, "look": arm.look, "ratio": ratio}
                rows.append(counts | own)
                first = mean if first is None else first
        return rows

    @property
    def has_own_areas(self) -> bool:
        """Whether the owner declared the storage areas."""
        return system_calls.own_prefixes(self.page.experiment) is not None

    def _files(self) -> Table[Any]:
        """Return the number of distinct files opened by each arm: all, and by pattern."""
        patterns = system_calls.patterns(self.page.experiment)
        counts = [
            {"all files": arm.opened.len(), **lookups.files_by_pattern(arm.opened, patterns)}
            for arm in self._with_paths
        ]
        return Table(
            "Opened files",
            by_position(
                Column("pattern", "Distinct files"),
                *(Column(arm.name, arm.name, unit="") for arm in self._with_paths),
            ),
            [(name, *(each[name] for each in counts)) for name in ("all files", *patterns)],
            exported=(
                ("arm", "path"),
                [(arm.name, path) for arm in self._with_paths for path in arm.opened.to_list()],
            ),
        )

    @cached_property
    def entries(self) -> list[dict[str, Any]]:
        """Search-path entries, proposed ones first, with the wasted look-ups of other arms."""
        if not self.first:
            return []
        others = [
            dict(arm.searches.entries.select("entry", "wasted").iter_rows())
            for arm in self._with_paths[1:]
        ]
        proposed = {entry.path for saving in self.first.savings for entry in saving.removed}
        entries = self.first.searches.entries
        return [
            {
                **row,
                **{f"wasted_{n}": wasted.get(row["entry"], 0) for n, wasted in enumerate(others)},
                "is_proposed": row["entry"] in proposed,
            }
            for row in entries.sort(~pl.col("entry").is_in(proposed), maintain_order=True)
            .head(_SHOWN)
            .to_dicts()
        ]

    def calls(self) -> Table[Any]:
        """Return the calls of a log without paths."""
        rows: list[Any] = []
        if self.arms and not self.first:
            table = (
                self.arms[0]
                .calls.group_by("call")
                .agg(pl.sum("count"), failed=pl.col("count").filter(pl.col("error") != "").sum())
            )
            rows = table.sort("count", "call", descending=[True, False]).rows()
        columns = by_position(
            Column("call", "Call"),
            Column("count", "Calls", unit=""),
            Column("failed", "Failed", unit=""),
        )
        return Table("System calls", columns, rows)

    def charts(self) -> list[Part[Any]]:
        """Return look-ups by search-path entry, and over time."""
        if not self.first:
            return []
        parts = [self._entry_chart(), self._timeline()]
        return [part for part in parts if not part.is_empty]

    def _entry_chart(self) -> Part[Any]:
        drawn = self.entries[:_DRAWN_ENTRIES]
        return Part(
            "Wasted look-ups by search-path entry",
            (
                Column[dict[str, Any]]("entry", "Entry"),
                Column("wasted", "Wasted look-ups", unit=""),
                Column("wasted_open", "Opens", unit=""),
            ),
            drawn,
            "search-path-entries",
            bars.by_entry([(row["entry"], row["wasted"], row["wasted_open"]) for row in drawn]),
            about="Failed look-ups of names that were found in another entry.",
        )

    def _timeline(self) -> Part[Any]:
        windows = [
            (arm, frame)
            for arm in self._with_paths
            if (frame := system_calls.windows_of(arm.first_run)).height
            and lookups.duration_s(frame) <= _LONGEST_S
        ]
        width_s = lookups.width_s([lookups.duration_s(frame) for _, frame in windows])
        frames = [(arm.name, lookups.timeline(frame, width_s)) for arm, frame in windows]
        rows = [
            (name, second, ok, failed)
            for name, frame in frames
            for second, ok, failed in frame.iter_rows()
        ]
        return Part(
            "Look-ups over time",
            by_position(
                Column("arm", "Arm"),
                Column("second", "Time", unit="s"),
                Column("found", "Found", unit=""),
                Column("failed", "Failed", unit=""),
            ),
            rows,
            "lookups-over-time",
            over_time(frames, width_s),
            about=f"Per second, in intervals of {width_s:,} s, of the first run of each arm.",
        )

    def tables(self) -> dict[str, Table[Any]]:
        """Return the tables; tables of the first arm have all arms in their exports."""
        if not self.first:
            return {}
        others: list[Column[dict[str, Any]]] = [
            Column(arm.name, f"Wasted, {arm.name}", f"wasted_{number}", "")
            for number, arm in enumerate(self._with_paths[1:])
        ]
        found = self.first.searches
        return {
            "areas": Table("Look-ups by storage area", _AREAS, self.areas, is_grouped=True),
            "entries": Table(
                "Search-path entries",
                (*_ENTRIES, *others),
                self.entries,
                about="Directories that were searched without success for names found in another "
                f"one. Arm: {self.first.name}.",
                exported=self._exported(
                    lambda arm: arm.searches.entries.drop("variables", "examples")
                ),
            ),
            "names": Table(
                "Names by wasted look-ups",
                _NAMES,
                [
                    {**row, "chain": search_paths.chain(found, row["name"]).to_dicts()}
                    for row in search_paths.chains(found, _SHOWN).to_dicts()
                ],
                is_folded=True,
                exported=self._exported(lambda arm: search_paths.chains(arm.searches, _EXPORTED)),
            ),
            "failed-files": Table(
                "Files by failed look-ups",
                _FILES,
                lookups.failed_files(self.first.look_ups, _SHOWN_FILES).to_dicts(),
                is_folded=True,
                exported=self._exported(lambda arm: lookups.failed_files(arm.look_ups, _EXPORTED)),
            ),
            "opened-files": self._files(),
        }

    def _exported(
        self, table: Callable[[TracedArm], pl.DataFrame]
    ) -> tuple[Sequence[str], Sequence[Sequence[Any]]]:
        rows = pl.concat(
            table(arm).select(pl.lit(arm.name).alias("arm"), pl.all()) for arm in self._with_paths
        )
        return rows.columns, rows.rows()


def _order(row: dict[str, Any]) -> str:
    """Return the entries that were searched for a name, in the order of the first attempt."""
    return lines(
        format_html(
            "{}{}{}",
            show.code(step["entry"]),
            f" failed {step['failed']:,}\N{MULTIPLICATION SIGN}" if step["failed"] else "",
            f" found {step['found']:,}\N{MULTIPLICATION SIGN}" if step["found"] else "",
        )
        for step in row["chain"]
    )


def _advice(row: dict[str, Any]) -> str:
    if row["is_proposed"]:
        variables = " and ".join(row["variables"])
        return format_html("<strong>remove</strong>{}", variables and f" from {variables}")
    if not row["needed"]:
        return ""
    example, more = row["examples"][0], row["needed"] - 1
    return f"keep: {example} {f'and {more:,} more are' if more else 'is'} only there"


_AREAS: tuple[Column[dict[str, Any]], ...] = (
    Column("area", "Storage area"),
    Column("arm", "Arm", cell=lambda row: show.arm(row["arm"], row["look"])),
    *(
        Column(f"{kind}_{end}", f"{title} {end}", unit="")
        for kind, title in (("open", "Open"), ("stat", "Stat"), ("other", "Others"))
        for end in ("ok", "failed")
    ),
    Column("duration_s", "Time", lambda row: row["duration_s"] or None, "", form=show.seconds),
    Column("total", ""),
    Column("failed", ""),
    Column("ratio", "Ratio", unit="", about="Look-ups per run, relative to the first arm"),
)
_ENTRIES: tuple[Column[dict[str, Any]], ...] = (
    Column("entry", "Entry", form=show.code, note=lambda row: row["area"], css="wrap"),
    Column("advice", "Advice", _advice, css="wrap"),
    Column("wasted", "Wasted look-ups", unit=""),
    Column("wasted_open", "Opens among them", unit=""),
    Column("names", "Names", unit=""),
    Column("found", "Found", unit=""),
    Column(
        "duration_s", "Time wasted", lambda row: row["duration_s"] or None, "", form=show.seconds
    ),
)
_NAMES: tuple[Column[dict[str, Any]], ...] = (
    Column("name", "Name", form=show.code, css="wrap"),
    Column("wasted", "Wasted look-ups", unit=""),
    Column("entries", "Entries", unit=""),
    Column("", "In the order of the search", _order, css="wrap"),
)
_FILES: tuple[Column[dict[str, Any]], ...] = (
    Column("path", "Path", form=show.code, css="wrap"),
    Column("area", "Storage area"),
    Column("error", "Error"),
    Column("failed", "Failed", unit=""),
    Column("open", "Opens among them", unit=""),
)
