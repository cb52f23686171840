"""Storage timing of runs: figures of the layer that reads the bytes, and what arms have in common.

Subsystems are layers over the same bytes, so figures come from one layer: the protocol below
``tstoragefile``. Its read times do not overlap. Read times of ``tstoragefile`` do: a read through
the cache contains the reads that fill the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, Any

from collectors.experiments.storage_timing import LAYERS_ABOVE_STORAGE, READS, storage_protocol
from ioportal.core.units import Unit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

TOP = "tstoragefile"
COLUMNS = ("operations", "successes", "bytes", "total_s", "min_s", "max_s")


@dataclass(frozen=True)
class Counter:
    """A counter of a subsystem; None: not in the source."""

    operations: float | None = None
    successes: float | None = None
    bytes: float | None = None
    total_s: float | None = None
    min_s: float | None = None
    max_s: float | None = None

    @property
    def is_used(self) -> bool:
        """Whether it counted anything."""
        return bool(self.operations or self.bytes)


@dataclass(frozen=True)
class Timing:
    """Counters and times of a run, or means of an arm's runs; None: unknown."""

    name: str
    counters: dict[tuple[str, str], Counter]  # by subsystem and counter
    wall_s: float | None = None
    cpu_s: float | None = None
    events: float | None = None
    runs: int = 1

    def counter(self, subsystem: str, name: str) -> Counter:
        """Return a counter; an empty one if it is not in the source."""
        return self.counters.get((subsystem, name), Counter())

    @cached_property
    def protocol(self) -> str:
        """The subsystem that read the most bytes below all layers; "": none is known."""
        rows: list[dict[str, Any]] = [
            {"subsystem": subsystem, "counter": name, **vars(counter)}
            for (subsystem, name), counter in self.counters.items()
        ]
        return storage_protocol(rows, READS)

    def _reads(self, column: str) -> float | None:
        return _sum(getattr(self.counter(self.protocol, name), column) for name in READS)

    @property
    def read_operations(self) -> float | None:
        """Read and vector read operations of the protocol."""
        return self._reads("operations")

    @property
    def read_bytes(self) -> float | None:
        """Bytes read by the protocol."""
        return self._reads("bytes")

    @property
    def read_s(self) -> float | None:
        """Time inside reads of the protocol."""
        return self._reads("total_s")

    @property
    def storage_s(self) -> float | None:
        """Time inside all calls of the protocol: open, stage-in, read, position and so on."""
        own = [each for (name, _), each in self.counters.items() if name == self.protocol]
        return _sum(each.total_s for each in own)

    @cached_property
    def figures(self) -> dict[str, float | None]:
        """The derived figures by name."""
        return {figure.name: figure.value(self) for figure in FIGURES}

    @property
    def reads_vectors(self) -> bool:
        """Whether the protocol reads vectors, whose parts are no reads of `tstoragefile`."""
        return bool(self.counter(self.protocol, "readv").operations)


def timing(
    name: str,
    counters: Sequence[Mapping[str, Any]],
    metrics: Mapping[str, float],
    events: int | None = None,
) -> Timing:
    """Return the timing of a run.

    Args:
        name: of the run or its arm.
        counters: rows with the members of ``counters`` in `tables.RUNS`.
        metrics: of the run. Wall time is ``wall_s``, otherwise ``job_s``; CPU time is ``user_s`` +
            ``sys_s``, otherwise ``job_cpu_s``.
        events: processed events.
    """
    by_name = {
        (str(each["subsystem"]), str(each["counter"])): Counter(
            **{column: each.get(column) for column in COLUMNS}
        )
        for each in counters
    }
    user_s, sys_s = metrics.get("user_s"), metrics.get("sys_s")
    cpu_s = metrics.get("job_cpu_s") if user_s is None or sys_s is None else user_s + sys_s
    return Timing(name, by_name, metrics.get("wall_s", metrics.get("job_s")), cpu_s, events)


def combined(name: str, timings: Sequence[Timing]) -> Timing:
    """Return the timing of an arm: means of its runs, with the lowest minima and highest maxima.

    Args:
        name: of the arm.
        timings: at least one; a counter that is missing in a run does not count for the mean.
    """
    keys = dict.fromkeys(key for each in timings for key in each.counters)
    counters = {}
    for key in keys:
        own = [each.counters[key] for each in timings if key in each.counters]
        minima = [each.min_s for each in own if each.min_s is not None]
        maxima = [each.max_s for each in own if each.max_s is not None]
        counters[key] = Counter(
            operations=_mean(each.operations for each in own),
            successes=_mean(each.successes for each in own),
            bytes=_mean(each.bytes for each in own),
            total_s=_mean(each.total_s for each in own),
            min_s=min(minima, default=None),
            max_s=max(maxima, default=None),
        )
    return Timing(
        name,
        counters,
        _mean(each.wall_s for each in timings),
        _mean(each.cpu_s for each in timings),
        _mean(each.events for each in timings),
        sum(each.runs for each in timings),
    )


