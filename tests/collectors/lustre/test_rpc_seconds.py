"""Demand by second of arrival: in slow episodes only, and the same for any parts of a trace."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors import tables
from collectors.lustre import rpc_records, rpc_seconds
from collectors.lustre.rpc_records import Records
from collectors.lustre.rpc_seconds import SlowSeconds
from tests.properties import examples

START_S = 1_499_256_000  # a multiple of 10
SENDERS = [  # NID, job id, service, opcode
    ("1@gni", "", "mdt", 101),
    ("1@gni", "", "mdt_rdpg", 35),
    ("2@gni", "", "mdt", 101),
    ("1@gni", "77", "mdt", 101),
    ("2@gni", "77", "mdt", 101),
    ("3@gni", "77", "mdt", 35),
    ("3@gni", "78", "mdt", 101),
    ("4@gni", "cp.0", "mdt", 101),
]
GROUPS = pl.DataFrame(
    [(group, *names) for group, names in enumerate(SENDERS)],
    schema=rpc_records.NAMES,
    orient="row",
)


def record(second, waited_s=0.0, group=0, served_us=50_000):
    """Return a record that arrived at a second after `START_S`: time, service, total, group."""
    total_us = round(waited_s * 1e6) + served_us
    return (START_S * 1_000_000 + round(second * 1e6) + total_us, served_us, total_us, group)


def records(rows, first_line=1):
    """Return records of a trace, in the order of their lines."""
    numbers = pl.DataFrame(
        [(first_line + n, *row, n) for n, row in enumerate(rows)],
        schema=rpc_records.NUMBERS,
        orient="row",
    )
    return Records(numbers, GROUPS)


def demand(rows, cuts=()):
    """Return the rows of a trace that is read in parts, added up as all consumers do."""
    seconds = SlowSeconds()
    bounds = [0, *sorted(cuts), len(rows)]
    parts = [
        seconds.add(records(rows[begin:end], first_line=begin + 1))
        for begin, end in pairwise(bounds)
    ]
    table = pl.concat([*parts, seconds.rest()])
    assert table.schema == tables.RPC_SECONDS.columns
    added_up = table.group_by("second", "start", "job", "nid", "service", "opcode").agg(
        pl.sum("count", "total_us_sum", "service_us_sum"), pl.max("nids")
    )
    return set(added_up.select(table.columns).rows())


def expected(rows):
    """Compute the same record by record."""
    run_s = 10**10
    clock, run, previous, records_at = 0, 0, None, []
    sums, longest = defaultdict(Counter), Counter()
    for time_us, service_us, total_us, group in rows:
        ended = time_us // 1_000_000
        if previous is not None and ended < previous - 180:
            run += 1
        previous = ended
        clock = max(clock, run * run_s + ended)
        is_counted = service_us is not None and run * run_s + ended >= clock - 180
        if is_counted:
            arrived = max((time_us - total_us) // 1_000_000, ended - 180)
            sums[clock] += Counter(queue=total_us - service_us, service=service_us)
            second = run * run_s + arrived
            longest[clock] = max(longest[clock], min(clock - second, 180))
            records_at.append((clock // 10, second, ended // 10 * 10, service_us, total_us, group))
    slow = [t for t, s in sums.items() if s["queue"] > s["service"] and s["queue"] >= 100_000]
    of_second = defaultdict(list)
    for row in records_at:
        if any(t - min(60 + longest[t], 180) <= row[1] <= t + 10 for t in slow):
            of_second[row[:2]].append(row[2:])
    table = defaultdict(lambda: [0, 0, 0, 0])
    for (_, second), wanted in of_second.items():
        senders = [(SENDERS[g][1], "" if SENDERS[g][1] else SENDERS[g][0]) for *_, g in wanted]
        ranked = sorted(Counter(senders).items(), key=lambda item: (-item[1], item[0]))
        named = {sender for sender, _ in ranked[: rpc_seconds.SENDERS]}
        senders = [sender if sender in named else ("", "") for sender in senders]
        nids = defaultdict(set)
        for sender, (*_, group) in zip(senders, wanted, strict=True):
            nids[sender].add(SENDERS[group][0])
        for sender, (window, service_us, total_us, group) in zip(senders, wanted, strict=True):
            key = (moment(second % run_s), moment(window), *sender, *SENDERS[group][2:])
            count, total, service, most = table[key]
            table[key] = [
                count + 1, total + total_us, service + service_us, max(most, len(nids[sender]))
            ]  # fmt: skip
    return {(*key, *values) for key, values in table.items()}


def moment(second):
    return datetime.fromtimestamp(second, UTC)


def calm(begin, end):
    return [record(second, group=2) for second in range(begin, end)]


def test_a_calm_trace_has_no_rows():
    # (Waits of microseconds, though they exceed the service time, are no queue.)
    assert demand([*calm(0, 300), *(record(300, 0.00002, served_us=5) for _ in range(99))]) == set()


def test_a_slow_second_keeps_the_minute_before_it_and_ten_seconds_after_it():
    rows = [*calm(0, 100), record(100.5, 3), *calm(104, 300)]

    kept = sorted((row[0] - moment(START_S)) // timedelta(seconds=1) for row in demand(rows))

    # It arrived in second 100, and was handled in second 103.
    assert kept == [*range(40, 101), *range(104, 114)]


def test_heaviest_senders_are_named(monkeypatch):
    monkeypatch.setattr(rpc_seconds, "SENDERS", 2)
    groups = [0, 0, 0, 3, 4, 4, 6, 7]  # 1@gni three times, 77 three times, 78 and cp.0 once

    rows = demand([record(0, 3, group) for group in groups])

    second, window = moment(START_S), moment(START_S)
    assert rows == {
        (second, window, "", "1@gni", "mdt", 101, 3, 3 * 3_050_000, 150_000, 1),
        (second, window, "77", "", "mdt", 101, 3, 3 * 3_050_000, 150_000, 2),
        (second, window, "", "", "mdt", 101, 2, 2 * 3_050_000, 100_000, 2),
    }


def test_a_longer_wait_counts_as_three_minutes():
    [row] = demand([record(0, 1_000)])

    assert row[0] == moment(START_S + 1_000 - rpc_seconds.WAIT_S)
    assert row[7] == 1_000_050_000


steps = st.tuples(
    # Mostly in order; at times silent, late, or set back.
    st.sampled_from([0, 0, 0, 0.3, 1, 1, 4, 30, 100, -2, -200, 1_000]),
    st.sampled_from([0, 0, 0, 0.04, 0.2, 2, 15, 70, 170, 400]),
    st.integers(0, len(SENDERS) - 1),
    st.sampled_from([50_000, 50_000, 1_000_000, None]),
)


@given(st.lists(steps, min_size=1, max_size=60), st.data())
@settings(max_examples=examples(100))
def test_every_division_gives_the_rows_of_a_count_by_record(steps, data):
    rows, ended = [], 1_000.0
    for step, waited, group, served_us in steps:
        ended = max(ended + step, 0)
        time_us = START_S * 1_000_000 + round(ended * 1e6)
        total_us = served_us and round(waited * 1e6) + served_us
        rows.append((time_us, served_us, total_us, group))
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=8))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rpc_seconds, "SENDERS", 2)
        patch.setattr(rpc_seconds, "_ROWS_AT_ONCE", data.draw(st.integers(1, 20)))
        assert demand(rows, cuts) == expected(rows)
