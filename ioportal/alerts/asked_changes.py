"""What a mail asks its recipient to do, in numbers: pure, without Django."""

from __future__ import annotations

from dataclasses import dataclass

from ioportal.core.formatting import lowered, percent
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.rules.rule import HARM_SHARE

_NOTABLE = 0.01  # share of a server from which it matters how many jobs run at a time
_TARGET = f"{HARM_SHARE:.0%}"


@dataclass(frozen=True)
class Load:
    """The load of some jobs that were flagged.

    Args:
        measure: title of the measure.
        value: its highest value, in words.
        threshold: in words.
        is_of_one_job: whether a single job was flagged.
        is_of_job: whether the measure is of each job; otherwise of all of them together.
        is_ceiling: whether values below the threshold are flagged.
        has_ended: whether all of them have ended.
        share: of one job in the server's work while others waited; None: no waiting, or unknown.
        rate: what one job sent a second while others waited; None: unknown.
        sent_s: seconds in which it sent at this rate; 0: all the time.
        counted: what the rate counts.
        capacity: requests a second that the server can serve; None: unknown.
        capacity_origin: how this is known.
        at_once: how many of the jobs ran at the same time.
        goal: what solves it, with the threshold as ``{}``; "": the measure beyond the threshold.
    """

    measure: str
    value: str
    threshold: str
    is_of_one_job: bool = False
    is_of_job: bool = True
    is_ceiling: bool = False
    has_ended: bool = False
    share: float | None = None
    rate: float | None = None
    sent_s: int = 0
    counted: str = "metadata operations"
    capacity: float | None = None
    capacity_origin: str = ""
    at_once: int = 1
    goal: str = ""


def request(load: Load) -> str:
    """Return what the owner of the jobs is asked to do.

    A slower job, if one alone does more than `HARM_SHARE` of the server's work or of its capacity;
    else fewer jobs at a time, if they did more together; else what solves it: requests over a
    longer time, or a measure beyond the threshold.
    """
    share = min(load.share or 0, 1)
    if share < _NOTABLE:
        return _improve(load)
    parallel = int(HARM_SHARE / share)
    if not parallel or _exceeded_rate(load):
        return _slow_down(load, share)
    if parallel < load.at_once:
        return _run_fewer(load, parallel)
    return _spread(load, share) if load.goal else _improve(load)


def _run_fewer(load: Load, parallel: int) -> str:
    many = (
        "one of these jobs at a time" if parallel == 1 else f"{parallel} of these jobs in parallel"
    )
    limit = _harmless_rate(load)
    was_lower = limit and load.rate and load.rate * load.at_once <= limit
    rate = f" (together below {limit:,.0f} {load.counted} a second)" if limit else ""
    return (
        f"Please run at most {many} ({load.at_once:,} ran in parallel). They then do at most "
        f"{_TARGET} of the server's work{'' if was_lower else rate} and leave the rest to "
        f"others. {_goal(load)}"
    )


def _slow_down(load: Load, share: float) -> str:
    these, them, each = (
        ("this job", "it", "its") if load.is_of_one_job else ("these jobs", "them", "each job's")
    )
    if load.rate and (limit := _exceeded_rate(load)):
        origin = f", {load.capacity_origin}" if load.capacity_origin else ""
        capacity = f"{coarse(load.capacity or 0):,.0f} a second{origin}"
        while_s = f" a second (in the {load.sent_s:,} s in which they arrived)"
        sent = while_s if load.sent_s else ""
        change = (
            f"reduce {each} {load.counted} from {coarse(load.rate):,.0f}{sent} to below "
            f"{limit:,.0f} a second. That is {_TARGET} of what the server can do ({capacity}) and "
            "leaves the rest to others."
        )
    else:
        alone = "it" if load.is_of_one_job else "one of them alone"
        slower = "it" if load.is_of_one_job else "each of them"
        rate = f" with {coarse(load.rate):,.0f} {load.counted} a second" if load.rate else ""
        change = (
            f"make {slower} slower: {alone} did {percent(share, 0)}% of the server's work{rate}. "
            f"Below {_TARGET}, the rest is left to others."
        )
    first = (
        f"Before you run {these} again, please"
        if load.has_ended
        else f"Please stop or throttle {these}. Before you run {them} again,"
    )
    return f"{first} {change} {_goal(load)}"


def _exceeded_rate(load: Load) -> float | None:
    """Return the harmless rate if one job alone exceeds it."""
    limit = _harmless_rate(load)
    return limit if limit and load.rate and load.rate > limit else None


def _harmless_rate(load: Load) -> float | None:
    """Return the operations a second that leave most of a server to others, the same for all.

    None: unknown. A share of the work depends on the load of others, so no limit follows from it.
    """
    return coarse(HARM_SHARE * load.capacity) if load.capacity else None


def _spread(load: Load, share: float) -> str:
    these, it = ("this job", "It") if load.is_of_one_job else ("these jobs", "One of them alone")
    return (
        f"Please spread the requests of {these} over a longer time. {it} did {percent(share, 0)}% "
        f"of the server's work while others waited, and other load the rest. {_goal(load)}"
    )


def _improve(load: Load) -> str:
    change = "increase" if load.is_ceiling else "reduce"
    where = "" if not load.is_of_job else " in this job" if load.is_of_one_job else " in each job"
    unit = load.threshold.rpartition(" ")[2]
    value = load.value.removesuffix(f" {unit}")  # once, after the threshold
    return f"Please {change} {lowered(load.measure)}{where} from {value} to {_target(load)}."


def _goal(load: Load) -> str:
    if load.goal:
        return f"Solved when {load.goal.format(load.threshold)}."
    return f"Target: {lowered(load.measure)} {_target(load)}."


def _target(load: Load) -> str:
    return f"{'above' if load.is_ceiling else 'below'} {load.threshold}"
