from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.lustre.opcodes import OBD_PING
from ioportal.analysis.accountability import BUSIER_TIMES, CALM_SHARE
from ioportal.analysis.impact import (
    BASELINES,
    BEGUN_TIMES,
    ENDED_TIMES,
    MEMBERS,
    WINDOWS,
    by_window,
)
from tests.analysis.window_impact import impact

NOON = datetime(2017, 7, 5, 12, tzinfo=UTC)
ENQUEUE, CLOSE = 101, 35
USUAL = pl.DataFrame([(1, 1, ENQUEUE, 100.0), (1, 1, CLOSE, 50.0)], schema=BASELINES, orient="row")


def at(seconds):
    return NOON + timedelta(seconds=seconds)


def windows(*rows, server=1, service=1):
    """Return windows from (second after noon, opcode, principal, RPCs, service us, total us)."""
    return pl.DataFrame(
        [
            (at(second), server, service, opcode, name, rpcs, rpcs * service_us, rpcs * total_us)
            for second, opcode, name, rpcs, service_us, total_us in rows
        ],
        schema=WINDOWS,
        orient="row",
    )


def members(users):
    """Return the groups of jobs by their users; each user has one project and one application."""
    return pl.DataFrame(
        [(job, user, f"project of {user}", f"{user} run", None) for job, user in users.items()],
        schema=MEMBERS,
        orient="row",
    )


def figures(result, column):
    return dict(result.principals.select("principal", column).iter_rows())


def impact_s(result, kind="user"):
    return dict(result.groups.filter(kind=kind).select("key", "impact_s").iter_rows())


NAMES = ("storm", "victim", "busy", "other", "burst", "next", "steady", "blocked", "bystander")
JOBS = members({name: name for name in NAMES})  # of one user each


def test_a_storm_is_accountable_for_all_waiting_of_others():
    result = impact(
        windows(
            (0, ENQUEUE, "storm", 9_000, 80, 1_100),
            (0, ENQUEUE, "victim", 1_000, 80, 1_100),
        ),
        USUAL,
        JOBS,
    )

    # The victim's 1,000 RPCs took 1,000 us longer than usual: 1 s.
    assert figures(result, "impact_s") == {"storm": pytest.approx(1), "victim": 0}
    assert figures(result, "suffered_s") == {"storm": pytest.approx(9), "victim": pytest.approx(1)}
    assert figures(result, "share") == {"storm": pytest.approx(0.9), "victim": pytest.approx(0.1)}
    assert result.waited_s == pytest.approx(10)


def test_nobody_waits_for_pings_and_requests_outside_jobs():
    rows = windows(
        (0, ENQUEUE, "storm", 9_000, 80, 1_100),
        (0, ENQUEUE, "victim", 1_000, 80, 1_100),
        (0, OBD_PING, "victim", 500, 80, 1_100),
        (0, ENQUEUE, "daemon", 700, 80, 1_100),
    )
    usual = pl.concat([USUAL, USUAL.head(1).with_columns(opcode=pl.lit(OBD_PING, pl.Int16))])

    [storm] = by_window(rows, usual, JOBS).filter(kind="principal", key="storm").rows(named=True)

    assert storm["impact_us"] == pytest.approx(1_000 * 1_000)
    assert storm["outside_us"] == pytest.approx((500 + 700) * 1_000)
    assert (storm["others_us"], storm["others_usual_us"]) == (1_100_000, 100_000)


def test_a_busy_job_without_waiting_of_others_has_no_impact():
    result = impact(
        windows((0, ENQUEUE, "busy", 50_000, 80, 95), (0, ENQUEUE, "other", 500, 80, 100)),
        USUAL,
        JOBS,
    )

    assert figures(result, "impact_s") == {"busy": 0, "other": 0}
    assert figures(result, "share")["busy"] > 0.98


def test_a_baseline_of_zero_is_unknown():
    rows = windows(
        (0, ENQUEUE, "storm", 9_000, 80, 1_100), (0, ENQUEUE, "victim", 1_000, 80, 1_100)
    )
    usual = pl.DataFrame([(1, 1, ENQUEUE, 0.0)], schema=BASELINES, orient="row")

    assert by_window(rows, usual, JOBS)["impact_us"].to_list() == [0] * 8


