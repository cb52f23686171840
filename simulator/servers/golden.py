"""The half second of the seeds' "ATLAS metadata trace" listing, rebuilt to the digit.

Two launches share one trace of 0.563009 s. Counts and minimum, average and maximum service times
equal the listing. Each sum is chosen so that its average, rounded or cut to whole
microseconds, prints the listing's figure. All printed rates are counts / 0.563009 s at two
decimals, with one exception: 39,012 / 0.563009 = 69,291.9651, printed as 69,291.96. No whole
number of microseconds prints all fifteen, but the single-precision float nearest to 0.563009 does
(0.56300902...), so the listing's tool most likely used single precision.
"""

from dataclasses import dataclass

import numpy as np

from simulator.batch.jobs import Ints
from simulator.servers import mds
from simulator.servers.server_log import Served

EXTENT_US = 563_009
_AVERAGE_ABOVE = 0.05  # us above the printed average: gives the same figure rounded and cut
_OTHERS = 900  # requests of other clients in the same half second


@dataclass(frozen=True)
class Row:
    """One opcode of one launch in the listing: count, and service time in microseconds."""

    opcode: int
    count: int
    min_us: int
    avg_us: int
    max_us: int


LISTING = {
    9_205_593: (
        Row(mds.LDLM_ENQUEUE, 37_851, 13, 42, 4_983),
        Row(mds.LDLM_CANCEL, 611, 10, 16, 32),
        Row(mds.MDS_CLOSE, 277, 15, 20, 38),
        Row(mds.MDS_READPAGE, 154, 170, 292, 671),
        Row(mds.MDS_GETXATTR, 86, 15, 21, 65),
        Row(mds.MDS_GETATTR, 30, 16, 20, 27),
        Row(mds.MDS_REINT, 3, 103, 136, 196),
    ),
    9_205_355: (
        Row(mds.LDLM_ENQUEUE, 8_445, 16, 41, 780),
        Row(mds.MDS_CLOSE, 92, 15, 23, 52),
        Row(mds.MDS_READPAGE, 55, 189, 291, 534),
        Row(mds.LDLM_CANCEL, 52, 12, 16, 25),
        Row(mds.MDS_GETXATTR, 41, 16, 20, 27),
        Row(mds.MDS_GETATTR, 13, 16, 21, 38),
    ),
}


def requests(
    nodes: dict[int, Ints], clients: Ints, first_end_us: int, rng: np.random.Generator
) -> Served:
    """Return the requests of the two launches and of some other clients, in order of their ends.

    Args:
        nodes: nodes of each launch in `LISTING`; each sends at least one request.
        clients: clients outside the launches; they stay strictly inside the extent.
        first_end_us: end of the first request; the last ends `EXTENT_US` later.
        rng: random generator.
    """
    parts = [_launch(LISTING[apid], nodes[apid], first_end_us, rng) for apid in LISTING] + [
        _other_clients(clients, first_end_us, rng)
    ]
    end_us, service_us, opcode, client = (
        np.concatenate(columns) for columns in zip(*parts, strict=True)
    )
    order = np.argsort(end_us, kind="stable")
    end_us, service_us, opcode, client = (
        column[order] for column in (end_us, service_us, opcode, client)
    )
    return Served(
        end_us=end_us,
        service_us=service_us,
        wait_us=mds.dispatch_times(len(end_us), rng),
        opcode=opcode,
        client=client,
        thread=_threads(end_us - service_us, service_us, opcode),
    )


def _launch(
    rows: tuple[Row, ...], nodes: Ints, first_end_us: int, rng: np.random.Generator
) -> tuple[Ints, ...]:
    opcode = np.repeat([row.opcode for row in rows], [row.count for row in rows])
    service_us = np.concatenate([_service_times(row, rng) for row in rows])
    count = len(opcode)
    client = np.concatenate([nodes, rng.choice(nodes, count - len(nodes))])
    # Both launches start with the trace and are active at its end.
    inside = rng.integers(1, EXTENT_US, size=count - 2)
    end_us = first_end_us + np.concatenate([[0, EXTENT_US], inside])
    return end_us, service_us, opcode, rng.permutation(client)


def _other_clients(clients: Ints, first_end_us: int, rng: np.random.Generator) -> tuple[Ints, ...]:
    opcode = rng.choice(
        [mds.LDLM_ENQUEUE, mds.MDS_CLOSE, mds.MDS_GETATTR, mds.LDLM_CANCEL, mds.OBD_PING],
        p=[0.55, 0.2, 0.1, 0.05, 0.1],
        size=_OTHERS,
    )
    service_us = mds.service_times(opcode, rng)
    end_us = first_end_us + rng.integers(1, EXTENT_US, size=_OTHERS)
    return end_us, service_us, opcode, rng.choice(clients, _OTHERS)


def _service_times(row: Row, rng: np.random.Generator) -> Ints:
    """Return `row.count` times with exactly the row's minimum, maximum and average."""
    total = round(row.count * (row.avg_us + _AVERAGE_ABOVE))
    spread = 0.5
    scale = (row.avg_us - row.min_us) * rng.lognormal(-spread * spread / 2, spread, size=row.count)
    times = np.clip(np.rint(row.min_us + scale), row.min_us, row.max_us).astype(np.int64)
    times[:2] = row.min_us, row.max_us
    while missing := total - int(times.sum()):
        step = 1 if missing > 0 else -1
        limit = row.max_us if missing > 0 else row.min_us
        movable = 2 + np.flatnonzero(times[2:] != limit)
        times[rng.permutation(movable)[: abs(missing)]] += step
    return rng.permutation(times)


def _threads(start_us: Ints, service_us: Ints, opcode: Ints) -> Ints:
    """Assign to every request a thread that is free while it is served, if there is one."""
    order = np.argsort(start_us, kind="stable")
    thread = np.empty_like(start_us)
    thread[order] = mds.serve(start_us[order], service_us[order], opcode[order]).thread
    return thread
