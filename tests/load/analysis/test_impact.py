"""Load, waiting and impact of principals and groups, summed over windows."""

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from ioportal.load.analysis.waiting import BASELINES, MEMBERS, WINDOWS, impact

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)
ENQUEUE, CLOSE = 101, 35
USUAL = pl.DataFrame([(1, 1, ENQUEUE, 100.0), (1, 1, CLOSE, 50.0)], schema=BASELINES, orient="row")
IMPACTS = {"kind": pl.String(), "key": pl.String(), "impact_us": pl.Float64()}
STORM = (0, ENQUEUE, "storm", 9_000, 80, 1_100), (0, ENQUEUE, "victim", 1_000, 80, 1_100)


def windows(*rows):
    """Return windows from (second after noon, opcode, principal, RPCs, service us, total us)."""
    return pl.DataFrame(
        [
            (NOON + timedelta(seconds=second), 1, 1, opcode, name, n, n * service_us, n * total_us)
            for second, opcode, name, n, service_us, total_us in rows
        ],
        schema=WINDOWS,
        orient="row",
    )


def members(users):
    """Return the groups of jobs by their users; each user has one project and one application."""
    return pl.DataFrame(
        [
            (job, user, f"project of {user}", f"{user} run", f"run of {user}", None, None)
            for job, user in users.items()
        ],
        schema=MEMBERS,
        orient="row",
    )


def of(rows, usual=USUAL, users=None, impacts=()):
    names = {row[2]: row[2] for row in rows}
    keyed = pl.DataFrame(impacts, schema=IMPACTS, orient="row")
    return impact(windows(*rows), usual, members(users or names), keyed)


def figures(result, column):
    return dict(result.principals.select("principal", column).iter_rows())


def test_waiting_and_share_of_each_principal():
    result = of(STORM, impacts=[("principal", "storm", 4e5), ("principal", "storm", 6e5)])

    # The victim's 1,000 RPCs took 1,000 us longer than usual: 1 s.
    assert figures(result, "impact_s") == {"storm": pytest.approx(1), "victim": 0}
    assert figures(result, "suffered_s") == {"storm": pytest.approx(9), "victim": pytest.approx(1)}
    assert figures(result, "share") == {"storm": pytest.approx(0.9), "victim": pytest.approx(0.1)}
    assert result.waited_s == pytest.approx(10)


def test_groups_sum_their_jobs_highest_impact_first():
    rows = [(0, ENQUEUE, f"job {n}", 100, 80, 2_100) for n in range(3)]
    users = {"job 0": "alice", "job 1": "alice", "job 2": "bob"}
    result = of(
        rows, users=users, impacts=[("user", "bob", 2e6), ("project", "project of bob", 1e6)]
    )

    assert result.groups.select("kind", "key", "rpcs", "impact_s").rows()[:3] == [
        ("user", "bob", 100, 2.0),
        ("project", "project of bob", 100, 1.0),
        ("user", "alice", 200, 0.0),
    ]


def test_a_job_blocked_on_locks_is_not_busy():
    blocked = (0, ENQUEUE, "blocked", 500, 72_000, 73_000)  # 900 times the storm's service time
    result = of([*STORM, blocked])

    assert figures(result, "share")["blocked"] < 0.05
    assert figures(result, "service_s")["blocked"] == 36


def test_a_baseline_of_zero_is_unknown():
    usual = pl.DataFrame([(1, 1, ENQUEUE, 0.0)], schema=BASELINES, orient="row")

    assert figures(of(STORM, usual), "suffered_s") == {"storm": 0, "victim": 0}


def test_faster_rpcs_offset_slower_rpcs():
    result = of([(0, ENQUEUE, "other", 100, 100, 300), (0, CLOSE, "other", 1_000, 10, 40)])

    assert result.waited_s == pytest.approx(0.01)


def test_rpcs_without_a_baseline_are_excluded_and_reported():
    result = of([(0, ENQUEUE, "storm", 300, 80, 900), (0, 36, "victim", 100, 80, 9_000)])

    assert result.known_share == 0.75
    assert figures(result, "suffered_s")["victim"] == 0


def test_no_windows_give_an_empty_result():
    result = of([])

    assert result.principals.is_empty()
    assert result.groups.is_empty()
    assert result.known_share == result.waited_s == 0