def test_many_small_jobs_of_a_user_are_one_storm():
    jobs = {f"job {n}": "stormy" for n in range(700)} | {"bystander": "calm"}
    rows = [(0, ENQUEUE, job, 100, 80, 2_100) for job in jobs if job != "bystander"]
    result = impact(windows(*rows, (0, ENQUEUE, "bystander", 500, 80, 2_100)), USUAL, members(jobs))

    for kind, groups in (
        ("user", {"stormy": 1, "calm": 0}),
        ("project", {"project of stormy": 1, "project of calm": 0}),
        ("application", {"stormy run": 1, "calm run": 0}),
    ):
        assert impact_s(result, kind) == pytest.approx(groups)
    assert sum(figures(result, "impact_s").values()) == 0  # of single jobs


def test_a_storm_under_many_process_names_blames_others_no_more_than_under_one():
    names = [f"process {n}" for n in range(1_000)]
    processes = pl.DataFrame({"principal": names, "source": "processes"})
    groups = pl.concat([members({"a": "alice", "b": "bob"}), processes], how="diagonal")

    def blamed(storm):
        jobs = (0, ENQUEUE, "a", 30_000, 80, 2_000), (0, ENQUEUE, "b", 10_000, 80, 2_000)
        rows = [(0, ENQUEUE, name, rpcs, 80, 2_000) for name, rpcs in storm.items()]
        return impact_s(impact(windows(*jobs, *rows), USUAL, groups))

    # Without alice's job, the server would do 7/10 of the work: she is hardly accountable.
    assert blamed({names[0]: 60_000}) == pytest.approx({"alice": 1.9, "bob": 0})
    assert blamed(dict.fromkeys(names, 60)) == pytest.approx({"alice": 1.9, "bob": 0})


def test_a_storm_of_a_whole_project_is_found_although_no_user_stands_out():
    jobs = pl.DataFrame(
        [(f"job {n}", f"user {n}", "P", f"user {n} run", None) for n in range(20)]
        + [(f"other {n}", f"other {n}", f"Q{n}", f"other {n} run", None) for n in range(20)],
        schema=MEMBERS,
        orient="row",
    )
    rows = [(0, ENQUEUE, f"job {n}", 900, 80, 2_100) for n in range(20)]
    rows += [(0, ENQUEUE, f"other {n}", 100, 80, 2_100) for n in range(20)]
    result = impact(windows(*rows), USUAL, jobs)

    assert impact_s(result, "project")["P"] == pytest.approx(4)
    assert max(value for key, value in impact_s(result, "project").items() if key != "P") == 0


def test_two_equal_storms_are_each_accountable_for_the_other():
    jobs = {"a": "alice", "b": "bob", "victim": "carol"}
    rows = [(0, ENQUEUE, job, 10_000, 80, 1_100) for job in ("a", "b")]
    result = impact(windows(*rows, (0, ENQUEUE, "victim", 100, 80, 1_100)), USUAL, members(jobs))

    assert impact_s(result) == pytest.approx({"alice": 10.1, "bob": 10.1, "carol": 0})


def test_a_job_blocked_on_locks_is_not_busy():
    result = impact(
        windows(
            (0, ENQUEUE, "storm", 9_000, 80, 1_100),
            (0, ENQUEUE, "blocked", 500, 72_000, 73_000),  # 50 times the storm's service time
            (0, ENQUEUE, "victim", 1_000, 80, 1_100),
        ),
        USUAL,
        JOBS,
    )

    assert figures(result, "share")["blocked"] < 0.05
    assert figures(result, "impact_s")["blocked"] == 0
    # The blocked job waits 36 s for a lock, not for the storm.
    assert figures(result, "impact_s")["storm"] == pytest.approx(0.95 + 1.0, abs=0.1)
    assert figures(result, "service_s")["blocked"] == 36


def test_nobody_is_accountable_for_a_lock_of_others():
    result = impact(
        windows(
            (0, ENQUEUE, "bystander", 100, 100, 100),
            (0, ENQUEUE, "blocked", 2, 60_000_000, 60_000_000),
        ),
        USUAL,
        JOBS,
    )

    assert max(figures(result, "impact_s").values()) < 0.01  # of 120 s


def test_threads_that_are_all_blocked_are_no_bystanders_work():
    result = impact(
        windows(
            (0, ENQUEUE, "bystander", 10_000, 100, 9_000_000),
            (0, ENQUEUE, "victim", 100, 100, 9_000_000),
            (0, ENQUEUE, "blocked", 512, 9_900_000, 9_900_000),
        ),
        USUAL,
        JOBS,
    )

    assert max(figures(result, "impact_s").values()) < 0.01 * result.waited_s


def test_a_queue_that_outlives_its_storm_is_attributed_to_it():
    # The victim's RPCs of the last window waited for 25 s, since the storm.
    result = impact(
        windows(
            (0, ENQUEUE, "storm", 90_000, 80, 1_000_000),
            (10, ENQUEUE, "storm", 90_000, 80, 5_000_000),
            (20, ENQUEUE, "victim", 100, 80, 25_000_000),
        ),
        USUAL,
        JOBS,
    )

    assert figures(result, "impact_s") == pytest.approx({"storm": 2_499.99, "victim": 0}, abs=0.1)


