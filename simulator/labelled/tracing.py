"""The RPC trace of a scene's server."""

import numpy as np
import polars as pl

from simulator.clock import MICROSECONDS
from simulator.formats.releases import counts_failed_opens
from simulator.formats.rpctrace import Version
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.randomness import stream
from simulator.servers import mds, server_log, trace
from simulator.servers.server_log import Served

_WAIT_SHAPE = 4.0  # of the distribution of waiting times in a second


def version(scene: Scene) -> Version:
    """Return the version of the log's lines: job ids came with timed counters, nearly."""
    return Version.V2_8 if counts_failed_opens(scene.version) else Version.V2_15


def records(scene: Scene, service: Service, begin: int, end: int) -> pl.DataFrame:
    """Return the log's records of the requests served in ``[begin, end)``."""
    chance = stream(scene.seed, f"labelled: trace from {begin}")
    requests = trace.requests(service.sources, begin, end, 0, chance, bin_s=1)
    second = requests.arrival_us // MICROSECONDS - service.begun
    count = len(second)
    wait_us = (
        service.wait_s[second] * chance.gamma(_WAIT_SHAPE, 1 / _WAIT_SHAPE, count) * MICROSECONDS
    )
    first_thread, pool_size = mds.pools_of(requests.opcode)
    service_us = mds.service_times(requests.opcode, chance) * service.stretch[second]
    blocked_share = np.array([source.blocked_share for source in service.sources])
    service_us += mds.lock_waits(requests.opcode, blocked_share[requests.source], chance)
    served = Served(
        end_us=requests.arrival_us,
        service_us=np.rint(service_us).astype(np.int64),
        wait_us=np.rint(wait_us).astype(np.int64) + mds.dispatch_times(count, chance),
        opcode=requests.opcode,
        client=requests.client,
        thread=first_thread + chance.integers(pool_size),
    )
    job_ids = None
    if version(scene) is Version.V2_15:
        ids = pl.Series([source.job_id or "" for source in service.sources])
        job_ids = ids.gather(requests.source)
    return server_log.records(served, scene.seed, chance, handling_share=0, job_ids=job_ids)
