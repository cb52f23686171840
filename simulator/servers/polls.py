"""Times of the reads of the servers' counters, and the servers' removal of idle entries."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

from simulator import story, story_storm
from simulator.batch.jobs import Ints
from simulator.clock import DAY_S, HOUR_S, MINUTE_S, local, local_time, midnight
from simulator.plan import FULL_POLL_S, Plan

_CRISIS = (local(2017, 7, 6, "09:40:00"), local(2017, 7, 6, "10:40:00"), MINUTE_S)
_REST_OF_CRISIS = (_CRISIS[1], story.STOPPED + 10 * MINUTE_S, MINUTE_S)
_LATENESS_S = 9  # maximum delay of a server's timer, constant per server
_ENTRIES_KEPT_S = 10 * MINUTE_S  # Lustre's default of job_cleanup_interval
_MARGIN_S = HOUR_S  # entries are kept for longer than the time between two reads


class What(Enum):
    """The counters of a read."""

    MDT = "job_stats of the MDT"
    WHOLE_MDT = "md_stats of the MDT"
    OSTS = "job_stats of an OSS's targets"


# Days with more frequent reads of the MDT: (from, to, seconds between reads).
_WATCHED = (
    (*story.WEEK, 20 * MINUTE_S),
    (story_storm.START - HOUR_S, story_storm.START + 2 * HOUR_S, FULL_POLL_S),
    (local(2017, 8, 15, "22:00:00"), local(2017, 8, 16, "04:00:00"), FULL_POLL_S),
    (local(2017, 8, 15, "23:50:00"), local(2017, 8, 16, "01:10:00"), MINUTE_S),
    (local(2017, 8, 18), local(2017, 8, 18, "05:00:00"), FULL_POLL_S),
    (local(2017, 8, 18, "01:40:00"), local(2017, 8, 18, "03:10:00"), MINUTE_S),
    (local(2017, 8, 21), local(2017, 8, 21, "05:00:00"), FULL_POLL_S),
    (local(2017, 8, 21, "00:55:00"), local(2017, 8, 21, "02:25:00"), MINUTE_S),
    (local(2017, 8, 29, "10:00:00"), local(2017, 8, 29, "12:00:00"), MINUTE_S),
)
# The campaign's hours on Tuesdays and Thursdays.
_WEEKDAYS = (1, 3)
_MORNING = (10 * HOUR_S, 12 * HOUR_S + 20 * MINUTE_S, 20 * MINUTE_S)


@dataclass(frozen=True)
class Schedule:
    """The reads of one server's counters, epoch seconds."""

    moments: Ints
    apart_s: int  # longest distance of reads without loss of entries

    def covered_share(self, start: int, end: int) -> float:
        """Return the part of ``[start, end)`` between reads that are close enough."""
        first = max(int(np.searchsorted(self.moments, start)) - 1, 0)
        moments = self.moments[first : int(np.searchsorted(self.moments, end)) + 1]
        before, after = moments[:-1], moments[1:]
        near = after - before <= self.apart_s
        inside = np.minimum(after, end) - np.maximum(before, start)
        return float(np.clip(inside, 0, None)[near].sum() / (end - start))


def schedule(plan: Plan, what: What, server: str, rng: np.random.Generator) -> Schedule:
    """Return one server's reads; the last read covers everything."""
    often = what is What.MDT
    every_s = plan.poll_s if often else plan.slow_poll_s
    moments = [np.arange(plan.start, plan.end + 1, every_s)]
    full_s = FULL_POLL_S if plan.poll_s <= FULL_POLL_S else 2 * FULL_POLL_S
    moments.append(np.arange(story.FULL_DAYS[0], story.FULL_DAYS[1] + 1, full_s))
    if what is not What.OSTS or plan.poll_s <= FULL_POLL_S:
        moments.append(np.arange(*_CRISIS))
    if what is not What.OSTS:
        moments.append(np.arange(*_REST_OF_CRISIS))
    if often:
        moments += [np.arange(*watched) for watched in _WATCHED]
        moments += [np.arange(*morning) for morning in _mornings(plan)]
    times = np.unique(np.concatenate(moments))
    times = times[(times >= plan.start) & (times <= plan.end)]
    for begin, end in plan.faults.unread(server):
        times = times[(times <= begin) | (times >= end)]
    near_s = max(kept_s(plan, what), 20 * MINUTE_S)
    return Schedule(times + int(rng.integers(1, _LATENESS_S)), near_s)


def _mornings(plan: Plan) -> list[tuple[int, int, int]]:
    begin, end, every_s = _MORNING
    days = {midnight(moment) for moment in range(plan.start, plan.end, DAY_S // 2)}
    return [
        (day + begin, day + end, every_s)
        for day in sorted(days)
        if local_time(day).weekday() in _WEEKDAYS
    ]


def kept_s(plan: Plan, what: What) -> int:
    """Return the servers' retention of idle entries: longer than the time between reads."""
    if plan.poll_s <= FULL_POLL_S:
        return _ENTRIES_KEPT_S
    return (plan.poll_s if what is What.MDT else plan.slow_poll_s) + _MARGIN_S
