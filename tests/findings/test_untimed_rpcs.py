"""RPCs without times are unknown to a replay: it does not blame the timed rest for their harm."""

from datetime import timedelta

import pytest

from ioportal.findings.models import Flag
from ioportal.telemetry.models import ImpactWindow
from tests import storms
from tests.logs import GETATTR, Run, at, rpc, sacct

_RUNS = (
    Run("77", nodes="n3", user="mallory"),
    Run("78", nodes="n2", user="bob", project="P2"),
    Run("79", nodes="n5", user="carol", project="P3"),
)
_WORK = timedelta(milliseconds=20)


@pytest.mark.parametrize("has_times", [True, False])
def test_untimed_rpcs_of_a_storm_accuse_nobody_else(site, logs, ingest, evaluate, has_times):
    ingest("sacct", logs("s", sacct(*_RUNS)), cluster="anvil")
    ingest("rpctrace", logs("t", *_storm(has_times=has_times)), server="mds1")
    storms.pin_baseline()

    accused = {key for key, flag in evaluate().items() if flag.severity > Flag.Severity.NOTICE}

    assert accused == ({("impact", "77")} if has_times else set())
    assert ImpactWindow.objects.filter(impact_us__gt=10_000_000).exists() == has_times


def _storm(*, has_times):
    """Return five minutes of a trace: job 77 sends 40 requests a second for 30 s."""
    arrivals = [
        *_arrivals("2@gni", "78", 20, 0, 300),
        *_arrivals("5@gni", "79", 2, 0, 300),
        *_arrivals("3@gni", "77", 40, 150, 180),
    ]
    lines, free = [], at("12:00")
    for arrival, nid, job in sorted(arrivals):
        free = max(free, arrival) + _WORK
        us = (20_000, (free - arrival) // timedelta(microseconds=1))
        is_timed = has_times or job != "77"
        lines.append(rpc(free, nid, GETATTR, job=job, us=us if is_timed else None))
    return lines


def _arrivals(nid, job, rate, begin_s, end_s):
    return [
        (at("12:00") + timedelta(seconds=begin_s + number / rate), nid, job)
        for number in range(rate * (end_s - begin_s))
    ]