def test_the_end_of_an_overload_is_attributed_to_it():
    end = (10, ENQUEUE, "victim", 1_000, 80, 20_000), (10, ENQUEUE, "next", 2_000, 80, 20_000)
    storm = (0, ENQUEUE, "storm", 90_000, 80, 50_000)

    alone = figures(impact(windows(*end), USUAL, JOBS), "impact_s")
    after_storm = figures(impact(windows(storm, *end), USUAL, JOBS), "impact_s")

    assert alone["next"] > 10
    assert after_storm == pytest.approx({"storm": 59.7, "next": 0, "victim": 0})


def test_an_overload_ends_at_an_unknown_time_between_two_reads():
    storm = (0, ENQUEUE, "storm", 90_000, 80, 50_000)
    after = [
        (second, ENQUEUE, name, rpcs, 80, 20_000)
        for second in (10, 20)
        for name, rpcs in (("victim", 1_000), ("next", 2_000))
    ]

    def blamed_on_the_storm(*read_at):
        reads = pl.Series([at(second) for second in read_at])
        rows = by_window(windows(storm, *after), USUAL, JOBS, reads=reads)
        return set(rows.filter(pl.col("impact_us") > 0, key="storm", kind="principal")["start"])

    assert blamed_on_the_storm(0, 10) == {at(10), at(20)}
    assert blamed_on_the_storm(0, 10, 20) == {at(10)}


def test_the_beginning_of_an_overload_is_attributed_to_it():
    # The storm begins in the last second of the first window, as a burst of another job does.
    begin = (0, ENQUEUE, "storm", 4_000, 80, 20_000), (0, ENQUEUE, "burst", 3_500, 80, 20_000)
    storm = (10, ENQUEUE, "storm", 90_000, 80, 50_000)

    alone = figures(impact(windows(*begin), USUAL, JOBS), "impact_s")
    before_storm = figures(impact(windows(*begin, storm), USUAL, JOBS), "impact_s")

    assert alone["burst"] > 10
    assert before_storm == pytest.approx({"storm": 69.65, "burst": 0})


def test_work_while_no_rpcs_wait_causes_no_waiting():
    # The burst lasts a second: few RPCs of the steady job wait.
    result = impact(
        windows(
            (0, ENQUEUE, "burst", 10_000, 80, 20_000), (0, ENQUEUE, "steady", 9_000, 80, 2_000)
        ),
        USUAL,
        JOBS,
    )

    assert figures(result, "impact_s") == pytest.approx({"burst": 17.1, "steady": 0})


def test_waiting_elsewhere_or_at_another_time_is_not_attributed():
    result = impact(
        pl.concat(
            [
                windows((0, ENQUEUE, "storm", 9_000, 80, 100)),
                windows((10, ENQUEUE, "victim", 1_000, 80, 5_000)),
                windows((0, ENQUEUE, "victim", 1_000, 80, 5_000), server=2),
            ]
        ),
        USUAL,
        JOBS,
    )

    assert figures(result, "impact_s") == {"storm": 0, "victim": 0}


def test_faster_rpcs_of_others_offset_slower_rpcs():
    result = impact(
        windows(
            (0, ENQUEUE, "storm", 10_000, 100, 100),
            (0, ENQUEUE, "other", 100, 100, 300),
            (0, CLOSE, "other", 1_000, 10, 40),
        ),
        USUAL,
        JOBS,
    )

    assert figures(result, "impact_s")["storm"] == pytest.approx(0.01)


def test_rpcs_without_a_baseline_are_excluded_and_reported():
    result = impact(
        windows((0, ENQUEUE, "storm", 300, 80, 900), (0, 36, "victim", 100, 80, 9_000)),
        USUAL,
        JOBS,
    )

    assert result.known_share == 0.75
    assert figures(result, "impact_s")["storm"] == 0


def test_no_windows_give_an_empty_result():
    result = impact(windows(), USUAL, JOBS)

    assert result.principals.is_empty()
    assert result.groups.is_empty()
    assert result.known_share == result.waited_s == 0


USERS = {"a": "u", "b": "u", "c": "v"}  # d is outside jobs
PARTIES = {"u": {"a", "b"}, "v": {"c"}, "d": {"d"}}
rows = st.lists(
    st.tuples(
        st.sampled_from([0, 10, 20]),
        st.sampled_from([ENQUEUE, CLOSE]),
        st.sampled_from(["a", "b", "c", "d"]),
        st.integers(0, 10_000),
        st.integers(0, 500),
        st.integers(0, 5_000),
    ),
    max_size=30,
)


