"""Baselines: medians of calm windows, independent of incidents, stored for a day."""

from datetime import timedelta

import numpy as np
import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioportal.core.postgres.advisory_locks import Lock
from ioportal.load import baselines
from ioportal.load.models import Baseline
from ioportal.site.models import Server, Service
from ioportal.telemetry import rollups
from ioportal.telemetry.models import BaselinePeriod, Coverage
from ioportal.telemetry.stage_runs import drain
from tests import second_connection
from tests.logs import at, rpc
from tests.properties import examples

ENQUEUE, CLOSE = 101, 35
NOON = at("12:00")


@pytest.fixture
def mds(site):
    return Server.objects.get(name="mds1").pk


@pytest.fixture
def service(db):
    return Service.objects.get_or_create(name="mdt")[0].pk


@pytest.fixture
def total(mds, service):
    """Store totals of windows (seconds before noon, opcode, RPCs, us in all) of a traced day."""
    day = {"start": NOON - timedelta(days=2), "end": NOON, "segment_id": 1}
    Coverage.objects.create(source=Coverage.Source.RPC_TRACE, source_id=mds, **day)

    def store(*rows):
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO telemetry_rpctotal VALUES (%s, %s, %s, %s, %s, %s, 0, 0, 0, 0, 0, %s)",
                [
                    (NOON - timedelta(seconds=ago), mds, service, opcode, rpcs, rpcs, us)
                    for ago, opcode, rpcs, us in rows
                ],
            )

    return store


@pytest.fixture
def usual(mds):
    """Return a function that reads the baseline of each opcode."""

    def read(moment=NOON):
        rows = baselines.at_time([mds], moment).select("opcode", "baseline_us").rows()
        return {opcode: pytest.approx(us) for opcode, us in rows}

    return read


def calm(windows, us=100, opcode=ENQUEUE, until_s=0):
    return [(until_s + 10 * n, opcode, 10, 10 * us) for n in range(1, windows + 1)]


def test_a_baseline_is_the_median_of_windows_up_to_the_usual_load(total, usual):
    total(*[(10 * n, ENQUEUE, 10, 10 * (90 + n % 21)) for n in range(1, 1_201)])
    total(*[(12_000 + 10 * n, ENQUEUE, 1_000, 140_000) for n in range(1, 1_200)])

    assert usual() == {ENQUEUE: 100}


def test_a_baseline_of_too_few_windows_is_unknown(total, usual):
    total(*calm(999), *calm(1_000, us=50, opcode=CLOSE))

    assert usual() == {CLOSE: 50}


def test_an_incident_does_not_become_usual(total, usual, mds):
    total(*calm(1_200, until_s=40_000))
    assert usual(NOON - timedelta(seconds=40_000)) == {ENQUEUE: 100}
    total(*calm(3_000, us=800))  # longer than all that was calm

    assert usual() == {ENQUEUE: 100}

    [slow] = baselines.slowdowns(
        [mds], NOON - timedelta(days=1), NOON, baselines.at_time([mds], NOON)
    )
    assert (slow.start, slow.end) == (NOON - timedelta(seconds=30_000), NOON)
    assert slow.factor == pytest.approx(8)


def test_another_mix_of_opcodes_is_not_slow(total, usual, mds):
    total(*calm(1_500, us=50, opcode=CLOSE), *calm(1_500, us=900, until_s=20_000))

    assert usual() == {CLOSE: 50, ENQUEUE: 900}
    known = baselines.at_time([mds], NOON)
    assert baselines.slowdowns([mds], NOON - timedelta(days=1), NOON, known) == []


def test_baselines_are_stored_for_a_day(total, usual):
    total(*calm(10_000))
    usual()
    Baseline.objects.update(baseline_us=70)

    assert usual(NOON + timedelta(hours=23)) == {ENQUEUE: 70}
    assert usual(NOON + timedelta(hours=24)) == {ENQUEUE: 100}
    assert usual(NOON + timedelta(hours=1)) == {ENQUEUE: 70}


def test_a_page_does_not_wait_for_a_roll_up(total, usual):
    total(*calm(10_000))

    with second_connection.connect() as other:
        other.execute("SELECT pg_advisory_xact_lock(%s)", [Lock.ROLL_UP])
        assert usual() == {ENQUEUE: 100}
        assert not Baseline.objects.exists()

    assert usual() == {ENQUEUE: 100}
    assert Baseline.objects.exists()


def test_a_period_of_too_few_windows_is_not_valid_for_a_day(total, usual):
    total(*calm(500, until_s=80_000))  # a short trace of the day before
    assert usual(NOON - timedelta(hours=12)) == {}
    total(*calm(1_200))

    assert usual() == {ENQUEUE: 100}


def test_a_short_trace_of_weeks_ago_is_no_day(total, usual, mds):
    hours, source = timedelta(hours=6), {"source": Coverage.Source.RPC_TRACE, "source_id": mds}
    Coverage.objects.update(start=NOON - hours)
    long_ago = NOON - timedelta(days=14)
    Coverage.objects.create(
        **source, start=long_ago, end=long_ago + timedelta(minutes=10), segment_id=2
    )
    total(*calm(1_000, until_s=10_800))
    assert usual(NOON - timedelta(hours=3)) == {ENQUEUE: 100}

    total(*calm(1_000, us=50, opcode=CLOSE))

    assert usual() == {ENQUEUE: 100, CLOSE: 50}


def test_late_data_update_baselines(site, mds, logs, ingest, total, usual, service):
    total(*calm(1_000))
    assert usual() == {ENQUEUE: 100}

    ingest("rpctrace", logs("t", rpc("09:00:00", us=(10, 20))), server="mds1")
    drain(rollups.roll_up)

    assert not BaselinePeriod.objects.exists()
    assert not Baseline.objects.exists()


def test_the_task_computes_due_baselines_only(total, mds):
    total(*calm(10_000))

    baselines.refresh(NOON + timedelta(minutes=10))

    assert BaselinePeriod.objects.get().end == NOON
    baselines.refresh(NOON + timedelta(hours=20))
    assert BaselinePeriod.objects.count() == 1


def _by_numpy(windows):
    """Compute one server's and service's baselines from {(second, opcode): (RPCs, us)}."""
    moments = sorted({second for second, _ in windows})
    loads = {s: sum(n for (at_s, _), (n, _) in windows.items() if at_s == s) for s in moments}
    usual_load = np.median(list(loads.values())) if loads else 0
    means = {}
    for (second, opcode), (rpcs, us) in windows.items():
        if loads[second] <= usual_load:
            means.setdefault(opcode, []).append(us / rpcs)
    return {opcode: np.median(times) for opcode, times in means.items() if len(times) >= 3}


@settings(max_examples=examples(10), suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(
        st.tuples(st.integers(1, 30).map(lambda n: 10 * n), st.sampled_from([ENQUEUE, CLOSE])),
        st.tuples(st.integers(1, 50), st.integers(50, 70)),
        max_size=40,
    )
)
def test_numpy_agrees(total, usual, monkeypatch, windows):
    monkeypatch.setattr(baselines, "MIN_BASELINE_WINDOWS", 3)
    with transaction.atomic():
        # Too little time for any slow half minute.
        total(*[(s, opcode, rpcs, rpcs * us) for (s, opcode), (rpcs, us) in windows.items()])

        assert usual() == _by_numpy({key: (rpcs, rpcs * us) for key, (rpcs, us) in windows.items()})
        transaction.set_rollback(True)
