"""Questions about the groups in a queue: the queue is served with and without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ioportal.load.analysis.replay.server import waiting

if TYPE_CHECKING:
    from ioportal.load.analysis.replay.demand import Bools, Floats, Ints
    from ioportal.load.analysis.replay.server import Flow

MIN_SPARED = 0.2  # of others' waiting
BUSIER_TIMES = 2.0  # work of another owner / of a group: with more, its waiting is its own doing
MOST_STEADY = 0.2  # of the waiting: without the senders that are not steady, there is no queue
DRAINED = 0.5  # backlog / capacity of a step: above it, a new queue begins


class Groups(NamedTuple):
    """The large groups of a queue; columns: its active senders, or sums of senders.

    Args:
        members: the senders of each group.
        others: the senders whose waiting counts for each group.
        calm: senders in no large group; shape (senders,).
        steady: senders that work as before the queue; shape (senders,).
    """

    members: Bools
    others: Bools
    calm: Bools
    steady: Bools


def alike_of(groups: Groups, limit: Floats) -> tuple[Ints, Ints]:
    """Return the first of each set of equivalent senders, and the set of each sender.

    No question distinguishes the senders of a set.

    Args:
        groups: the large groups; columns: senders.
        limit: requests of each sender at the server; infinite: no limit was reached.
    """
    limited = np.where(np.isfinite(limit), np.arange(1, len(limit) + 1), 0)
    told_apart = np.vstack([*groups, limited])
    _, first, alike = np.unique(told_apart, axis=1, return_index=True, return_inverse=True)
    return first, alike


class Question(NamedTuple):
    """What a group adds to the waiting of some others; arrays by step of the queue.

    Args:
        alone: see `Curves`.
        others: the active senders whose waiting counts.
        all_s: their waiting with all senders, by the replay.
        with_s: the same with the group.
        without_s: without it.
        one_s: how long a request waits, with and without it.
    """

    alone: bool
    others: Bools
    all_s: Floats
    with_s: Floats
    without_s: Floats
    one_s: Floats

    def spared_s(self, measured_s: Floats, since: int, most: float) -> Floats:
        """Return the part of their waiting that the others would have been spared, by step.

        It is 0 for a bystander. A replay shows how large the part is, not when: it is the same in
        all steps.

        Args:
            measured_s: measured waiting of the active senders, by step.
            since: the step of the group's first work.
            most: largest ratio of measured and replayed waiting.
        """
        waited_s: Floats = measured_s[since:, self.others].sum(axis=1)
        with_s, without_s = self.with_s[since:].sum(), self.without_s[since:].sum()
        spared_s = with_s - without_s
        if spared_s <= 0 or spared_s < MIN_SPARED * with_s or not waited_s.any():
            return np.zeros_like(waited_s)
        part: float = spared_s * self.scale(waited_s, since, most) / waited_s.sum()
        return part * waited_s

    def scale(self, waited_s: Floats, since: int, most: float) -> float:
        """Return measured waiting / replayed waiting of the others; arguments: see `spared_s`."""
        ratio: float = waited_s.sum() / self.all_s[since:].sum()
        return min(ratio, most)


def questions_of(
    flow: Flow,
    request_s: Floats,
    groups: Groups,
    *,
    capacity_s: float,
    width_s: float,
    is_steady: Bools,
    was_silent: bool,
) -> list[tuple[Question, Question]]:
    """Replay a queue, and return what can be asked of each group.

    Args:
        flow: the work of the active senders in the queue.
        request_s: work of a request of each.
        groups: the large groups.
        capacity_s: work of the server in a step.
        width_s: width of a step.
        is_steady: whether each group works as much as before the queue.
        was_silent: whether the server was idle before the queue.
    """
    members, others, calm, steady = groups
    everyone = np.ones((1, len(calm)), dtype=bool)
    scenarios = np.concatenate([everyone, calm[None], ~members, calm | members, steady[None]])
    calm_others = others & calm
    sums, each = [], []
    for step, of_each in waiting(flow, request_s, capacity_s, scenarios):
        without, alone = np.split(step[2:-1], 2)
        sums.append(
            [
                others @ step[0],
                (others * without).sum(axis=1),
                calm_others @ step[0],
                (calm_others * alone).sum(axis=1),
                calm_others @ step[1],
            ]
        )
        each.append(of_each)
    of_all, without, of_calm, alone, with_calm = np.moveaxis(np.array(sums) * width_s, 1, 0)
    one_s = np.moveaxis(np.array(each) * width_s, 1, 0)
    without_one_s, alone_one_s = np.split(one_s[2:-1], 2)
    # By others, or by the server.
    is_caused = was_silent or one_s[-1].sum() < MOST_STEADY * one_s[0].sum()
    is_bystander = is_steady & is_caused
    return [
        (
            Question(
                alone=False,
                others=others[n],
                all_s=of_all[:, n],
                with_s=of_all[:, n],
                without_s=of_all[:, n] if is_bystander[n] else without[:, n],
                one_s=np.array([one_s[0], without_one_s[n]]),
            ),
            Question(
                alone=True,
                others=calm_others[n],
                all_s=of_calm[:, n],
                with_s=alone[:, n],
                without_s=alone[:, n] if is_bystander[n] else with_calm[:, n],
                one_s=np.array([alone_one_s[n], one_s[1]]),
            ),
        )
        for n in range(len(members))
    ]
