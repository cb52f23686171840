"""The week of the table: 1,175 jobs of the campaign, similar to those in the reports.

Sizes, run times, bytes and operations are drawn so that minimum, maximum, average and standard
deviation are close to the table's for any seed: the values are fixed quantiles of a distribution,
and only their assignment to jobs is random.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from simulator import story
from simulator.batch.jobs import Demand, Floats, Ints
from simulator.clock import HOUR_S, MINUTE_S

JOB_COUNT = 1_175
# Every job runs inside the week, by local time and by UTC.
_FIRST_SUBMITTED = story.WEEK[0] + 4 * MINUTE_S
_LAST_SUBMITTED = story.WEEK[1] - 6 * HOUR_S - 15 * MINUTE_S
QUIET = (story.WEEK[0] - 6 * HOUR_S, story.WEEK[1] + HOUR_S)  # no other job of the campaign

_GB = 10**9
# Node counts are log-normal, cut at 1 and 300.
_NODES_LOCATION, _NODES_SPREAD, _MOST_NODES = 2.447, 2.169, 300
# Bytes per node grow with the logarithm of the node count.
_READ_GB = (0.0805, 0.1186, 0.0658, 0.012, 0.8035)  # base, slope, spread, minimum, maximum
_WRITE_GB = (0.1226, 0.0174, 0.0212, 0.036, 0.2385)
_RUNTIME_S = (6_338, 300, 1_932, 7_452)  # location, spread, minimum, maximum
_SHORT_SHARE = 0.03  # of the jobs end early
_SHORT_SPAN_S = 4_000
_OPENS_PER_NODE, _OPENS_SPREAD = 4_107, 0.012
_OPENS_PER_CLOSE, _CLOSES_SPREAD = 4.288, 0.003
_WITHIN = 1.7  # in spreads: operations per node differ little between jobs
_COST = 2.16


@dataclass(frozen=True)
class WeekJob:
    """One job of the week."""

    submitted: int
    node_count: int
    runtime_s: int
    demand: Demand


def jobs(rng: np.random.Generator) -> list[WeekJob]:
    """Return the jobs in order of submission."""
    nodes = rng.permutation(_nodes())
    read = nodes * _bytes_per_node(nodes, _READ_GB, rng)
    write = nodes * _bytes_per_node(nodes, _WRITE_GB, rng)
    runtime = rng.permutation(_runtimes())
    opens = nodes * _OPENS_PER_NODE * (1 + _OPENS_SPREAD * _normal(rng).clip(-_WITHIN, _WITHIN))
    closes = opens / _OPENS_PER_CLOSE * (1 + _CLOSES_SPREAD * _normal(rng).clip(-_WITHIN, _WITHIN))
    gaps = rng.dirichlet(np.full(JOB_COUNT, 3.0))
    submitted = _FIRST_SUBMITTED + np.cumsum(gaps) * (_LAST_SUBMITTED - _FIRST_SUBMITTED)
    columns = (submitted, nodes, runtime, opens, closes, read, write)
    rows = np.rint(np.stack(columns, axis=1)).astype(np.int64).tolist()
    return [
        WeekJob(at, count, length, Demand(opened, closed, _COST, reading, writing))
        for at, count, length, opened, closed, reading, writing in rows
    ]


def _quantiles(count: int) -> Floats:
    return (np.arange(count) + 0.5) / count


def _normal(rng: np.random.Generator) -> Floats:
    """Return normal values in random order, cut where one value in the sample is expected."""
    values: Floats = rng.permutation(ndtri(_quantiles(JOB_COUNT)))
    return values


def _nodes() -> Ints:
    lowest, highest = (
        ndtr((np.log(edge) - _NODES_LOCATION) / _NODES_SPREAD) for edge in (0.5, _MOST_NODES + 0.5)
    )
    quantiles = ndtri(lowest + _quantiles(JOB_COUNT) * (highest - lowest))
    counts = np.rint(np.exp(_NODES_LOCATION + _NODES_SPREAD * quantiles)).astype(np.int64)
    counts[-1] = _MOST_NODES
    nodes: Ints = np.clip(counts, 1, _MOST_NODES)
    return nodes


def _bytes_per_node(
    nodes: Ints, shape: tuple[float, float, float, float, float], rng: np.random.Generator
) -> Floats:
    base, slope, spread, minimum, maximum = shape
    gigabytes = base + slope * np.log(nodes) + spread * _normal(rng)
    per_node: Floats = np.clip(gigabytes, minimum, maximum) * _GB
    return per_node


def _runtimes() -> Floats:
    location, spread, minimum, maximum = _RUNTIME_S
    short = round(_SHORT_SHARE * JOB_COUNT)
    usual = location + spread * ndtri(_quantiles(JOB_COUNT - short))
    early = minimum + _SHORT_SPAN_S * _quantiles(short)
    runtimes: Floats = np.clip(np.concatenate([early, usual]), minimum, maximum)
    return runtimes
