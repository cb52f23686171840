"""Impact of principals and groups of jobs in windows of 10 s."""

from datetime import timedelta

import polars as pl
import pytest

from ioportal.load.analysis.replay.impact_by_group import by_window, queue_harms
from ioportal.load.analysis.waiting import MEMBERS
from tests.load.analysis.replay.test_spared_waiting import (
    BACKGROUND,
    CAPACITY_S,
    START,
    demand,
    served,
)

STORM = (15_000, 20, 30)


def impacts(*senders, members):
    columns = {name: [None] * len(senders) for name in MEMBERS}
    columns["principal"] = [f"s{n}" for n in range(len(senders))]
    of_jobs = pl.DataFrame(columns | members, MEMBERS)
    requested = demand(*served(*senders))
    return by_window(requested, queue_harms(requested, of_jobs, CAPACITY_S))


def test_a_group_has_the_impact_of_its_jobs():
    rows = impacts(
        BACKGROUND,
        STORM,
        members={
            "user": ["bob", "alice"],
            "project": ["p1", "p2"],
            "application": ["bob:md", "alice:unpack"],
        },
    )

    by_key = {
        (kind, key): us / 1e6
        for kind, key, us in rows.group_by("kind", "key").agg(pl.sum("impact_us")).rows()
    }
    storm_s = by_key.pop(("principal", "s1"))
    assert storm_s > 1_000
    for key in ("alice", "alice:unpack", "p2"):
        (of_group,) = [us for (_, name), us in by_key.items() if name == key]
        assert of_group == pytest.approx(storm_s)
    assert (
        sum(us for (_, key), us in by_key.items() if key not in {"alice", "alice:unpack", "p2"}) < 1
    )


@pytest.mark.parametrize(("end_s", "is_traced"), [(26, True), (35, False)])
def test_a_queue_with_a_long_gap_is_not_traced(end_s, is_traced):
    gap = (START + timedelta(seconds=25), START + timedelta(seconds=end_s))
    requested = demand(*served(BACKGROUND, STORM))
    none = {name: [None, None] for name in MEMBERS}
    of_jobs = pl.DataFrame(none | {"principal": ["s0", "s1"]}, MEMBERS)

    parts = queue_harms(requested, of_jobs, CAPACITY_S, untraced=[gap])

    assert {part.is_traced for part in parts if part.harms} == {is_traced}


def test_windows_are_those_of_the_queue():
    rows = impacts(BACKGROUND, STORM, members={"user": ["bob", "alice"]})

    storm = rows.filter(kind="user", key="alice").sort("start")
    seconds = (storm["start"] - START).dt.total_seconds()
    assert seconds.to_list() == list(range(seconds[0], seconds[-1] + 10, 10))
    assert seconds[0] == 20
    assert storm["work_us"].sum() / storm["all_work_us"].sum() > 0.9


def test_each_window_has_the_share_of_its_queue_and_no_more_impact_than_waiting():
    """Most of the work arrives in the first seconds, most of the waiting is later."""
    rows = impacts(BACKGROUND, (40_000, 20, 26), members={"user": ["bob", "alice"]})

    storm = rows.filter(kind="user", key="alice").sort("start")
    shares = storm["work_us"] / storm["all_work_us"]
    assert len(storm) > 4
    assert shares.to_list() == pytest.approx([shares[0]] * len(storm))
    assert (storm["impact_us"] <= storm["others_us"] - storm["others_usual_us"]).all()
