"""A CMS job that reads one file in three ways, with its job report, log and prmon samples.

The job reads a subset of the baskets of a file, event after event. It reads each basket by itself;
or through a tree cache, which learns the branches first and then reads baskets of many events at
once, joining close neighbours; or after a download of the file in large chunks. Times
follow from a latency per read and a bandwidth. Sizes resemble the tests that CMS
published in 2010.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from simulator.experiments import prmon
from simulator.experiments.example import Example, File
from simulator.randomness import stream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TypeAlias

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[np.int64]

ARMS = ("original", "read coalescing", "lazy download")
RUNS = 5  # of each arm
EVENTS = 10_000
LATENCY_S = 0.0011  # mean, of a read
BANDWIDTH_BYTES_PER_S = 60e6
_MIB = 2**20
_BASKETS = 63_143
_MEAN_BASKET_BYTES = 8_980
_FILE_BYTES = 1_169 * _MIB
_LEARNING = 0.05  # of the baskets: the tree cache learns which branches are read
_WINDOW = 2_100  # baskets of one fill of the tree cache
_JOINED_BYTES = 12_288  # largest gap that a joined read bridges
_MISSED = 0.067  # of the baskets that the tree cache is asked for
_CHUNK_BYTES = 128 * _MIB
_CACHED_S = 5e-6  # of a read from memory
_CPU_S = 623.0
_SYSTEM_SHARE = 0.018
_OVERHEAD_S = 9.0  # start and end of the job
_STARTS = 1_273_741_200  # 13 May 2010
_PAUSE_S = 1_200  # between starts of runs


@dataclass
class Counter:
    """What CMSSW counts of an operation."""

    operations: int = 0
    successes: int = 0
    size: int = 0
    times_s: list[float] = field(default_factory=list)

    def add(self, size: int, seconds: float) -> None:
        """Count a successful operation."""
        self.operations += 1
        self.successes += 1
        self.size += size
        self.times_s.append(seconds)

    def attributes(self) -> dict[str, str]:
        """Return the attributes of its element."""
        milliseconds = [1_000 * seconds for seconds in self.times_s] or [0.0]
        return {
            "num-operations": str(self.operations),
            "num-successful-operations": str(self.successes),
            "total-megabytes": f"{self.size / _MIB:g}",
            "total-msecs": f"{sum(milliseconds):g}",
            "min-msecs": f"{min(milliseconds):g}",
            "max-msecs": f"{max(milliseconds):g}",
        }


class Job:
    """One run of the job."""

    def __init__(self, arm: str, generator: np.random.Generator) -> None:
        self._random = generator
        self.counters: dict[tuple[str, str], Counter] = {}
        self.reads: list[tuple[float, int]] = []  # time in s and bytes of each read
        sizes = generator.lognormal(np.log(_MEAN_BASKET_BYTES) - 0.5, 1.0, _BASKETS).astype(int)
        self._sizes: Ints = np.maximum(sizes, 64)
        gaps = generator.exponential((_FILE_BYTES - self._sizes.sum()) / _BASKETS, _BASKETS)
        self._offsets: Ints = np.cumsum(gaps.astype(int) + self._sizes) - self._sizes
        self._count("rfio", "open").add(0, float(generator.gamma(4, 0.3)))
        {
            "original": self._read_baskets,
            "read coalescing": self._read_through_cache,
            "lazy download": self._download,
        }[arm]()
        self.cpu_s = float(generator.normal(_CPU_S, 1.5))
        self.system_s = _SYSTEM_SHARE * self.cpu_s
        read_s = sum(self._count("rfio", "read").times_s)
        self.wall_s = self.cpu_s + self.system_s + read_s + float(generator.normal(_OVERHEAD_S, 1))

    def _count(self, subsystem: str, name: str) -> Counter:
        return self.counters.setdefault((subsystem, name), Counter())

    def _read(self, size: int) -> float:
        """Read from the storage; return the seconds that it takes."""
        seconds = float(self._random.gamma(2, LATENCY_S / 2)) + size / BANDWIDTH_BYTES_PER_S
        for subsystem, name in (("rfio", "read"), ("tstoragefile", "read-actual")):
            self._count(subsystem, name).add(size, seconds)
        self.reads.append((seconds, size))
        return seconds

    def _read_baskets(self) -> None:
        for size in self._sizes.tolist():
            self._count("tstoragefile", "read").add(size, self._read(size))

    def _read_through_cache(self) -> None:
        learnt = int(_LEARNING * _BASKETS)
        for size in self._sizes[:learnt].tolist():
            self._count("tstoragefile", "read").add(size, self._read(size))
        via_cache = self._count("tstoragefile", "read-via-cache")
        for start in range(learnt, _BASKETS, _WINDOW):
            window = slice(start, min(start + _WINDOW, _BASKETS))
            is_missed = self._random.random(window.stop - window.start) < _MISSED
            fill_s = 0.0
            for size in self._joined(window, is_missed):
                seconds = self._read(size)
                fill_s += seconds
                self._count("tstoragefile", "read").add(size, seconds)
            self._count("tstoragefile", "readv-actual").add(0, fill_s)
            for size, missed in zip(self._sizes[window].tolist(), is_missed, strict=True):
                if missed:
                    via_cache.operations += 1
                    self._count("tstoragefile", "read").add(size, self._read(size))
                else:
                    via_cache.add(size, _CACHED_S + fill_s)
                    self._count("tstoragefile", "read").add(size, _CACHED_S + fill_s)
                    fill_s = 0.0  # the first basket waits for the fill

    def _joined(self, window: slice, is_missed: npt.NDArray[np.bool_]) -> Iterator[int]:
        """Yield the sizes of the reads that fill the cache with a window of baskets."""
        offsets, sizes = self._offsets[window][~is_missed], self._sizes[window][~is_missed]
        first = end = int(offsets[0])
        for offset, size in zip(offsets.tolist(), sizes.tolist(), strict=True):
            if offset - end > _JOINED_BYTES:
                yield end - first
                first = offset
            end = offset + size
        yield end - first

    def _download(self) -> None:
        for start in range(0, _FILE_BYTES, _CHUNK_BYTES):
            self._read(min(_CHUNK_BYTES, _FILE_BYTES - start))
        prefetched = self._count("tstoragefile", "read-prefetch-to-cache")
        for size in self._sizes.tolist():
            prefetched.add(size, _CACHED_S)
            self._count("tstoragefile", "read").add(size, _CACHED_S)


def report(job: Job) -> str:
    """Return a job report with elements of the shape of 2010."""
    counters = "\n".join(
        f" <counter-value subsystem='{subsystem}' counter-name='{name}' "
        + " ".join(f"{key}='{value}'" for key, value in counter.attributes().items())
        + "/>"
        for (subsystem, name), counter in sorted(job.counters.items())
    )
    return f"""<FrameworkJobReport>
