"""Output performance: bursts of transfers, stragglers, placement and prediction."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import Exists, Max, OuterRef

from collectors.tables import PAIR_TRANSFERS
from ioportal.core.formatting import decimal_bytes, percent
from ioportal.core.units import Unit
from ioportal.experiments.analysis import stragglers
from ioportal.experiments.analysis.bursts import SLOW
from ioportal.experiments.analysis.output import (
    SCORES,
    Output,
    analyse,
    findings,
    minutes,
    share_text,
)
from ioportal.experiments.charts import bars, lines
from ioportal.experiments.models import PairTransfer
from ioportal.experiments.pages.sections.section import Section, bounds
from ioportal.ingest.models import Segment
from ioportal.jobs.analysis.comparison.results import SHARES
from ioportal.jobs.cache import cached
from ioportal.telemetry.copy import read_rows
from ioportal.web.common.parts import Part
from ioportal.web.common.tables import Column, by_position

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal.experiments.analysis.output import Imbalance
    from ioportal.experiments.analysis.stragglers import Persistence
    from ioportal.experiments.models import Run
    from ioportal.experiments.pages.sections.section import Choice

MOST_TRANSFERS = 500_000  # analysed: the first of a run
_COLUMNS = {name: kind for name, kind in PAIR_TRANSFERS.columns.items() if name != "line"}
_RATE = Unit.BYTES_PER_SECOND
_BOX = ("p5", "p25", "p50", "p75", "p95")
_STATE_TITLES = {"target": "slow targets", "client": "fast nodes"}
_MINUTE_S = 60
_MOST_PAIRS = 10  # listed
_HEAT = (0.0, 1.5)


def _analysed(run: int) -> Output | str:
    rows = PairTransfer.objects.filter(run=run).order_by("start_s")
    return analyse(read_rows(rows.values_list(*_COLUMNS)[:MOST_TRANSFERS], _COLUMNS))


class OutputPerformance(Section):
    """The transfers of one run between clients and storage targets."""

    name = "output"
    title = "Output performance"
    template = "experiments/_output.html"

    @cached_property
    def _runs(self) -> list[Run]:
        """The runs with transfers."""
        transfers = PairTransfer.objects.filter(run=OuterRef("pk"))
        runs = self.page.experiment.runs.filter(Exists(transfers))
        return list(runs.only("name"))

    @property
    def is_present(self) -> bool:
        """Whether a run has transfers."""
        return bool(self._runs)

    @cached_property
    def choices(self) -> list[Choice]:
        """The run."""
        options = [(str(run.pk), run.name) for run in self._runs]
        return [self.choice("output_run", "Run", options, options[0][0])]

    @cached_property
    def _output(self) -> Output | str:
        """The analysis, or the reason for none."""
        run = int(self.choices[0].selected)
        segments = Segment.objects.filter(runs=run)
        return cached(
            "output",
            run,
            lambda: _analysed(run),
            lambda: segments.aggregate(latest=Max("pk"))["latest"],
        )

    @property
    def _analysis(self) -> Output:
        output = self._output
        if isinstance(output, str):
            raise TypeError(output)
        return output

    @property
    def refusal(self) -> str:
        """The reason why the transfers are not analysed; "" if they are."""
        return self._output if isinstance(self._output, str) else ""

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Names and values of totals."""
        output = self._analysis
        return [
            ("Bursts", f"{output.bursts['burst'].n_unique():,}"),
            ("Transfers", f"{output.transfers:,}"),
            ("Clients", f"{output.clients:,}"),
            ("Targets", f"{output.targets:,}"),
            ("Written", decimal_bytes(output.bytes)),
            (
                "Pair effective bandwidth 0.4 to 0.9",
                f"{percent(output.in_band['pair_effective'])} %",
            ),
            ("Lag effective bandwidth 0.4 to 0.9", f"{percent(output.in_band['lag_effective'])} %"),
        ]

    @cached_property
    def findings(self) -> list[str]:
        """Stragglers, and whether the past predicts them."""
        if self.refusal:
            return [self.refusal]
        is_cut = self._analysis.transfers >= MOST_TRANSFERS
        return [
            *([f"Only the first {MOST_TRANSFERS:,} transfers are analysed."] if is_cut else ()),
            *findings(self._analysis),
        ]

    def _persistence(self) -> list[tuple[str, Persistence]]:
        return [(_STATE_TITLES[name], each) for name, each in self._analysis.persistence.items()]

    def charts(self) -> list[Part[Any]]:
        """Return all charts; none without bursts."""
        if self.refusal:
            return []
        parts = [
            self._burst_chart(
                "output-bandwidth",
                "Bandwidth of bursts",
                "Aggregate: sum of the clients' bandwidths. Delivered: bytes / time until the last "
                "transfer ends.",
                _RATE,
                {"aggregate": "aggregate_bytes_per_s", "delivered": "delivered_bytes_per_s"},
            ),
            self._burst_chart(
                "output-stragglers",
                "Stragglers and effective aggregate bandwidth of bursts",
                "Effective: aggregate bandwidth / (targets x peak of a target).",
                Unit.SHARE,
                {"stragglers": "straggler_share", "effective bandwidth": "effective"},
            ),
            self._score_chart(),
            self._survival_chart(),
            self._skill_chart(),
            self._heat_map(),
            self._clients_chart(),
        ]
        if self._analysis.localities:
            parts.append(self._distance_chart())
        if self._analysis.imbalance:
            parts.append(_target_chart(self._analysis.imbalance))
        return parts

    def _burst_chart(
        self, name: str, title: str, about: str, unit: Unit, columns: dict[str, str]
    ) -> Part[Any]:
        each = self._analysis.bursts
        quantity = "Bandwidth" if unit is _RATE else "Share"
        values = [(label, each[column].to_list()) for label, column in columns.items()]
        rows = each.select(pl.col("burst") + 1, "size", "start_s", *columns.values()).rows()
        first_s = rows[0][2]
        return Part(
            title,
            by_position(
                Column("burst", "Burst", form="{:,}".format),
                Column("size", "Size"),
                Column(
                    "start_s",
                    "Start",
                    unit="min",
                    form=lambda start_s: f"{(start_s - first_s) / _MINUTE_S:.1f}",
                ),
                *(Column(each, label.capitalize(), unit=unit) for label, each in columns.items()),
            ),
            rows,
            name,
            lines.of_bursts(
                (quantity, str(unit)), [(row[2] - first_s) / _MINUTE_S for row in rows], values
            ),
            about=about,
        )

    def _score_chart(self) -> Part[Any]:
        pair, lag = (self._analysis.scores[name] for name in SCORES)
        return Part(
            "Effective bandwidth of transfers",
            by_position(
                Column("percentile", "Percentile"),
                Column("pair_effective", "Pair effective", unit=""),
                Column("lag_effective", "Lag effective", unit=""),
            ),
            list(zip(range(SHARES), pair, lag, strict=True)),
            "output-scores",
            lines.scores(pair, lag),
            about="Relative to the peak: the highest bandwidth of a target in any burst. Shaded: "
            "the band from 0.4 to 0.9.",
            most=SHARES,
        )

    def _survival_chart(self) -> Part[Any]:
        rows = [
            (title, time, share)
            for title, each in self._persistence()
            for time, share in zip(each.times_s, each.lasting, strict=True)
        ]
        columns: tuple[Column[dict[str, Any]], ...] = (
            Column("state", "State"),
            Column("episodes", "Episodes", unit=""),
            Column("unfinished", "Unfinished", unit=""),
            *(
                Column(
                    f"within_{limit}",
                    f"Ended within {limit / _MINUTE_S:g} min",
                    _ended_within(limit),
                    "",
                )
                for limit in stragglers.RECOVERY_S
            ),
        )
        return Part(
            "How long slow targets and fast nodes last",
            columns,
            [{"state": title, **vars(each)} for title, each in self._persistence()],
            "output-persistence",
            lines.survival(self._persistence()),
            has_figure=bool(rows),
            about=f"Slow: more than {SLOW:g} times the median time of the burst; fast: less than "
            "0.8 times. Episodes at the end of the series are censored (Kaplan-Meier).",
            exported=(("state", "seconds", "share_lasting_longer"), rows),
        )

    def _skill_chart(self) -> Part[Any]:
        named = [
            (f"avoid slow {name}s", skills)
            for name, skills in self._analysis.skills.items()
            if skills
        ]
        listed = [{"strategy": title, **vars(each)} for title, skills in named for each in skills]
        columns: tuple[Column[dict[str, Any]], ...] = (
            Column("strategy", "Strategy"),
            Column("lag_s", "Age", unit="min", form=minutes),
            Column("states", "States", "pairs", ""),
            Column("base", "Slow", unit=Unit.SHARE),
            Column("after_slow", "Slow after slow", unit=Unit.SHARE),
            Column("skill", "Skill", "skill__value", "", form="{:.3f}".format),
            *bounds(Unit.RATIO, "skill"),
        )
        return Part(
            "Does the past predict?",
            columns,
            listed,
            "output-prediction",
            lines.skill(named),
            about="Skill: share of the stragglers that are avoided with those that were slow some "
            "minutes ago, beyond chance. 0: no information. 95 % intervals resample targets or "
            "clients.",
        )

    def _heat_map(self) -> Part[Any]:
        drawn = self._analysis.heat_map
        rows = [
            (client, target, value)
            for client, values in zip(drawn.clients, drawn.relative, strict=True)
            for target, value in zip(drawn.targets, values, strict=True)
            if value is not None
        ]
        return Part(
            "Bandwidth of clients with targets",
            by_position(
                Column("client", "Client"),
                Column("target", "Target"),
                Column("relative_bandwidth", "Relative bandwidth", unit="", form="{:.2f}".format),
            ),
            sorted(rows, key=lambda row: row[2]),
            "output-pairs",
            bars.heat_map(
                ("Client", "Target"),
                drawn.clients,
                drawn.targets,
                drawn.relative,
                quantity=("Relative bandwidth", ".2f"),
                bounds=_HEAT,
            ),
            about="Median of the bandwidth relative to the median of the burst. A dark column is a "
            "slow target, a dark row a slow client. Of many clients or targets, neighbours are "
            "joined (+2: with the next two).",
            most=_MOST_PAIRS,
        )

    def _clients_chart(self) -> Part[Any]:
        rows = self._analysis.by_clients.rows(named=True)
        return _box_part(
            "output-clients",
            "Bandwidth of a target by number of clients",
            "Sum over the clients of a target in a burst. Boxes: quartiles and median; whiskers "
            "from the 5th to the 95th percentile.",
            quantity=("Bandwidth of a target", _RATE),
            rows=[{**row, "text": f"{row['clients']} per target"} for row in rows],
        )

    def _distance_chart(self) -> Part[Any]:
        rows = [
            {**row, "text": f"{row['low']:.3g} to {row['high']:.3g}", "size": each.size}
            for each in self._analysis.localities
            for row in each.bins.rows(named=True)
        ]
        return _box_part(
            "output-distance",
            "Effective aggregate bandwidth by mean distance of nodes",
            "Distance: sum of the differences of coordinates, mean of all pairs of clients of a "
            f"burst. {' '.join(self._correlations())}",
            quantity=("Effective aggregate bandwidth", Unit.SHARE),
            rows=rows,
        )

    def _correlations(self) -> Iterator[str]:
        for each in self._analysis.localities:
            if rho := each.correlation:
                values = f"{rho.value:.2f} ({rho.low:.2f} to {rho.high:.2f})"
                yield f"Spearman's correlation of {each.size}: {values}."


