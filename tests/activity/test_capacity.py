"""Capacity of servers with a known knee, by traces and by service statistics alone."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from ioportal.activity import capacity, job_loads
from ioportal.activity.capacity import Method
from ioportal.analysis.capacity import Refusal
from ioportal.site.models import Server, ServerVersion
from simulator.capacity import LoadedServer, Scenario, knee_per_s
from tests.activity.loaded_servers import BEGIN, ingest_reads, store_traces


@pytest.fixture
def mds(site):
    return Server.objects.get(name="mds2")


def per_second(found):
    """Return the knee in requests of the usual mix per second."""
    return found.result.knee.scaled(1 / found.result.cost_s)


def test_traces_show_the_true_knee(mds):
    scenario = Scenario(seed=3, capacity_per_s=60_000, days=8, peak=0.6, storms=12, convoys=8)
    end = store_traces(mds, LoadedServer(scenario))

    found = capacity.of_server(mds.pk, Method.TRACES, BEGIN, end)

    knee, truth = per_second(found), knee_per_s(60_000)
    assert knee.low <= truth <= knee.high
    assert knee.value == pytest.approx(truth, rel=0.06)
    assert found.result.excluded["lock waiting"] > 100

    # An upgrade leaves too few windows: older data is about another server.
    ServerVersion.objects.create(server=mds, version="2.16.1", since=end - timedelta(hours=2))
    upgraded = capacity.of_server(mds.pk, Method.TRACES, BEGIN, end)
    assert upgraded.upgrade == "2.16.1"
    assert isinstance(upgraded.result, Refusal)
    assert upgraded.result.reason.startswith("Too few windows")


def test_statistics_alone_show_the_true_knee(mds, tmp_path):
    scenario = Scenario(
        seed=5, capacity_per_s=20_000, days=2, peak=0.4, storms=10, convoys=3, restarts=1
    )
    end = ingest_reads(mds, LoadedServer(scenario), tmp_path, timed=True)

    found = capacity.of_server(mds.pk, Method.STATISTICS, BEGIN, end)

    knee, truth = per_second(found), knee_per_s(20_000)
    assert found.has_handling
    assert knee.low <= truth <= knee.high
    assert knee.value == pytest.approx(truth, rel=0.08)
    assert found.result.excluded["restart"] > 0