<InputFile>
<State  Value="closed"/>
<LFN>/store/mc/Summer09/TTbar/AODSIM/0001/physics.root</LFN>
<PFN>rfio:/castor/site.example/store/mc/Summer09/TTbar/AODSIM/0001/physics.root</PFN>
<InputType>primaryFiles</InputType>
<InputSourceClass>PoolSource</InputSourceClass>
<EventsRead>{EVENTS}</EventsRead>
</InputFile>
<StorageStatistics>
<storage-factory-summary>
 <storage-factory-params>
  <param name='enabled' value='true' unit='boolean'/>
  <param name='stats' value='true' unit='boolean'/>
 </storage-factory-params>
 <storage-factory-stats>
<storage-timing-summary>
{counters}
</storage-timing-summary>
 </storage-factory-stats>
</storage-factory-summary>
</StorageStatistics>
</FrameworkJobReport>
"""


def log(job: Job) -> str:
    """Return the output of the job and of ``time``."""
    fills = job.counters.get(("tstoragefile", "readv-actual"))
    markers = ""
    if fills:
        reads = job.counters[("rfio", "read")].operations // fills.operations
        markers = (
            f"Using my custom readv impl for {_WINDOW} buffers\nNumber of reads performed {reads}\n"
        )
    times = "".join(
        f"{name}\t{int(seconds // 60)}m{seconds % 60:.3f}s\n"
        for name, seconds in (
            ("real", job.wall_s),
            ("user", job.cpu_s),
            ("sys", job.system_s),
        )
    )
    return (
        "Begin processing the 1st record. Run 1, Event 1, LumiSection 1\n"
        f"{markers}TrigReport Events total = {EVENTS} passed = {EVENTS} failed = 0\n\n{times}"
    )


def write(folder: Path, seed: int) -> Example:
    """Write `RUNS` runs of each arm, each with a job report, a log and samples of prmon."""
    example = Example(
        "CMS storage timing",
        "One analysis job with three ways to read its input file: each basket by itself, with a "
        "tree cache and joined reads, and with a download of the file.",
    )
    starts_s = _STARTS
    for arm in ARMS:
        for number in range(1, RUNS + 1):
            run = f"{arm} {number}"
            generator = stream(seed, f"cms {run}")
            job = Job(arm, generator)
            path = folder / run.replace(" ", "-")
            path.mkdir(parents=True)
            samples = prmon.samples(
                starts_s,
                job.wall_s,
                job.cpu_s,
                job.system_s,
                reads=job.reads,
                generator=generator,
            )
            for name, form, text in (
                ("report.xml", "cmssw_fjr", report(job)),
                ("cmsRun.log", "cmssw_log", log(job)),
                ("prmon.txt", "prmon", samples),
            ):
                (path / name).write_text(text)
                example.files.append(File(form, path / name, arm, run))
            starts_s += _PAUSE_S
    return example