def _box_part(
    name: str,
    title: str,
    about: str,
    *,
    quantity: tuple[str, Unit],
    rows: Sequence[dict[str, Any]],
) -> Part[Any]:
    """Return boxes of `rows`: text, size, n, quantiles, and what only the export has."""
    label, unit = quantity
    others = [name for name in rows[0] if name not in {"text", "size", "n", *_BOX}]
    boxes = [
        (f"{row['size']}: {row['text']}", row["size"], [row[each] for each in _BOX]) for row in rows
    ]
    return Part(
        title,
        (
            Column[dict[str, Any]]("", label, "text"),
            Column("size", "Size"),
            Column("n", "n", unit=""),
            *(Column[dict[str, Any]](each, each, unit=unit) for each in _BOX),
            *(Column[dict[str, Any]](each, "") for each in others),
        ),
        rows,
        name,
        bars.box_plot((label, str(unit)), boxes),
        about=about,
    )


def _ended_within(limit: float) -> Callable[[dict[str, Any]], str]:
    return lambda row: share_text(row["ended"][limit])


def _target_chart(imbalance: Imbalance) -> Part[Any]:
    table = imbalance.targets
    return Part(
        "Bytes by target",
        (
            Column[dict[str, Any]]("target", "Target"),
            Column("transfers", "Transfers", unit=""),
            Column("bytes", "Bytes", unit=Unit.BYTES),
            Column("share", "Share", unit=Unit.SHARE),
            Column("straggler_share", "Stragglers", unit=Unit.SHARE),
            Column("bandwidth_bytes_per_s", "Median bandwidth", unit=_RATE),
        ),
        table.rows(named=True),
        "output-targets",
        bars.targets(table, float(table["bytes"].to_numpy().mean())),
        about="Sorted by bytes; the line is their mean. The busiest tenth has "
        f"{percent(imbalance.top_share)} % of the bytes; Gini coefficient {imbalance.gini:.2f}.",
    )
