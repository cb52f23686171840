"""The capacity of servers with a known knee, by traces and by service statistics alone."""

from datetime import timedelta

import numpy as np
import polars as pl
import pytest

from ioportal.activity import capacity, job_loads
from ioportal.activity.capacity import Method
from ioportal.site.models import Server, Service
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import Coverage, RpcTotal, RpcTotalMinute
from simulator.capacity import LoadedServer, Scenario, knee_per_s
from tests.logs import at

BEGIN = at("00:00")


def stored_traces(server, scenario):
    """Store the totals of a traced server: minutes, and 10 s of the latest day for baselines."""
    loaded = LoadedServer(scenario)
    end = BEGIN + timedelta(seconds=loaded.seconds)
    service, _ = Service.objects.get_or_create(name="mdt")
    for model, width_s, since_s in (
        (RpcTotalMinute, 60, 0),
        (RpcTotal, 10, loaded.seconds - 86_400),
    ):
        totals = loaded.totals(width_s).filter(pl.col("second") >= since_s, pl.col("count") > 0)
        zeros = ("service_us_min", "service_us_max", "queue_us_min", "queue_us_max")
        copy_frame(
            model,
            totals.select(
                start=pl.lit(BEGIN).cast(pl.Datetime("us", "UTC"))
                + pl.duration(seconds="second"),
                server_id=pl.lit(server.pk),
                service_id=pl.lit(service.pk),
                opcode=pl.col("opcode").cast(pl.Int16),
                count="count",
                timed="count",
                service_us_sum="service_us",
                **{name: pl.lit(0, pl.Int64) for name in zeros},
                total_us_sum="total_us",
            ),
        )
    Coverage.objects.create(
        source=Coverage.Source.RPC_TRACE, source_id=server.pk, start=BEGIN, end=end, segment_id=1
    )
    return end


@pytest.fixture
def mds(site):
    return Server.objects.get(name="mds2")


def per_second(found):
    """Return the knee in requests of the usual mix per second."""
    return found.result.knee.scaled(1 / found.result.cost_s)


@pytest.mark.parametrize(
    ("capacity_per_s", "options"),
    [
        pytest.param(5_000, {"peak": 0.15, "storms": 12}, id="small, with storms"),
        pytest.param(60_000, {"peak": 0.6, "storms": 12, "convoys": 8}, id="large, with convoys"),
    ],
)
def test_traces_show_the_true_knee(mds, capacity_per_s, options):
    scenario = Scenario(seed=3, capacity_per_s=capacity_per_s, days=8, **options)
    end = stored_traces(mds, scenario)

    found = capacity.of_server(mds.pk, Method.TRACES, BEGIN, end)

    knee, truth = per_second(found), knee_per_s(capacity_per_s)
    assert knee.low <= truth <= knee.high
    assert knee.value == pytest.approx(truth, rel=0.06)