def _work(window):
    usual = {ENQUEUE: 100, CLOSE: 50}
    return sum(rpcs * usual[opcode] for _, opcode, _, rpcs, _, _ in window)


def _took(window):
    return sum(rpcs * total for *_, rpcs, _, total in window)


def _of(names, window):
    return [row for row in window if row[2] in names]


def _wait(window):
    rpcs = sum(row[3] for row in window)
    return max(_took(window) - _work(window), 0) / rpcs if rpcs else None


def _queued(window):
    """Return the work of each principal while RPCs waited."""
    work = {name: _work(_of(name, window)) for name in "abcd"}
    waits = {name: _wait(_of(name, window)) for name in work}
    longest = waits[max(work, key=lambda name: (work[name], waits[name] or 0))]
    for name, wait in waits.items():
        if wait is not None and longest:
            work[name] *= min(wait / longest, 1)
    return work


def _overloads(window, other, busier_times):
    is_slower = _took(window) * _work(other) > _took(other) * _work(window)
    return is_slower and _work(window) >= busier_times * _work(other)


def _ahead(rows, second):
    """Return the queued work of each principal in the windows that delay those of a window."""
    before, window, after = (
        [row for row in rows if row[0] == moment] for moment in (second - 10, second, second + 10)
    )
    times_before = _took(before) / _work(before) if _work(before) else 1
    begins = _took(window) >= BEGUN_TIMES * times_before * _work(window)
    parts = [window]
    if _overloads(before, window, ENDED_TIMES):
        parts.append(before)
    if begins and _overloads(after, window, 1):
        parts.append(after)
    each = list(map(_queued, parts))
    return {name: sum(work[name] for work in each) for name in "abcd"}


def _by_the_formula(rows, group):
    """Compute the impact of a set of principals window by window, in plain Python."""
    outside = {party: names - group for party, names in PARTIES.items()}
    party = set().union(*(names for names in PARTIES.values() if names & group))
    seconds = 0.0
    for second in {row[0] for row in rows if row[3]}:
        ahead = _ahead(rows, second)

        def share(names, ahead=ahead):
            total = sum(ahead.values())
            return sum(ahead[name] for name in names) / total if total else 0

        own = share(group)
        others = [share(names) for names in outside.values() if names]
        reach = own + sum(min(other, own) for other in others)
        ratio = own / max([own, *others], default=1) if own else 0
        accountable = max(0, (reach - CALM_SHARE) / (1 - CALM_SHARE)) * ratio**2
        waiting = set().union(
            *(
                names
                for names in PARTIES.values()
                if names not in (party, {"d"}) and share(names) <= BUSIER_TIMES * own
            )
        )
        others_rows = _of(waiting, [row for row in rows if row[0] == second])
        seconds += accountable * max(0, _took(others_rows) - _work(others_rows)) / 1e6
    return seconds


@settings(max_examples=40)
@given(rows)
def test_impact_agrees_with_its_formula(rows):
    result = impact(windows(*rows), USUAL, members(USERS))

    jobs = {name: _by_the_formula(rows, {name}) for name in {row[2] for row in rows}}
    assert figures(result, "impact_s") == pytest.approx(jobs, abs=1e-9)
    groups = {user: {job for job, of in USERS.items() if of == user} for user in ("u", "v")}
    present = {row[2] for row in rows}
    users = {user: _by_the_formula(rows, jobs) for user, jobs in groups.items() if jobs & present}
    assert impact_s(result) == pytest.approx(users, abs=1e-9)


@settings(max_examples=25)
@given(
    st.integers(1, 300),
    st.lists(st.integers(1, 100), min_size=1, max_size=20),
    st.integers(110, 10_000_000),
)
def test_no_outsider_is_assigned_a_fiftieth_of_a_storm(size, others, total_us):
    storm = {f"job {n}": "storm" for n in range(size)}
    outside = {f"other {n}": f"other {n}" for n in range(len(others))}
    rpcs = [*[20_000 // size + 1] * size, *others]
    jobs = storm | outside
    result = impact(
        windows(
            *((0, ENQUEUE, job, count, 80, total_us) for job, count in zip(jobs, rpcs, strict=True))
        ),
        USUAL,
        members(jobs),
    )

    users, single = impact_s(result), figures(result, "impact_s")
    limit = 0.02 * users["storm"]
    assert max(users[user] for user in outside.values()) <= limit
    assert max(single[job] for job in outside) <= limit
