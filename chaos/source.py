"""A source with known content, new for every seed: random logs of some seconds.

Traces are of another year, in ten minutes per seed, so that their roll-ups are due immediately;
counters are read now. All output is also stored for `truth` to count.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from time import time
from typing import TYPE_CHECKING

from chaos import logs
from chaos.installation import MDT, OSTS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path
    from random import Random

    from chaos.installation import Installation

BEGIN = datetime(2024, 1, 1, tzinfo=UTC)
OWN_TIME = timedelta(minutes=10)
WRITES_S = 3.5
_PIPE_BYTES = 30_000  # maximum per write: half of a pipe's capacity
_OPCODES = (33, 35, 36, 37, 101, 103)
_MDT_KINDS = ("open", "close", "mkdir", "unlink", "getattr", "setattr", "statfs")
_OST_KINDS = ("read_bytes", "write_bytes", "punch", "setattr")

Principal = tuple[str, str]  # kind and name


class Targets:
    """The counters of a filesystem's targets, which persist over seeds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: dict[str, dict[str, dict[str, int]]] = {target: {} for target in (MDT, *OSTS)}
        self.texts: dict[str, str] = {}  # content by target

    def drop_jobs(self) -> None:
        """Drop the entries of jobs, like Lustre after an idle time."""
        for entries in self._counts.values():
            for job in filter(None, [*entries]):
                del entries[job]
        self._show()

    def count(self, random: Random, jobs: Collection[str]) -> None:
        """Add operations of jobs."""
        for target, entries in self._counts.items():
            kinds = _MDT_KINDS if target == MDT else _OST_KINDS
            for job in jobs:
                counters = entries.setdefault(job, dict.fromkeys(kinds, 0))
                for kind in kinds:
                    counters[kind] += random.choice([0, 1, random.randint(2, 5000)])
        self._show()

    def _show(self) -> None:
        now = datetime.now(UTC)
        self.texts = {
            target: logs.job_stats(target, entries, now) for target, entries in self._counts.items()
        }
        replace(self._folder / "mdt", self.texts[MDT])
        replace(self._folder / "osts", "".join(self.texts[target] for target in OSTS))