@dataclass(frozen=True)
class Figure:
    """A derived figure, with its formula."""

    name: str
    title: str
    unit: Unit
    formula: str
    value: Callable[[Timing], float | None]


def _own(name: str, title: str, unit: Unit, formula: str) -> Figure:
    return Figure(name, title, unit, formula, attrgetter(name))


def _ratio(name: str, title: str, unit: Unit, part: str, whole: str) -> Figure:
    def value(each: Timing) -> float | None:
        return _quotient(getattr(each, part), getattr(each, whole))

    return Figure(name, title, unit, f"{part} / {whole}", value)


def _successful(name: str, title: str, counter: str) -> Figure:
    def value(each: Timing) -> float | None:
        counted = each.counter(TOP, counter)
        return _quotient(counted.successes, counted.operations)

    formula = f"successful / all operations of {TOP} {counter}"
    return Figure(name, title, Unit.SHARE, formula, value)


def _vectors(each: Timing) -> float | None:
    own = each.counter(each.protocol, "readv").operations
    return own or each.counter(TOP, "readv-actual").operations or own


def _coalescing(each: Timing) -> float | None:
    if each.reads_vectors:
        return None
    return _quotient(each.counter(TOP, "read").operations, each.read_operations)


def _wasted_bytes(each: Timing) -> float | None:
    logical, read = each.counter(TOP, "read").bytes, each.read_bytes
    has_cache = bool(each.counter(TOP, "read-via-cache").operations)
    if has_cache or each.reads_vectors or logical is None or read is None:
        return None
    return max(read - logical, 0.0)


_READS = "read + readv of the protocol"
FIGURES = (
    _own("events", "Events", Unit.EVENTS, "as the run reports"),
    _own("wall_s", "Wall time", Unit.SECONDS, "real of time, or TotalJobTime"),
    _own("cpu_s", "CPU time", Unit.SECONDS, "user + sys of time, or TotalJobCPU"),
    _ratio("cpu_share", "CPU efficiency", Unit.SHARE, "cpu_s", "wall_s"),
    _own("read_operations", "Reads", Unit.COUNT, _READS),
    _own("read_bytes", "Read", Unit.BYTES, f"bytes of {_READS}"),
    _own("read_s", "Time in reads", Unit.SECONDS, f"time of {_READS}"),
    _own("storage_s", "Time in storage", Unit.SECONDS, "time of all calls of the protocol"),
    _ratio("read_share", "Share of run in reads", Unit.SHARE, "read_s", "wall_s"),
    _ratio("storage_share", "Share of run in storage", Unit.SHARE, "storage_s", "wall_s"),
    _ratio("mean_read_bytes", "Mean read size", Unit.BYTES, "read_bytes", "read_operations"),
    _ratio("mean_read_s", "Mean time per read", Unit.SECONDS, "read_s", "read_operations"),
    _ratio("read_bytes_per_s", "Read throughput", Unit.BYTES_PER_SECOND, "read_bytes", "read_s"),
    _successful("cache_hit_share", "Cache hits", "read-via-cache"),
    _successful("prefetch_hit_share", "Prefetched", "read-prefetch-to-cache"),
    Figure(
        "vector_reads", "Vector reads", Unit.COUNT, f"readv, or readv-actual of {TOP}", _vectors
    ),
    Figure(
        *("coalescing", "Coalescing factor", Unit.RATIO),
        f"reads of {TOP}, with reads that fill its cache / reads; unknown with vector reads",
        _coalescing,
    ),
    Figure(
        *("wasted_bytes", "Read beyond requests", Unit.BYTES),
        f"read_bytes - bytes of {TOP} read; unknown with vector reads or a tree cache",
        _wasted_bytes,
    ),
    _ratio("reads_per_event", "Reads per event", Unit.RATIO, "read_operations", "events"),
)


@dataclass(frozen=True)
class Row:
    """A figure of several timings, with ratios to the first."""

    figure: Figure
    values: tuple[float | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Value / value of the first; None: unknown, or division by zero."""
        return ratios(self.values)


def comparison(timings: Sequence[Timing]) -> list[Row]:
    """Return the derived figures that at least one timing has.

    Args:
        timings: of arms or runs; the first is the baseline.
    """
    rows = [Row(figure, tuple(figure.value(each) for each in timings)) for figure in FIGURES]
    return [row for row in rows if any(value is not None for value in row.values)]


def counter_keys(timings: Sequence[Timing]) -> list[tuple[str, str]]:
    """Return the used counters of any timing: layers first, each in the order of the source."""
    keys = dict.fromkeys(
        key for each in timings for key, counter in each.counters.items() if counter.is_used
    )
    return sorted(keys, key=lambda key: (key[0] not in LAYERS_ABOVE_STORAGE, key[0]))


def ratios(values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return value / first value of each; None: unknown, or division by zero."""
    return tuple(_quotient(value, values[0]) for value in values)


def _quotient(value: float | None, base: float | None) -> float | None:
    if value is None or not base:
        return None
    quotient = value / base
    return quotient if isfinite(quotient) else None  # of a time of 1e-320 s


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
