"""Stores the data of simulated servers with known capacity."""

from datetime import timedelta

import polars as pl

from ioportal.site.models import Service
from ioportal.telemetry.copy import copy_frame
from ioportal.telemetry.models import Coverage, RpcTotal, RpcTotalMinute
from tests.loading import ingest, write_log
from tests.logs import at

BEGIN = at("00:00")
_DAY_S = 86_400
_READ_EVERY_S = 120


def store_traces(server, loaded):
    """Store the totals of a traced server and return their end.

    Minutes, and windows of 10 s of the latest day, from which baselines are computed.
    """
    service, _ = Service.objects.get_or_create(name="mdt")
    for model, width_s, since_s in (
        (RpcTotalMinute, 60, 0),
        (RpcTotal, 10, loaded.seconds - _DAY_S),
    ):
        totals = loaded.totals(width_s).filter(pl.col("second") >= since_s, pl.col("count") > 0)
        unknown = ("service_us_min", "service_us_max", "queue_us_min", "queue_us_max")
        rows = totals.select(
            start=pl.lit(BEGIN).cast(pl.Datetime("us", "UTC")) + pl.duration(seconds="second"),
            server_id=pl.lit(server.pk),
            service_id=pl.lit(service.pk),
            opcode=pl.col("opcode").cast(pl.Int16),
            count="count",
            timed="count",
            service_us_sum="service_us",
            **{name: pl.lit(0, pl.Int64) for name in unknown},
            total_us_sum="total_us",
        )
        copy_frame(model, rows)
    end = BEGIN + timedelta(seconds=loaded.seconds)
    Coverage.objects.create(
        source=Coverage.Source.RPC_TRACE, source_id=server.pk, start=BEGIN, end=end, segment_id=1
    )
    return end


def ingest_reads(server, loaded, folder):
    """Write reads of a server's statistics, ingest them, and return the time of the last."""
    reads = loaded.reads(int(BEGIN.timestamp()), _READ_EVERY_S, timed=True)
    files = [
        write_log(
            folder, f"{second}.txt", text, read_at=BEGIN + timedelta(seconds=n * _READ_EVERY_S)
        )
        for n, (second, text) in enumerate(reads)
    ]
    ingest("mds_stats", *files, server=server.name)
    return BEGIN + timedelta(seconds=loaded.seconds)
