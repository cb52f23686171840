"""The page of one queue: how long requests waited by second, with and without a group."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl
from django.http import Http404

from ioportal.core.charts.palette import REST
from ioportal.core.charts.timelines import Chart, Style
from ioportal.core.time_ranges import TimeRange, moment
from ioportal.core.timelines import Steps
from ioportal.findings.flags.harm_texts import Harm
from ioportal.jobs.analysis.anonymity import coarse, coarsened, hidden_sums
from ioportal.load.analysis.replay import spared_waiting
from ioportal.load.analysis.replay.impact_by_group import DEFINITION
from ioportal.load.analysis.replay.seconds import SECONDS
from ioportal.load.impact import queue_links, queue_users, replays
from ioportal.load.impact.episodes import interval_text
from ioportal.load.step_charts import StepsChart
from ioportal.web.incidents import queue_rows
from ioportal.web.incidents.impact_analysis import default_range, selected_range

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from django.http import QueryDict

    from ioportal.load.analysis.replay.server import Plateau
    from ioportal.load.impact.queues import GroupSeconds, Queue
    from ioportal.site.models import Server
    from ioportal.web.incidents.queue_rows import QueueRow

_MEASURED, _WITH, _WITHOUT = "measured", "with", "without"
_GROUP, _OTHERS, _CAPACITY = "group", "others", "capacity"
_NOT_SEEN = "None of your jobs slowed down others in this queue."
_OWN = ("group_work_s", "group_requests", "capacity_s")  # columns without figures of others
_TOKENS = {
    _MEASURED: "--series-3",
    _WITH: "--series-2",
    _WITHOUT: "--series-1",
    _GROUP: "--series-2",
    _OTHERS: "--series-1",
    _CAPACITY: REST,
}


def _tokens(kinds: list[str]) -> dict[str, str]:
    return {kind: _TOKENS[kind] for kind in kinds}


class NoQueue(Http404):
    """There is no queue to show; the message says why."""


class QueuePage:
    """A queue of a traced metadata server, and what one of its groups did in it.

    Users see groups with visible jobs only, with the figures that flags show, too. Figures of
    others are shown if they reveal no single owner; those by second, if they do so in no second.
    """

    columns = tuple(SECONDS)
    definition = DEFINITION

    def __init__(self, user: User, server: Server, query: QueryDict) -> None:
        """Read the range, a time in the queue (default: any queue), and a group from the URL.

        Raises:
            ValidationError: the range or the time is invalid.
            NoQueue: there is no such queue, or it has no group that the user may see.
        """
        self.server = server
        self.filesystem = server.filesystem
        self._user = user
        default = default_range(self.filesystem)
        if default is None:
            raise NoQueue(f"{server.name} was not traced.")
        self.window = selected_range(query, default)
        text, kind, key = (query.get(name, "") for name in ("at", "kind", "key"))
        at = moment(text) if text else None
        group = (kind, key) if kind and key else None
        if group and not queue_rows.may_see(group, user):  # before anything is computed
            raise NoQueue(_NOT_SEEN)
        found = queue_links.find(server, self.window, group, at)
        if found is None:
            whose = "This group did not slow" if group else "No group slowed"
            during = interval_text(self.window.start, self.window.end)
            raise NoQueue(
                f"{whose} down others in a queue of {server.name}, {during}, or the seconds of the "
                "queue have expired."
            )
        self.queue: Queue = found
        # Users see the outermost of their groups, whichever is asked for.
        shown = [row for row in self.rows if not user.is_staff or group in {None, row.key}]
        if not shown:
            raise NoQueue(_NOT_SEEN)
        self.row = shown[0]

    @cached_property
    def rows(self) -> list[QueueRow]:
        """The visible groups with impact in the queue, largest first."""
        server = pl.lit(self.server.name).alias("server")
        groups = self.queue.groups.with_columns(server)
        parts = self.queue.parts.with_columns(server, start=pl.lit(self.queue.start))
        return queue_rows.rows(groups, parts, self.window, self._user)

    @property
    def group(self) -> str:
        """The name of the selected group."""
        return self.row.name.text if self.row.name else ""

    @property
    def capacity(self) -> Plateau:
        """The work that the server does in a second."""
        return self.queue.capacity

    @property
    def _selected(self) -> GroupSeconds:
        return self.queue.by_group[self.row.key]

    @property
    def requests(self) -> float:
        """How many requests the group sent."""
        return self._selected.requests

    @property
    def sent_s(self) -> int:
        """Seconds in which they arrived."""
        return self._selected.sent_s

    @property
    def per_second(self) -> float:
        """How many arrived in each second, as mails say."""
        return self.requests / self.sent_s

    @property
    def own_waiting(self) -> float:
        """The part of all waiting in the queue that is of the group's own requests."""
        is_own = pl.col("principal").is_in(self._selected.members)
        waited_s = self.queue.parts.select(
            own=pl.col("waited_s").filter(is_own).sum(), total=pl.sum("waited_s")
        )
        own_s, total_s = waited_s.row(0)
        return float(own_s / total_s)

    @property
    def alone(self) -> bool:
        """Whether impact is what the group alone adds, because others block the server, too."""
        return self._selected.alone

    @property
    def scale(self) -> float | None:
        """Measured waiting / waiting by the replay, of others; None: not visible."""
        if self._user.is_staff:
            return self._selected.scale
        return None if self.hides_seconds else coarse(self._selected.scale)

    @property
    def source(self) -> str:
        """How impact was computed, as in flags."""
        return "measured" if self.queue.is_traced else "estimated"

    @cached_property
    def interval(self) -> str:
        """The interval of the impact, as in flags."""
        row = self.row
        return Harm(
            self.server,
            row.start,
            row.end,
            row.share or 0,
            row.impact_s or 0,
            row.outside_s or 0,
            self._selected.users_waited_s,
            row.impact_s or 0,
            is_estimated=not self.queue.is_traced,
            users=self.waiting_users,
        ).interval

    @cached_property
    def is_open(self) -> bool:
        """Whether the trace ends before the queue is known to have drained: no flag uses it."""
        known = (replays.known_until(self.server.pk) - self.queue.start) // timedelta(seconds=1)
        queue = spared_waiting.Queue(0, self._selected.seconds.height, has_backlog=True)
        return spared_waiting.is_open(queue, known, 1.0)

    @cached_property
    def hides_seconds(self) -> bool:
        """Whether the figures of others in some second could reveal a single user."""
        if self._user.is_staff:
            return False
        if self.alone:  # the work of the senders that are left out is a sum of its own
            return True
        is_counted = pl.col("principal").is_in(
            self.queue.others(self.row.key)
        )  # the export has two sums
        parts = queue_rows.of_others(self.queue.parts, self._user).with_columns(counted=is_counted)
        amounts = ["work_s", "arrived_s", "waited_s"]
        hidden = hidden_sums(parts, ["start", "counted"], amounts)
        return bool(hidden.select(pl.any_horizontal(*amounts).any()).item())

    @cached_property
    def waiting_users(self) -> int | None:
        """How many other users waited; None: none, or too few for users to know."""
        return queue_users.waiting_users(self.queue, self.row.key, exact=self._user.is_staff)

    @cached_property
    def seconds(self) -> pl.DataFrame:
        """The queue by second: columns of `SECONDS`; null: not visible."""
        frame = self._selected.seconds
        if self._user.is_staff:
            return frame
        others = [name for name in SECONDS if name not in {"start", *_OWN}]
        if self.hides_seconds:
            return frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in others)
        return frame.with_columns(
            pl.Series(name, coarsened(frame[name].to_numpy())) for name in others
        )

    @property
    def exports_url(self) -> str:
        """The address of the page, to which a format is added."""
        return queue_links.address(self.server.name, self.window, self.row.key, self.queue.start)

    @cached_property
    def charts(self) -> list[StepsChart]:
        """What a request waits, and the work that arrived; the first only if visible."""
        kinds = {
            _MEASURED: pl.when(pl.col("others_requests") > 0).then(
                pl.col("measured_wait_s") / pl.col("others_requests")
            ),
            _WITH: pl.col("wait_s"),
            _WITHOUT: pl.col("wait_without_s"),
            _GROUP: pl.col(_GROUP).fill_null(0),
            _OTHERS: pl.col(_OTHERS).fill_null(0),
            _CAPACITY: pl.col("capacity_s"),
        }
        seconds = self.seconds.join(self._arrived, on="start", how="left", maintain_order="left")
        frame = seconds.select(
            "start",
            end=pl.col("start") + pl.duration(seconds=1),
            observed=pl.lit(1, pl.Int64),
            **kinds,
        )
        labels = {
            _MEASURED: "measured",
            _WITH: "all senders",
            _WITHOUT: f"without {self.group}",
            _GROUP: self.group,
        }
        if self.alone:
            calm = "those who do not block the server"
            labels |= {_WITH: f"{self.group} and {calm}", _WITHOUT: calm}
        span = TimeRange(self.queue.start, frame["end"].item(-1))

        def chart(name: str, title: str, unit: str, about: str, *shown: str) -> StepsChart:
            content = Chart(name, title, unit, about, Style.LINES, labels, _tokens)
            return StepsChart(content, Steps(frame, tuple(kinds), 1).only(shown), tuple, span)

        waits = chart(
            "queue-wait",
            f"Wait of a request, with and without {self.group}",
            "s",
            "How long a request waits in the server's queue, by the replay of this queue. "
            "Measured: mean of the requests of others, by their arrival.",
            _MEASURED,
            _WITH,
            _WITHOUT,
        )
        work = chart(
            "queue-work",
            "Work that arrived, and capacity",
            "s/s",
            "Usual time of the requests that arrived in a second, as measured.",
            *((_GROUP, _CAPACITY) if self.hides_seconds else (_GROUP, _OTHERS, _CAPACITY)),
        )
        return [work] if self.hides_seconds else [waits, work]

    @property
    def _arrived(self) -> pl.DataFrame:
        """The work that arrived in each second: of the group, and of others if visible."""
        is_of_group = pl.col("principal").is_in(self._selected.members)
        arrived = self.queue.parts.group_by("start").agg(
            pl.col("arrived_s").filter(is_of_group).sum().alias(_GROUP),
            pl.col("arrived_s").filter(~is_of_group).sum().alias(_OTHERS),
        )
        if self._user.is_staff:
            return arrived
        others = pl.Series(_OTHERS, coarsened(arrived[_OTHERS].to_numpy()))
        return arrived.with_columns(
            pl.lit(None, pl.Float64).alias(_OTHERS) if self.hides_seconds else others
        )

    @property
    def simulated(self) -> bool:
        """Whether its filesystem is simulated."""
        return self.filesystem.simulated

    @property
    def about(self) -> dict[str, Any]:
        """The JSON export's members next to its rows."""
        return {
            "simulated": self.simulated,
            "filesystem": self.filesystem.name,
            **self.row.facts,
            "impact": self.source,
            "impact_is": "alone" if self.alone else "without",
            "is_evaluated": not self.is_open,
            "scale": self.scale,
            "users_share": self._selected.users_share
            if self._user.is_staff
            else coarse(self._selected.users_share),
            "capacity_s": self.capacity.value,
            "capacity_low_s": self.capacity.low,
            "capacity_high_s": self.capacity.high,
            "capacity_seconds": self.capacity.steps,
            "waiting_users": self.waiting_users,
            "groups": [row.facts for row in self.rows],
        }

    def export_rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the seconds of the queue."""
        return iter(self.seconds.iter_rows())
