"""The PanDA campaign: pilots that fill idle nodes, and what its operators change and when.

The story of the seeds: up to 20 pilots at once; on July 6 the centre complains of over 2 million
metadata operations per job; the pilots are stopped; one at a time; then five, with working
directories striped over one target.
"""

from dataclasses import dataclass

import numpy as np

from simulator.clock import local
from simulator.jobs import Job, Kind
from simulator.site import PANDA

PAUSED = local(2017, 7, 6, "07:30:00")
RESUMED = local(2017, 7, 6, "09:50:00")  # with wide stripes: the crisis
STOPPED = local(2017, 7, 6, "16:00:00")  # the centre asks for it
MITIGATED = local(2017, 7, 6, "23:20:00")

_SUBMITS_EVERY_S = 115
_SEED_JOBS_WAITED_S = 611
_SIZES = (15, 30, 62, 100, 150, 200, 250, 300, 350)
_SIZE_WEIGHTS = (0.06, 0.08, 0.1, 0.12, 0.14, 0.16, 0.14, 0.14, 0.06)


@dataclass(frozen=True)
class _Regime:
    until: int
    pilots: int
    kind: Kind
    limit_s: int
    runtime_s: tuple[int, int]  # between
    delete_at: int | None = None


_REGIMES = (
    _Regime(PAUSED, 20, Kind.PANDA, 9_000, (5_700, 7_400)),
    _Regime(RESUMED, 6, Kind.PANDA, 9_000, (5_700, 7_400)),
    _Regime(STOPPED, 20, Kind.PANDA_CRISIS, 28_800, (19_000, 22_500), delete_at=STOPPED),
    _Regime(MITIGATED, 1, Kind.PANDA, 9_000, (5_700, 7_400)),
    _Regime(local(2030, 1, 1), 5, Kind.PANDA_STRIPED, 7_200, (2_300, 3_700)),
)


class PandaCampaign:
    """Submits a pilot whenever fewer are present than its operators allow."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._last = 0  # when it submitted

    def next_job(self, now: int, present: int) -> Job | None:
        """Return a new pilot, or None while the `present` ones are enough."""
        regime = next(regime for regime in _REGIMES if now < regime.until)
        if present >= regime.pilots or now - self._last < _SUBMITS_EVERY_S:
            return None
        self._last = now
        return pilot(
            regime.kind,
            node_count=int(self._rng.choice(_SIZES, p=_SIZE_WEIGHTS)),
            limit_s=regime.limit_s,
            runtime_s=int(self._rng.integers(*regime.runtime_s)),
            submitted=now,
            delete_at=regime.delete_at,
        )


def pilot(
    kind: Kind,
    *,
    node_count: int,
    limit_s: int,
    runtime_s: int,
    submitted: int,
    started: int | None = None,
    delete_at: int | None = None,
) -> Job:
    """Return a job of the campaign; `started`: it starts then and not when nodes are free."""
    return Job(
        number=0,
        user=PANDA,
        name="atlas_pilot",
        queue="batch",
        kind=kind,
        node_count=node_count,
        limit_s=limit_s,
        runtime_s=runtime_s,
        submitted=submitted,
        started=started,
        delete_at=delete_at,
        busy_share=0.55 if kind is Kind.PANDA_CRISIS else 0.82,
    )


def golden_pilots() -> dict[int, Job]:
    """Return the jobs of the two launches of the seeds' listing, by apid (see `golden`)."""
    return {
        9_205_355: _on_july(5, "14:31:02", 5, "16:12:40", Kind.PANDA, node_count=62),
        9_205_593: _on_july(5, "14:38:48", 5, "16:31:15", Kind.PANDA, node_count=300),
    }


def crisis_pilot() -> Job:
    """Return the job whose opens and closes the seeds show during the crisis."""
    return _on_july(6, "09:52:55", 6, "15:57:31", Kind.PANDA_CRISIS, node_count=300)


def striped_pilot() -> Job:
    """Return the job that the seeds show after the working directories were striped anew."""
    return _on_july(6, "23:26:16", 7, "00:03:47", Kind.PANDA_STRIPED, node_count=300)


def _on_july(day: int, start: str, end_day: int, end: str, kind: Kind, *, node_count: int) -> Job:
    started, ended = local(2017, 7, day, start), local(2017, 7, end_day, end)
    return pilot(
        kind,
        node_count=node_count,
        limit_s=next(regime.limit_s for regime in _REGIMES if regime.kind is kind),
        runtime_s=ended - started,
        submitted=started - _SEED_JOBS_WAITED_S,
        started=started,
    )