class Source:
    """The output of one seed.

    Args:
        site: installation with the agents.
        targets: targets with the counters.
        random: random generator.
        number: number of the seed in this run, which determines its time and jobs.
    """

    def __init__(self, site: Installation, targets: Targets, random: Random, number: int) -> None:
        self._site = site
        self._folder = site.source
        self._targets = targets
        self._random = random
        self._pipe = _Pipe(self._folder / "pipe")
        self.begin = BEGIN + number * OWN_TIME
        self.end = self.begin + OWN_TIME
        self.written: dict[str, bytes] = defaultdict(bytes)  # complete trace by server
        targets.drop_jobs()
        self.counters_before = targets.texts
        self.rotations = self.truncations = 0
        self._moment = dict.fromkeys(("mds1", "mds2", "mds3"), self.begin)
        self._xid = number * 10**9
        self._torn = b""  # end of a line whose start is written
        self._recent: list[bytes] = []  # lines that may be dumped again
        self._dump = b""
        self._dumps = 0
        self._prepare_jobs(100_000 + 100 * number)
        self._remove_old()

    def _prepare_jobs(self, first: int) -> None:
        """Choose active jobs, and jobs in accounting."""
        ids = [str(first + n) for n in range(10)]
        self._exclusive, self._first, self._second, self._counted, self._twice = ids[:5]
        unknown = ids[5]  # never in accounting
        now = datetime.now(UTC).replace(microsecond=0)

        def traced(batch_id: str, nodes: str, node_count: int) -> logs.Job:
            submit, start = self.begin - timedelta(hours=1), self.begin - timedelta(minutes=1)
            return logs.Job(batch_id, nodes, node_count, submit, start, self.end)

        def counted(batch_id: str, submitted_s: int) -> logs.Job:
            submit = now - timedelta(seconds=submitted_s)
            return logs.Job(batch_id, "n30", 1, submit, now - timedelta(seconds=9), now)

        self.jobs = [
            traced(self._exclusive, "n[1-4]", 4),
            traced(self._first, "n5", 1),
            traced(self._second, "n5", 1),
            counted(self._counted, 60),
            counted(self._twice, 60),
            counted(self._twice, 50),
        ]
        # NID and job id of an RPC, and the principal of its attribution.
        stranger = f"10.9.0.{first % 250}@o2ib9"
        self.rpc_principals: dict[tuple[str, str], Principal] = {
            **{(f"{n}@gni", ""): ("job", self._exclusive) for n in range(1, 5)},
            ("1@gni", "ptlrpcd.0"): ("job", self._exclusive),
            ("5@gni", ""): ("ambiguous", "5@gni"),
            ("5@gni", self._first): ("job", self._first),
            ("5@gni", self._second): ("job", self._second),
            ("7@gni", self._second): ("contradicted", self._second),
            ("8@gni", ""): ("host", "8@gni"),
            ("9@gni", "rsync.0"): ("process", "rsync.0"),
            ("9@gni", unknown): ("pending", unknown),
            (stranger, ""): ("unattributed", stranger),
        }
        self.job_principals: dict[str, Principal] = {
            self._counted: ("job", self._counted),
            self._twice: ("ambiguous", self._twice),
            unknown: ("pending", unknown),
            f"rsync.{first}": ("process", f"rsync.{first}"),
            "": ("unattributed", ""),
        }

    def schedule(self) -> Iterator[tuple[float, Callable[[], object]]]:
        """Yield the actions of a seed, with their times in seconds from its start."""
        random = self._random
        yield random.uniform(0, WRITES_S + 1), self._write_accounting
        for write, lower, upper in (
            (self._grow_log, 4, 12),
            (self._grow_dump, 2, 6),
            (self._write_to_pipe, 3, 8),
            (self._count, 2, 6),
        ):
            if random.random() < 0.85:  # noqa: PLR2004  (some sources are silent)
                for _ in range(random.randint(lower, upper)):
                    yield random.uniform(0.1, WRITES_S), write
        for _ in range(random.choice([0, 0, 1, 2])):
            yield random.uniform(0.5, WRITES_S), self._rotate
        for _ in range(random.choice([0, 1, 2])):
            yield random.uniform(1, WRITES_S), self._truncate
        yield WRITES_S, self._finish

    @property
    def counters(self) -> dict[str, str]:
        """Content of each target."""
        return self._targets.texts

    def flush(self) -> bool:
        """Continue writing to the pipe; return whether everything is written."""
        return self._pipe.flush()

    def _lines(self, server: str, count: int) -> list[bytes]:
        lines = []
        for _ in range(count):
            self._moment[server] += timedelta(microseconds=self._random.randint(1, 90_000))
            self._xid += 1
            nid, job = self._random.choice([*self.rpc_principals])
            service = self._random.randint(5, 900)
            line = logs.rpc(
                self._moment[server],
                self._xid,
                nid=nid,
                opcode=self._random.choice(_OPCODES),
                job=job,
                us=(service, service + self._random.randint(0, 500)),
            )
            lines.append(line.encode())
        return lines

    def _grow_log(self) -> None:
        """Append to the log; some lines repeat, and the last line may be torn."""
        lines = self._lines("mds1", self._random.randint(1, 200))
        self._recent = (self._recent + lines)[-30:]
        if self._random.random() < 0.3:  # noqa: PLR2004
            lines += self._random.sample(self._recent, min(5, len(self._recent)))
        text = b"".join(lines)
        self.written["mds1"] += text
        torn = self._random.randint(1, 150) if self._random.random() < 0.4 else 0  # noqa: PLR2004
        text = self._torn + text
        self._torn = text[len(text) - torn :]
        self._append(text[: len(text) - torn])

    def _append(self, text: bytes) -> None:
        with (self._folder / "trace.log").open("ab") as log:
            log.write(text)

    def _complete(self) -> None:
        if self._torn:
            self._append(self._torn)
        self._torn = b""

    def _rotate(self) -> None:
        """Rename the log; the next line starts a new one."""
        self._complete()
        log = self._folder / "trace.log"
        if log.exists():
            self.rotations += 1
            log.rename(log.with_name(f"trace.log.{self.begin:%Y%m%d%H%M}{self.rotations:02}"))

    def _truncate(self) -> None:
        """Empty the log, if it was read completely: unread lines would be lost."""
        self._complete()
        log = self._folder / "trace.log"
        if log.exists() and _is_read(log, self._site.spool("mds1-trace")):
            os.truncate(log, 0)
            self._recent = []  # a restarted agent cannot recognise them
            self.truncations += 1

    def _grow_dump(self) -> None:
        lines = self._lines("mds2", self._random.randint(1, 150))
        self._dump += b"".join(lines)
        self.written["mds2"] += b"".join(lines)
        if self._random.random() < 0.5:  # noqa: PLR2004
            self._finish_dump()
            self._dump = b"".join(lines[-5:])  # racing dumpers repeat them

    def _finish_dump(self) -> None:
        """Write the dump to a file."""
        self._dumps += 1
        name, text = f"{self.begin:%d%H%M}-{self._dumps}.log", self._dump
        if self._random.random() < 0.3:  # noqa: PLR2004
            name, text = f"{name}.gz", gzip.compress(text)
        path = self._folder / "dumps" / name
        unfinished = self._folder / name
        unfinished.write_bytes(text)
        unfinished.rename(path)

    def _write_to_pipe(self) -> None:
        text = b"".join(self._lines("mds3", self._random.randint(1, 120)))
        self.written["mds3"] += text
        self._pipe.write(text)

    def _count(self) -> None:
        """Add operations of jobs to the targets."""
        self._targets.count(self._random, [*self.job_principals])

    def _write_accounting(self) -> None:
        replace(self._folder / "accounting", logs.sacct(*self.jobs))

    def _remove_old(self) -> None:
        """Remove the previous seed's files, which were read."""
        for path in (*self._folder.glob("trace.log.*"), *self._folder.glob("dumps/*")):
            path.unlink()

    def _finish(self) -> None:
        self._complete()
        if self._dump:
            self._finish_dump()


class _Pipe:
    """A named pipe, held open like systemd does, so that its content survives its readers."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            os.mkfifo(path)
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._waiting = b""

    def __del__(self) -> None:
        os.close(self._pipe)

    def write(self, text: bytes) -> None:
        self._waiting += text
        self.flush()

    def flush(self) -> bool:
        """Write as much as fits; return whether everything is written."""
        try:
            written = os.write(self._pipe, self._waiting[:_PIPE_BYTES]) if self._waiting else 0
        except BlockingIOError:
            return False
        self._waiting = self._waiting[written:]
        return not self._waiting


def replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(text)
    unfinished.rename(path)


def _is_read(log: Path, spool: Path) -> bool:
    """Return whether an agent has read a log to its end, some time ago."""
    try:
        place = json.loads((spool / "state.json").read_text())["checkpoint"]["file"]
    except (OSError, KeyError):
        return False
    status = log.stat()
    return (
        place["inode"] == status.st_ino
        and place["offset"] == status.st_size
        and time() - status.st_mtime > 0.1  # noqa: PLR2004
    )
