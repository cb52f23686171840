"""How much less others would have waited without a group of senders, queue by queue."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

from ioportal.load.analysis.replay.questions import (
    BUSIER_TIMES,
    DRAINED,
    Groups,
    alike_of,
    questions_of,
)
from ioportal.load.analysis.replay.server import Flow, wished

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ioportal.load.analysis.replay.demand import Bools, Demand, Floats, Ints

MIN_WORK = 0.1  # of a queue's work: a group with less did not cause it
STEADY_TIMES = 1.5  # work / that before the queue: a sender or group with less works as before
MOST_ADDED = 0.5  # of the work that all senders add: a group that adds as much has begun,
MORE_TIMES = 1.2  # if its share of it is larger than its usual share
BEFORE_S = 60.0  # without a queue
SILENT_S = 5.0  # without requests, before a queue: the server served none
OPEN_SHARE = 0.1  # of the length of a queue: it has drained if more is known after its end
OPEN_S = 2.0  # and at least this long
YOUNG_S = 90.0  # age at which a queue is evaluated although it has not drained
MOST_UNTRACED = 0.1  # of a queue: with more, harm is an estimate; of RPCs without times, unknown
CALM_STEPS_S = 60.0  # length of a part without a queue; the rest joins the part before
_LEAST_S = 1e-9  # of work
MOST_SCALE = 2.0  # measured waiting / replayed waiting


@dataclass(frozen=True)
class Queue:
    """Steps in which requests queue, or a part without a queue: [first, end)."""

    first: int
    end: int
    has_backlog: bool


@dataclass(frozen=True)
class Group:
    """Senders whose harm is asked for.

    Args:
        members: indices of senders.
        owners: indices of all senders whose waiting is the group's own.
    """

    members: Bools
    own: Bools


@dataclass(frozen=True)
class Curves:
    """A queue by step, from its first to its last, with and without a group.

    The rest are senders whose waiting is no harm of the group.

    Args:
        queue: the queue.
        since: the step of the group's first work, counted from the first of the queue.
        alone: whether the harm is what the group alone adds to the waiting of the calm, who are in
            no group with much of the queue's work.
        arriving_s: work that arrives: of the group, of the rest, and of others.
        requests: requests that arrived, as measured; as in `arriving_s`.
        one_s: how long a request waits, with and without the group.
        measured_s: measured waiting of others.
        others: indices of the senders that are others.
    """

    queue: Queue
    since: int
    alone: bool
    arriving_s: Floats
    requests: Floats
    one_s: Floats
    measured_s: Floats
    others: Ints


@dataclass(frozen=True)
class Harm:
    """The harm of a group in a queue; arrays by step of the queue.

    Args:
        group: number of the group.
        queue: the queue, from the group's first work.
        spared_s: waiting that others would have been spared.
        counted_share: the part of it that is of users' requests.
        scale: measured waiting / replayed waiting of the others, at most `MOST_SCALE`.
        work_s: work of the group in the whole queue.
        all_work_s: work of all senders in the whole queue.
        others_s: time of others' requests at the server.
        others_usual_s: the same on an idle server.
        curves: the whole queue by step.
    """

    group: int
    queue: Queue
    spared_s: Floats
    counted_share: float
    scale: float
    work_s: float
    all_work_s: float
    others_s: Floats
    others_usual_s: Floats
    curves: Curves


def queues(flow: Flow, capacity_s: float, width_s: float) -> list[Queue]:
    """Return the queues of a demand, and the parts between them.

    Args:
        flow: the demand.
        capacity_s: work of the server in a step.
        width_s: width of a step.
    """
    loads = [*(flow.work_s.sum(axis=1) / capacity_s).tolist(), 0.0]
    backlog = np.array(
        list(accumulate(loads, lambda left, load: max(left + load - 1, 0.0), initial=0.0))
    )[1:]
    is_queue = backlog > 0
    is_queue[1:] |= is_queue[:-1]  # the step in which the last requests are served
    is_rising = (backlog[:-1] < DRAINED) & (backlog[1:] >= DRAINED)
    begins = np.flatnonzero(np.diff(is_queue[:-1]) | (is_rising[:-1] & is_queue[1:-1])) + 1
    edges = [0, *begins.tolist(), len(flow.work_s)]
    longest = max(round(CALM_STEPS_S / width_s), 1)
    found: list[Queue] = []
    for first, end in pairwise(edges):
        if is_queue[first]:
            found.append(Queue(first, end, has_backlog=True))
        else:
            bounds = [*range(first, max(end - longest // 2, first + 1), longest), end]
            found += [Queue(*part, has_backlog=False) for part in pairwise(bounds)]
    return found


def by_queue(
    demand: Demand,
    groups: Sequence[Group],
    owners: Sequence[str],
    capacity_s: float,
    known_steps: int | None = None,
    *,
    earlier_s: Floats | None = None,
) -> Iterator[tuple[Queue, list[Harm]]]:
    """Yield each queue with the harm of groups in it.

    The demand is served with all senders and without each group. The replay gives the share of
    others' waiting that they are spared; their waiting itself is measured. Others are all senders
    except the group's own, and except senders of owners with more than `BUSIER_TIMES` its work, who
    cause their own waiting. A group with less than `MIN_WORK` of a queue's work, or that would
    spare others less than `MIN_SPARED` of their waiting, is a bystander. If several groups each
    block the server, removing one spares little: the harm is at least what the group alone adds to
    the waiting of senders outside such groups. A group that works as before a queue is a bystander
    if there is no queue without the senders that work more than before, or if the server served no
    request before the queue.

    Args:
        demand: the demand of a server.
        groups: the groups.
        owners: the owner of each sender.
        capacity_s: the work that the server does in a second.
        known_steps: steps of which all requests are known so far; None: all. A queue that has not
            drained by then is left out while it is shorter than `YOUNG_S`: half a queue does not
            show its cause. Requests that still wait are not known, and a capacity that is slightly
            too high drains a queue early: so a part of its length must be known after its end.
        earlier_s: work of each sender in a step, before a queue whose begin is not in the demand;
            None: unknown.

    Source: docs/metrics.md, "Impact".
    """
    per_step_s = capacity_s * demand.width_s
    flow = wished(demand, capacity_s)
    owner = np.unique(np.array(owners), return_inverse=True)[1]
    parts = queues(flow, per_step_s, demand.width_s)
    is_calm: Bools = demand.work_s.sum(axis=1) > 0
    for queue in parts:
        is_calm[queue.first : queue.end] &= not queue.has_backlog
    for queue in parts:
        if known_steps is not None and is_open(queue, known_steps, demand.width_s):
            continue
        before = _Before.of(demand, flow, queue, is_calm, earlier_s)
        yield (
            queue,
            _of_queue(demand, flow, queue, groups, before, owner=owner, capacity_s=per_step_s),
        )


def is_open(queue: Queue, known_steps: int, width_s: float) -> bool:
    """Return whether a queue is not evaluated: it may not have drained, and is young."""
    length = queue.end - queue.first
    margin = OPEN_S / width_s + OPEN_SHARE * length
    return queue.has_backlog and length < YOUNG_S / width_s and queue.end + margin > known_steps


@dataclass(frozen=True)
class _Before:
    """The work before a queue.

    Args:
        work_s: of each sender, in a time as long as the queue and the silence before it.
        was_silent: whether the server was idle just before the queue.
    """

    work_s: Floats
    was_silent: bool

    @classmethod
    def of(
        cls, demand: Demand, flow: Flow, queue: Queue, is_calm: Bools, earlier_s: Floats | None
    ) -> _Before:
        """Return the work in the last calm steps before a queue; unknown work is none."""
        calm = np.flatnonzero(is_calm[: queue.first])[-round(BEFORE_S / demand.width_s) :]
        known = np.flatnonzero(demand.work_s[: queue.first].any(axis=1))
        silent = queue.first - 1 - known[-1] if len(known) else 0
        step_s = flow.work_s[calm].sum(axis=0) / max(len(calm), 1)
        if not len(calm) and earlier_s is not None:
            step_s = earlier_s
        work_s = (queue.end - queue.first + silent) * step_s
        return cls(work_s, bool(silent * demand.width_s >= SILENT_S))


def _is_steady(work_s: Floats, usual_s: Floats, of_sender: Floats, before_s: Floats) -> Bools:
    """Return whether each group or sender works as before: not much more, nor most of the addition.

    Args:
        work_s: of each, in the queue.
        usual_s: of each, before it.
        of_sender: work of all senders, in the queue.
        before_s: work of all senders, before it.
    """
    more_s = work_s - usual_s
    share = usual_s / max(before_s.sum(), _LEAST_S)
    added_share = more_s / max(np.maximum(of_sender - before_s, 0).sum(), _LEAST_S)
    has_begun = (added_share >= MOST_ADDED) & (added_share >= MORE_TIMES * share)
    steady: Bools = (more_s < (STEADY_TIMES - 1) * usual_s) & ~has_begun
    return steady


def _heavy(members: Bools, work_s: Floats) -> Bools:
    """Return the senders of large groups; a wide group needs much work outside narrower groups.

    Args:
        members: of each large group; shape (groups, senders).
        work_s: of each sender.
    """
    heavy = np.zeros(members.shape[1], dtype=bool)
    for group in sorted(members, key=np.count_nonzero):
        light = group & ~heavy
        if work_s[light].sum() >= MIN_WORK * work_s.sum():
            heavy |= light
    return heavy


def _of_queue(
    demand: Demand,
    flow: Flow,
    queue: Queue,
    groups: Sequence[Group],
    before: _Before,
    *,
    owner: Ints,
    capacity_s: float,
) -> list[Harm]:
    steps = slice(queue.first, queue.end)
    work_s = flow.work_s[steps]
    active = np.flatnonzero(work_s.any(axis=0))
    work_s = work_s[:, active]
    of_sender = work_s.sum(axis=0)
    least_s = MIN_WORK * of_sender.sum()
    large = [
        n for n, group in enumerate(groups) if of_sender[group.members[active]].sum() >= least_s
    ]
    if not large or not len(active):
        return []
    members = np.array([groups[n].members[active] for n in large])
    of_owner = np.bincount(owner[active], of_sender)[owner[active]]
    others = np.array([~groups[n].own[active] for n in large])
    others &= of_owner <= BUSIER_TIMES * (members @ of_sender)[:, None]
    before_s = before.work_s[active]
    is_steady = _is_steady(members @ of_sender, members @ before_s, of_sender, before_s)
    steady = _is_steady(of_sender, before_s, of_sender, before_s)
    for n in np.argsort(-members.sum(axis=1), kind="stable"):  # the narrowest group decides
        steady[members[n]] = is_steady[n]
    of_senders = Groups(members, others, ~_heavy(members, of_sender), steady)
    first, alike = alike_of(of_senders, flow.limit[active])
    of_groups = Groups(*(table[..., first] for table in of_senders))

    order = np.argsort(alike, kind="stable")
    begins = np.searchsorted(alike[order], np.arange(len(first)))

    def summed(table: Floats) -> Floats:
        sums: Floats = np.add.reduceat(table[:, order], begins, axis=1)
        return sums

    part = Flow(summed(work_s), flow.limit[active][first])
    requests = summed(work_s / demand.request_s[active])
    request_s = part.work_s.sum(axis=0) / requests.sum(axis=0)
    waited_s, idle_s, counted_s, arrived = (
        summed(table[steps][:, active])
        for table in (demand.waited_s, demand.work_s, demand.counted_s, demand.requests)
    )
    most = MOST_SCALE if queue.has_backlog else 1.0
    found = []
    asked_of = questions_of(
        part,
        request_s,
        of_groups,
        capacity_s=capacity_s,
        width_s=demand.width_s,
        is_steady=is_steady,
        was_silent=before.was_silent,
    )
    for n, mine, questions in zip(large, of_groups.members, asked_of, strict=True):
        since = int(np.argmax(part.work_s[:, mine].any(axis=1)))
        answers = [each.spared_s(waited_s, since, most) for each in questions]
        asked, spared_s = max(zip(questions, answers, strict=True), key=lambda pair: pair[1].sum())
        if not spared_s.any():
            continue
        who = asked.others
        blocking = ~(of_groups.calm | mine) & asked.alone
        parts = np.array([mine, ~(mine | who | blocking), who, blocking])
        took_s = waited_s[since:, who]
        found.append(
            Harm(
                n,
                Queue(queue.first + since, queue.end, queue.has_backlog),
                spared_s,
                float(counted_s[since:, who].sum() / took_s.sum()),
                asked.scale(took_s, since, most),
                part.work_s[:, mine].sum(),
                part.work_s.sum(),
                (took_s + idle_s[since:, who]).sum(axis=1),
                idle_s[since:, who].sum(axis=1),
                Curves(
                    queue,
                    since,
                    asked.alone,
                    part.work_s @ parts.T,
                    arrived @ parts.T,
                    asked.one_s,
                    waited_s[:, who].sum(axis=1),
                    active[who[alike]],
                ),
            )
        )
    return found
