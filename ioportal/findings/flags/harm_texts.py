"""The harm of a flag in words: the same sentences in mails, on pages and in tickets."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TYPE_CHECKING

from ioportal.core.formatting import total_waiting, work_share
from ioportal.findings.flags.episodes import episodes_of
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.analysis import impact_estimate
from ioportal.load.analysis.replay import impact_by_group as replay
from ioportal.load.analysis.replay.impact_by_group import PRINCIPAL
from ioportal.load.impact import queue_links, queue_users
from ioportal.load.impact.episodes import interval_text
from ioportal.load.impact.principal_windows import principal_name
from ioportal.rules.rule import GROUPS
from ioportal.site.models import Server

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from ioportal.findings.models import Flag
    from ioportal.load.impact.episodes import Episode

MIN_S = 1  # impact below is not mentioned
_MORE = 1.1  # times the impact of one queue: there are more


@dataclass(frozen=True)
class Harm:
    """The largest impact of a flag: in a queue, or in a slow interval that was not traced.

    Source: docs/metrics.md, "Impact in words".

    Args:
        server: the metadata server.
        start: start of the queue or the interval.
        end: its end.
        share: part of the server's work meanwhile.
        impact_s: waiting that requests of other users would have been spared.
        outside_s: the same of pings, system daemons and requests without a job.
        waited_s: waiting of these other users' requests above usual; 0: unknown.
        total_s: impact of the flag in all queues and intervals.
        is_estimated: whether it is from counters.
        is_alone: whether the impact is what the flag's subject alone adds to a calm load.
        users: other users whose requests waited; None: unknown, or too few to be shown.
        request_wait_s: the mean of all others' requests; None: unknown.
        requests: of the subject, in the queue; None: unknown.
        sent_s: seconds in which these requests arrived.
        address: the address of the queue's page; "": there is none.
    """

    server: Server
    start: datetime
    end: datetime
    share: float
    impact_s: float
    outside_s: float
    waited_s: float
    total_s: float
    is_estimated: bool = False
    is_alone: bool = False
    users: int | None = None
    request_wait_s: float | None = None
    requests: float | None = None
    sent_s: int = 0
    address: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval of the impact: by its precision, and at most the time that others waited.

        This waiting is only a bound where the number of users is shown: it may be one user's.
        """
        most_s = self.waited_s if self._is_bounded else self.impact_s * self._precision
        return self.impact_s / self._precision, max(most_s, self.impact_s)

    @property
    def _precision(self) -> float:
        return impact_estimate.PRECISION if self.is_estimated else replay.PRECISION

    @property
    def _is_bounded(self) -> bool:
        """Whether the time that others waited is the upper end of the interval."""
        waited_s = self.waited_s if self.users else 0
        return 0 < waited_s < self.impact_s * self._precision

    @property
    def interval(self) -> str:
        """The bounds in words."""
        low, high = map(_outward, self.bounds, (floor, ceil))
        estimated = "estimated, " if self.is_estimated else ""
        most = ", and at most all they waited" if self._is_bounded else ""
        return f"{estimated}{low} s to {high} s: within a factor of {self._precision:g}{most}"

    def in_words(self, subject: str, it: str) -> str:
        """Return the harm as sentences.

        Args:
            subject: name of the cause.
            it: the cause, after its name: "it" or "these jobs".
        """
        place = f"the metadata server {self.server.name}"
        during = f"in a queue of {place}" if self.address else f"while {place} was slow"
        about = total_waiting(coarse(self.impact_s))
        caused = (
            f"{work_share(self.share)}% of the work {during}, {interval_text(self.start, self.end)}"
        )
        whose = f"the requests of {f'{self.users} ' if self.users else ''}other users"
        if self.is_alone:
            effect = (
                f"Other loads filled the server, too. Even without them, {it} would have made "
                f"{whose} wait about {about} longer"
            )
        else:
            effect = f"Without {it}, {whose} would have waited about {about} less"
        effect += f": this is their extra wait ({self.interval})."
        sentences = [f"{caused}, was from {subject}.", effect]
        if self.outside_s >= MIN_S:
            sentences.append(
                "Not counted, because no user waits for them: extra wait of pings, system daemons "
                f"and requests without a job, {total_waiting(coarse(self.outside_s))}."
            )
        if self.users and self.request_wait_s:
            each_s = f"{coarse(self.request_wait_s):,.10g}"
            sentences.append(f"On average, a request of others waited {each_s} s longer.")
        if self.total_s > _MORE * self.impact_s:
            total = total_waiting(coarse(self.total_s))
            sentences.append(f"Extra wait in all slow intervals: about {total}.")
        return " ".join(sentences)


def _outward(bound: float, rounding: Callable[[float], int]) -> str:
    """Return a bound with two significant digits; the interval does not become narrower."""
    step = 10.0 ** (floor(log10(bound)) - 1)
    return f"{rounding(bound / step) * step:,.10g}"


def pronoun(flag: Flag) -> str:
    """Return what stands for a flag's subject after its name."""
    return "these jobs" if flag.subject_kind in GROUPS else "it"


def of_flag(flag: Flag, episodes: list[Episode] | None = None) -> Harm | None:
    """Return the largest harm of a flag; None: it is not known.

    Args:
        flag: the flag.
        episodes: its episodes, if they were read before.
    """
    found = episodes_of(flag) if episodes is None else episodes
    if not found or found[0].impact_s < MIN_S:
        return None
    server = Server.objects.get(pk=found[0].server_id)
    total_s = sum(episode.impact_s for episode in found)
    return _of_queue(flag, found[0], server, total_s) or _of_episode(found[0], server, total_s)


def _of_queue(flag: Flag, episode: Episode, server: Server, total_s: float) -> Harm | None:
    """Return the harm of an episode's worst queue; None: it was not traced, or has expired."""
    if episode.is_estimated:
        return None
    key, window = group(flag, episode), queue_links.around(episode)
    queue = queue_links.find(server, window, key)
    if queue is None:
        return None
    kind, name = key
    [row] = queue.groups.filter(kind=kind, key=name).iter_rows(named=True)
    found = queue.by_group[key]
    return Harm(
        server,
        queue.start,
        queue.end,
        row["share"],
        row["impact_s"],
        row["outside_s"],
        found.users_waited_s,
        total_s,
        is_alone=found.alone,
        users=queue_users.waiting_users(queue, key),
        request_wait_s=found.request_wait_s,
        requests=found.requests,
        sent_s=found.sent_s,
        address=queue_links.address(server.name, window, key),
    )


def _of_episode(episode: Episode, server: Server, total_s: float) -> Harm:
    counted_share = episode.impact_s / (episode.impact_s + episode.outside_s)
    return Harm(
        server,
        episode.start,
        episode.end,
        episode.share,
        episode.impact_s,
        episode.outside_s,
        episode.waited_s * counted_share,
        total_s,
        is_estimated=episode.is_estimated,
    )


def group(flag: Flag, episode: Episode) -> tuple[str, str]:
    """Return kind and key of a flag's subject in a replay."""
    if flag.subject_kind in GROUPS:
        return flag.subject_kind, flag.subject
    return PRINCIPAL, principal_name(episode.principal)
