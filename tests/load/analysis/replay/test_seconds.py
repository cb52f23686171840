"""The seconds of a queue suffice to recompute the harm of a group by hand."""

import numpy as np
import pytest

from ioportal.load.analysis.replay.seconds import by_second, drained
from ioportal.load.analysis.replay.spared_waiting import Group, Queue
from tests import by_hand
from tests.load.analysis.replay.test_spared_waiting import (
    BACKGROUND,
    CAPACITY_S,
    at_limit,
    demand,
    harms,
    served,
)


@pytest.mark.parametrize(
    "requests",
    [
        pytest.param(served(BACKGROUND, (15_000, 20, 30)), id="storm"),
        pytest.param(served(BACKGROUND, (25_000, 20, 24), (2_000, 35, 44)), id="late sender"),
        pytest.param(served(BACKGROUND, (4_000, 0, 120), (6_000, 20, 30)), id="busy server"),
        pytest.param(served(BACKGROUND, (20_000, 20, 30), (20_000, 20, 30)), id="two storms"),
        pytest.param(at_limit(), id="sender at its limit"),
    ],
)
def test_the_harm_of_a_group_can_be_computed_by_hand(requests):
    requested = demand(*requests, clients=60.0)
    names = requested.senders
    groups = [Group(one, one) for one in np.eye(len(names), dtype=bool)]
    found = [
        harm for harm in harms(requested, groups, names, CAPACITY_S) if harm.spared_s.sum() > 100
    ]

    assert found
    for harm in found:
        rows = by_second(requested, harm, CAPACITY_S).to_dicts()
        expected = pytest.approx(harm.spared_s.sum(), rel=by_hand.TOLERANCE)
        assert by_hand.extra_wait_s(rows) == expected
        assert sum(row["impact_s"] + row["outside_s"] for row in rows) == pytest.approx(
            harm.spared_s.sum()
        )


def test_a_queue_ends_when_its_last_request_has_waited():
    """By the replay, the backlog may last longer."""
    arrival, sender, took = served(BACKGROUND, (15_000, 20, 30))
    requested = demand(arrival, sender, took)
    waited = took > 0.05
    last = (arrival + took)[waited].max()

    end = drained(requested, Queue(20, int(last) + 9, has_backlog=True))

    assert end == pytest.approx(last, abs=2)
