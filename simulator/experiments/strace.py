"""strace logs of an ATHENA-like job, before and after its search paths were cleaned.

The counts by storage area follow the figures that ATLAS published in 2017 for one ATHENA MP job
with 16 cores on Titan, at any scale. At scale 1, they agree to the digit.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import TYPE_CHECKING, NamedTuple, TextIO

from simulator.experiments.example import Example, File

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

RELEASE = "/ccs/proj/atlas/21.0.15"  # on NFS
LUSTRE = "/lustre/atlas/proj/grid"
WORKING_DIRECTORY = "/lustre/atlas/scratch/panda/job-3558462700"
AREAS = (WORKING_DIRECTORY, LUSTRE, RELEASE)

# Look-ups of the whole job: (area, call, succeeded).
MEASURED = {
    (RELEASE, "open", True): 109_987,
    (RELEASE, "open", False): 371_688,
    (RELEASE, "stat", True): 124_522,
    (RELEASE, "stat", False): 318_206,
    (LUSTRE, "open", True): 2_902,
    (LUSTRE, "open", False): 5_860,
    (LUSTRE, "stat", True): 2_502,
    (LUSTRE, "stat", False): 2_356,
    (WORKING_DIRECTORY, "open", True): 471,
    (WORKING_DIRECTORY, "open", False): 2_605,
    (WORKING_DIRECTORY, "stat", True): 365,
    (WORKING_DIRECTORY, "stat", False): 995,
}
LIBRARIES, MODULES, FILES = 1_899, 1_475, 6_826  # distinct files that the job opened

# Entries of search paths. Only the last entry on Lustre has files that the job needs.
UNNEEDED_LIBRARIES = (f"{LUSTRE}/emi/lib64",)
UNNEEDED_MODULES = (f"{LUSTRE}/pilot/site-packages",)
UNNEEDED_COMMANDS = (f"{LUSTRE}/emi/bin",)
UNNEEDED = UNNEEDED_LIBRARIES + UNNEEDED_MODULES + UNNEEDED_COMMANDS
NEEDED_LIBRARIES = f"{LUSTRE}/frontier/lib"
_PROJECTS = (
    *("sw/gcc", "sw/ROOT", "GAUDI", "LCGCMT", "DetCommon", "AtlasCore", "AtlasConditions"),
    *("AtlasEvent", "AtlasReconstruction", "AtlasTrigger", "AtlasAnalysis", "AtlasSimulation"),
    *("AtlasOffline", "AtlasProduction"),
)

EXAMPLE_SCALE = 0.05
_WORKERS = 16
_FIRST_PID = 7_001
_START_S = 1_499_335_975.0  # 6 July 2017, 10:12:55 UTC
_WALL_S = 3_600.0
_FRONT = 2.5  # look-ups are dense at the start of the job
_INTERRUPTED = 0.03  # share of calls that a call of another process interrupts
_MEAN_S = {RELEASE: 90e-6, LUSTRE: 600e-6, WORKING_DIRECTORY: 400e-6}
_MISSES = 40  # searches that exceed the counts, before the rest is filled up


class LookUp(NamedTuple):
    """A system call with a path."""

    call: str
    path: str
    succeeded: bool

    @property
    def area(self) -> str:
        """The storage area of the path."""
        if self.path.startswith(RELEASE):
            return RELEASE
        return LUSTRE if self.path.startswith(LUSTRE) else WORKING_DIRECTORY


def _failed(call: str, path: str) -> LookUp:
    return LookUp(call, path, succeeded=False)


def _opened(path: str) -> LookUp:
    return LookUp("open", path, succeeded=True)


@dataclass
class Job:
    """The look-ups of a job, in groups that one process makes in order."""

    seed: int = 1
    scale: float = 1.0
    groups: list[list[LookUp]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)  # noqa: S311  (no secret)
        self._left = Counter({key: round(count * self.scale) for key, count in MEASURED.items()})
        self._libraries, self._modules, self._data = self._files()
        self._tools = [(self._entry("bin", number), f"tool{number:02}") for number in range(80)]
        self._open_files()
        self._random.shuffle(self.groups)
        opened = len(self.groups)
        self._search_again()
        self._fill_up()
        later = self.groups[opened:]
        self._random.shuffle(later)
        self.groups[opened:] = later

    def _files(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]], list[str]]:
        """Return the files of the job: libraries and modules with their entry, data files."""
        libraries, modules, files = (
            round(count * self.scale) for count in (LIBRARIES, MODULES, FILES)
        )
        few = {area: max(1, self._left[area, "open", True] // 60) for area in AREAS[:2]}
        data = [
            f"{area}/data/{number:05}.{'root' if number % 3 else 'xml'}"
            for area, count in few.items()
            for number in range(count)
        ]
        data += [
            f"{RELEASE}/share/{number:05}.txt"
            for number in range(files - libraries - modules - len(data))
        ]
        needed = max(1, libraries // 150)
        return (
            [
                (
                    NEEDED_LIBRARIES if number < needed else self._entry("lib", number - needed),
                    f"libAtl{number:04}.so",
                )
                for number in range(libraries)
            ],
            [
                (self._entry("python", number), f"Conf{number:04}.py{'c' if number % 2 else ''}")
                for number in range(modules)
            ],
            data,
        )

    def _entry(self, kind: str, number: int) -> str:
        """Return the entry of a file of the release: each has files, the later ones more."""
        if number >= len(_PROJECTS):
            number = int(len(_PROJECTS) * self._random.random() ** 0.6)
        return f"{RELEASE}/{_PROJECTS[number]}/InstallArea/{kind}"

    def _open_files(self) -> None:
        """Open every file once."""
        for library in self._libraries:
            self._add(self._library(*library, is_clean=False), self._library(*library))
        for module in self._modules:
            self._add(self._module(*module, is_clean=False), self._module(*module))
        for path in self._data:
            self._add([_opened(path)])

    def _search_again(self) -> None:
        """Search files again until the counts are nearly reached."""
        misses = 0
        while misses < _MISSES:
            is_clean = self._random.random() < 0.5  # noqa: PLR2004  (even odds)
            search = self._next_search()
            misses = 0 if self._add(search(is_clean=is_clean), search()) else misses + 1

    def _next_search(self) -> Callable[..., list[LookUp]]:
        opens, stats = (self._left[RELEASE, call, False] for call in ("open", "stat"))
        if stats > opens:
            return partial(self._command, *self._random.choice(self._tools))
        if self._random.random() < 0.5:  # noqa: PLR2004  (even odds)
            return partial(self._library, *self._random.choice(self._libraries))
        return partial(self._module, *self._random.choice(self._modules))

    def _fill_up(self) -> None:
        """Reach the counts: open known files, and look for optional ones."""
        known: dict[str, list[str]] = {area: [] for area in AREAS}
        for look_up in {look_up for group in self.groups for look_up in group}:
            if look_up.succeeded and look_up.call == "open":
                known[look_up.area].append(look_up.path)
        for area, paths in known.items():
            paths.sort()
            paths[:] = paths or [f"{area}/data"]
        for (area, call, succeeded), count in self._left.items():
            for _ in range(count):
                optional = f"{area}/share/optional{self._random.randrange(500):03}.cfg"
                path = self._random.choice(known[area]) if succeeded else optional
                self.groups.append([LookUp(call, path, succeeded)])

    def _add(self, *choices: list[LookUp]) -> bool:
        """Add the first group that does not exceed the counts."""
        for group in choices:
            counts = Counter((each.area, each.call, each.succeeded) for each in group)
            if all(self._left[key] >= count for key, count in counts.items()):
                self._left -= counts
                self.groups.append(group)
                return True
        return False

    @staticmethod
    def _before(entry: str, unneeded: Iterable[str], *, is_clean: bool) -> Iterator[str]:
        """Yield the entries before one; a path that is not clean has unneeded ones first."""
        if not is_clean:
            yield from unneeded
        kind = entry.rpartition("/")[2]
        for project in _PROJECTS:
            other = f"{RELEASE}/{project}/InstallArea/{kind}"
            if entry in {other, NEEDED_LIBRARIES}:
                return
            yield other

    def _library(self, entry: str, name: str, *, is_clean: bool = True) -> list[LookUp]:
        unneeded = (WORKING_DIRECTORY, *UNNEEDED_LIBRARIES, NEEDED_LIBRARIES)
        before = [
            each for each in self._before(entry, unneeded, is_clean=is_clean) if each != entry
        ]
        return [*(_failed("open", f"{each}/{name}") for each in before), _opened(f"{entry}/{name}")]

    def _module(self, entry: str, name: str, *, is_clean: bool = True) -> list[LookUp]:
        """Import a module as Python 2 does."""
        stem, _, suffix = name.partition(".")
        variants = [f"{stem}.so", f"{stem}module.so", f"{stem}.py", f"{stem}.pyc"]
        found = variants.index(f"{stem}.{suffix}")
        unneeded = (WORKING_DIRECTORY, *UNNEEDED_MODULES)
        calls = []
        for each in self._before(entry, unneeded, is_clean=is_clean):
            calls.append(_failed("stat", f"{each}/{stem}"))
            calls += [_failed("open", f"{each}/{variant}") for variant in variants]
        calls.append(_failed("stat", f"{entry}/{stem}"))
        calls += [_failed("open", f"{entry}/{variant}") for variant in variants[:found]]
        return [*calls, _opened(f"{entry}/{name}")]

    def _command(self, entry: str, name: str, *, is_clean: bool = True) -> list[LookUp]:
        before = self._before(entry, UNNEEDED_COMMANDS, is_clean=is_clean)
        return [
            *(_failed("stat", f"{each}/{name}") for each in before),
            LookUp("stat", f"{entry}/{name}", succeeded=True),
        ]


def cleaned(groups: Iterable[list[LookUp]]) -> list[list[LookUp]]:
    """Return the look-ups without unneeded entries; the working directory is not searched."""
    removed = {*UNNEEDED, WORKING_DIRECTORY}
    return [
        [each for each in group if each.succeeded or each.path.rpartition("/")[0] not in removed]
        for group in groups
    ]


def write(path: Path, groups: list[list[LookUp]], seed: int = 1) -> None:
    """Write the log of strace -f -ttt -T."""
    with path.open("w") as out:
        _Log(out, sum(map(len, groups)), Random(seed)).write(groups)  # noqa: S311  (no secret)


def write_example(folder: Path, seed: int) -> Example:
    """Write the logs before and after the search paths were cleaned, to a new folder."""
    folder.mkdir()
    example = Example(
        "ATHENA under strace",
        "Look-ups of one simulated ATHENA job before and after its search paths were cleaned. "
        f"The counts are {EXAMPLE_SCALE:.0%} of those of a job on Titan in 2017.",
    )
    groups = Job(seed, EXAMPLE_SCALE).groups
    for arm, kept in (("before", groups), ("after", cleaned(groups))):
        file = File("strace", folder / f"{arm}.strace", arm, f"strace {arm}")
        write(file.path, kept, seed)
        example.files.append(file)
    return example


class _Log:
    """A log in which calls may be interrupted by lines of other processes."""

    def __init__(self, out: TextIO, count: int, random: Random) -> None:
        self._out = out
        self._count = max(count, 1)
        self._random = random
        self._number = 0
        self._waiting: tuple[int, str] | None = None  # pid and line of an interrupted call

    def write(self, groups: list[list[LookUp]]) -> None:
        """Write all lines."""
        self._line(_FIRST_PID, 'execve("/bin/bash", ["bash", "run.sh"], 0x7ffe /* 93 vars */) = 0')
        self._line(_FIRST_PID, f'chdir("{WORKING_DIRECTORY}") = 0')
        pids = [_FIRST_PID]
        for number, group in enumerate(groups):
            if len(pids) <= _WORKERS and number >= len(groups) * len(pids) // (4 * _WORKERS):
                pids.append(_FIRST_PID + len(pids))
                self._line(_FIRST_PID, f"clone(child_stack=NULL, flags=SIGCHLD) = {pids[-1]}")
            pid = self._random.choice(pids)
            for look_up in group:
                self._call(pid, look_up)
        self._resume()
        for pid in reversed(pids):
            self._line(pid, "exit_group(0) = ?", duration_s=None)
            self._line(pid, "+++ exited with 0 +++", duration_s=None)

    def _call(self, pid: int, look_up: LookUp) -> None:
        self._number += 1
        if self._waiting and self._waiting[0] == pid:
            self._resume()
        start = f'{look_up.call}("{look_up.path}", '
        if look_up.call == "open":
            end = "O_RDONLY) = 5" if look_up.succeeded else "O_RDONLY) = -1"
        else:
            status = "{st_mode=S_IFREG|0644, st_size=39504, ...}"
            end = f"{status}) = 0" if look_up.succeeded else "0x7ffc1007f5f0) = -1"
        if not look_up.succeeded:
            end += " ENOENT (No such file or directory)"
        mean_s = _MEAN_S[look_up.area]
        if self._waiting is None and self._random.random() < _INTERRUPTED:
            self._line(pid, f"{start} <unfinished ...>", duration_s=None)
            self._waiting = pid, f"<... {look_up.call} resumed>{end}"
        else:
            self._line(pid, start + end, self._duration_s(mean_s))
            if self._waiting:
                self._resume()

    def _resume(self) -> None:
        if self._waiting:
            pid, line = self._waiting
            self._waiting = None
            self._line(pid, line, self._duration_s(max(_MEAN_S.values())))

    def _duration_s(self, mean_s: float) -> float:
        return mean_s * (0.5 + self._random.expovariate(2))

    def _line(self, pid: int, text: str, duration_s: float | None = 250e-6) -> None:
        time_s = _START_S + _WALL_S * (self._number / self._count) ** _FRONT
        end = "" if duration_s is None else f" <{duration_s:.6f}>"
        self._out.write(f"{pid:<5} {time_s:.6f} {text}{end}\n")
