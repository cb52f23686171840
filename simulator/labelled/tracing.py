"""The RPC trace of a scene's server."""

import numpy as np
import polars as pl

from simulator.clock import MICROSECONDS
from simulator.formats.releases import counts_failed_opens
from simulator.formats.rpctrace import Version
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.randomness import stream
from simulator.servers import mds, server_log
from simulator.servers.server_log import Served


def version(scene: Scene) -> Version:
    """Return the version of the log's lines: job ids came with timed counters, nearly."""
    return Version.V2_8 if counts_failed_opens(scene.version) else Version.V2_15


def records(scene: Scene, service: Service, begin: int, end: int) -> pl.DataFrame:
    """Return the log's records of the requests answered in ``[begin, end)``."""
    chance = stream(scene.seed, f"labelled: trace from {begin}")
    served, answered = service.served, service.in_order
    first, after = np.searchsorted(
        served.answer_s[answered], np.array([begin, end]) - service.begun
    )
    rows = answered[first:after]
    count = len(rows)
    opcode = service.opcode[rows]
    first_thread, pool_size = mds.pools_of(opcode)
    end_us, thread_us, arrival_us = (
        np.rint(times_s[rows] * MICROSECONDS).astype(np.int64) + service.begun * MICROSECONDS
        for times_s in (served.answer_s, served.thread_s, served.arrival_s)
    )
    handled = Served(
        end_us=end_us,
        service_us=end_us - thread_us,
        wait_us=thread_us - arrival_us + mds.dispatch_times(count, chance),
        opcode=opcode,
        client=service.requests.client[rows],
        thread=first_thread + chance.integers(pool_size),
    )
    job_ids = None
    if version(scene) is Version.V2_15:
        ids = pl.Series([source.job_id or "" for source in service.sources])
        job_ids = ids.gather(service.requests.sender[rows])
    return server_log.records(handled, scene.seed, chance, handling_share=0, job_ids=job_ids)
