"""Load log files: ``manage.py ingest FORMAT FILE...``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.management.base import CommandError, CommandParser
from django.db.models import Min, Model

from collectors.lustre.targets import folded
from collectors.parsed import SourceUnavailable
from collectors.source import Source
from ioportal import commands
from ioportal.celery import REFRESH_STATISTICS, wake
from ioportal.ingest import attribution_stage, backpressure
from ioportal.ingest.formats import LOADERS
from ioportal.ingest.formats import Command as Asked
from ioportal.ingest.loading import InputFile, Loaded, LoaderFactory, Origin, Refused, load
from ioportal.ingest.models import Reject, Segment
from ioportal.ingest.reconciliation import (
    SegmentAccount,
    clusters_without_jobs,
    last_counter_changes,
    unlinked_workload_jobs,
)
from ioportal.site.models import Cluster, Filesystem, Server, Target
from ioportal.stages import drain
from ioportal.times import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.management.base import OutputWrapper

    from collectors.parsed import Account

_STDIN = "-"
_READS = (Segment.Format.JOB_STATS, Segment.Format.MD_STATS, Segment.Format.MDS_STATS)
_SIDE_BY_SIDE = (Segment.Format.RPCTRACE, Segment.Format.REQ_HISTORY)
_TAKES = {  # what a text of each format can be said to be
    Segment.Format.RPCTRACE: {"server", "filesystem"},
    Segment.Format.REQ_HISTORY: {"server", "filesystem", "service"},
    Segment.Format.JOB_STATS: {"target", "filesystem", "at", "register_targets"},
    Segment.Format.MD_STATS: {"target", "filesystem", "at", "register_targets"},
    Segment.Format.MDS_STATS: {"server", "filesystem", "service", "at"},
    Segment.Format.SACCT: {"cluster", "columns"},
    Segment.Format.SQUEUE: {"cluster"},
    Segment.Format.PBS: {"cluster"},
    Segment.Format.ALPS: {"cluster"},
    Segment.Format.PANDA: {"cluster"},
}
_CLOCK = "%Y-%m-%d %H:%M:%S"
_FAR = timedelta(hours=1)  # between a read and the last change of its counters
_Thing = TypeVar("_Thing", bound=Model)


class Command(commands.Command):
    """Loads log files."""

    help = (
        "Load log files, charge what they tell to jobs, and account for every line. "
        "Plain, gzip and zstd files; - reads standard input. A file is loaded whole or not at all, "
        "and once: loading it again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument(
            "format",
            choices=Segment.Format.values,
            metavar="FORMAT",
            help=", ".join(Segment.Format.values),
        )
        parser.add_argument("files", nargs="+", metavar="FILE", help="- for standard input")
        parser.add_argument(
            "--cluster", help="whose jobs they are (sacct, squeue, pbs, alps, panda)"
        )
        parser.add_argument(
            "--filesystem", help="the filesystem that the server or target must be of"
        )
        parser.add_argument(
            "--server",
            help="the host that wrote the log or was read (rpctrace, req_history, mds_stats)",
        )
        parser.add_argument(
            "--target", help="the MDT or OST, where the text does not say (job_stats, md_stats)"
        )
        parser.add_argument(
            "--service",
            help="as 'mdt': the service, where the text does not say (mds_stats, req_history)",
        )
        parser.add_argument(
            "--at",
            type=moment,
            help="when counters were read, as 2017-07-06T13:52:55Z; else the file's own time",
        )
        parser.add_argument(
            "--columns",
            type=lambda text: text.split(","),
            help="columns of an sacct file without a header, separated by commas",
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="drop what was loaded from overlapping files of the same server or target",
        )
        parser.add_argument(
            "--register-targets",
            action="store_true",
            default=None,
            help="register MDTs and OSTs that are not yet, by their names: lake-OST0001 of the "
            "filesystem lake, or of --filesystem (job_stats, md_stats)",
        )
        parser.add_argument("--json", action="store_true", help="print the account as JSON")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Load, charge, and print the account."""
        begun = time.monotonic()
        known = _target_names() if options["register_targets"] else frozenset()
        loaded: list[Loaded] = []
        failure = None
        try:
            for some in self._load(options):
                loaded += some
        except (Refused, SourceUnavailable) as error:
            failure = error
        if failure and not loaded:
            raise CommandError(str(failure)) from failure
        drain(attribution_stage.attribute_pending)
        wake(REFRESH_STATISTICS)
        account = SegmentAccount.for_segments({text.segment for text in loaded})
        reads = [
            text.segment for text in loaded if text.segment.format in _READS and not text.already
        ]
        if options["register_targets"] and (added := _target_names() - known):
            self.stderr.write(
                f"Registered {len(added):,} targets: {folded(added)}. Their servers are not known: "
                "add them on the Site page, or as [[target]] with server = ..."
            )
        if warning := _far_from_its_text(reads, options["at"]):
            self.stderr.write(warning)
        own_times = [] if options["at"] else reads
        seconds = round(time.monotonic() - begun, 3)
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(account), "seconds": seconds}))
        else:
            self.stdout.write(
                "\n".join([*_read_at(own_times), _in_words(loaded, account, seconds)])
            )
        if failure:
            raise CommandError(
                f"{failure} Loaded before it: {len(loaded)} of {len(options['files'])} files."
            ) from failure

    def _load(self, options: dict[str, Any]) -> Iterator[list[Loaded]]:
        """Load file by file, RPC traces side by side; yield what each step loaded."""
        chosen = Segment.Format(options["format"])
        for name in sorted(set().union(*_TAKES.values()) - _TAKES[chosen]):
            if options[name] is not None:
                raise Refused(f"{chosen} is not told --{name.replace('_', '-')}: leave it out.")
        if _STDIN in options["files"] and len(options["files"]) > 1:
            raise Refused("- (standard input) cannot be combined with other files.")
        command = Asked(
            replace=options["replace"],
            register_targets=bool(options["register_targets"]),
            columns=options["columns"],
        )
        origin = _origin(options)
        texts = [
            InputFile(
                partial(_open, name),
                origin
                if origin.read_at or chosen not in _READS
                else replace(origin, read_at=_modified(name)),
                None if name == _STDIN else name,
            )
            for name in options["files"]
        ]
        progress = _Progress(self.stderr, len(texts))

        def attempt() -> LoaderFactory:
            return partial(LOADERS[chosen], command.afresh())

        together = [texts] if chosen in _SIDE_BY_SIDE else [[text] for text in texts]

        def on_part(source: Source, account: Account) -> None:
            _refuse_if_full()
            progress(source, account)

        for group in together:
            _refuse_if_full()
            yield load(group, chosen, attempt, on_part, replace=command.replace)


class _Progress:
    """Says how far a long load is: at most one line every few seconds."""

    EVERY_S = 5

    def __init__(self, stream: OutputWrapper, texts: int) -> None:
        self._stream = stream
        self._texts = texts
        self._lines: dict[str, int] = {}
        self._begun = self._said = time.monotonic()

    def __call__(self, source: Source, account: Account) -> None:
        now = time.monotonic()
        self._lines[source.name] = account.lines
        if now - self._said >= self.EVERY_S:
            self._said = now
            lines = sum(self._lines.values())
            self._stream.write(
                f"{source.name}, {len(self._lines):,} of {self._texts:,}: {lines:,} lines so far, "
                f"{lines / (now - self._begun):,.0f} per second"
            )


def _refuse_if_full() -> None:
    if full := backpressure.database_full():
        raise Refused(f"{full.reason} Then repeat the command.")


def _open(name: str) -> Source:
    if name == _STDIN:
        return Source(sys.stdin.buffer, "standard input")
    return Source.open(Path(name))


def _modified(name: str) -> datetime:
    if name == _STDIN:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(Path(name).stat().st_mtime), UTC)
    except (OSError, OverflowError, ValueError) as error:  # a year 40,000; a NUL in the name
        raise SourceUnavailable(f"{name}: its time cannot be told: {error}") from error


def _origin(options: dict[str, Any]) -> Origin:
    origin = Origin(
        cluster=_registered(Cluster, options["cluster"]),
        filesystem=_registered(Filesystem, options["filesystem"]),
        server=_registered(Server, options["server"]),
        target=_registered(Target, options["target"]),
        service=options["service"],
        read_at=options["at"],
    )
    if origin.server:
        origin.check(origin.server)
    if origin.target:
        origin.check(origin.target)
    return origin


def _registered(model: type[_Thing], name: str | None) -> _Thing | None:
    if name is None:
        return None
    manager = model._default_manager  # noqa: SLF001  (Django's documented manager)
    thing = manager.filter(name=name).first()
    if thing is None:
        kind = model.__name__.lower()
        known = ", ".join(manager.order_by("name").values_list("name", flat=True)[:10]) or "none"
        raise Refused(
            f"{kind} {name!r} is not registered (known: {known}). Add it on the Site page, or as a "
            f"[[{kind}]] to the file that 'manage.py register' reads."
        )
    return thing


def _target_names() -> frozenset[str]:
    return frozenset(Target.objects.values_list("name", flat=True))


def _read_at(own_times: list[Segment]) -> list[str]:
    """Say what reads were taken to be of the time of their files: it may be that of a copy."""
    times = sorted(segment.start for segment in own_times if segment.start)
    if not times:
        return []
    if len(times) == 1:
        return [f"{own_times[0].name}: read at {times[0]:{_CLOCK}} UTC (the file's own time)"]
    first, last = f"{times[0]:{_CLOCK}}", f"{times[-1]:{_CLOCK}}"
    return [f"{len(times):,} files: read at {first} to {last} UTC (the files' own times)"]


def _far_from_its_text(reads: list[Segment], at: datetime | None) -> str:
    """Return a warning where counters changed last long before, or after, they were read."""
    changed = last_counter_changes(reads)
    far = [
        (read, changed[read.pk])
        for read in reads
        if read.start and read.pk in changed and abs(read.start - changed[read.pk]) > _FAR
    ]
    if not far:
        return ""
    segment, newest = far[0]
    others = f" ({len(far) - 1:,} more files are like it)" if len(far) > 1 else ""
    remedy = (
        "Check the time given with --at, and its zone."
        if at
        else "Give the time of the read with --at: without it the file's own time is taken, and a "
        "copy has that of copying."
    )
    return (
        f"Warning: {segment.name} is taken to be read at {segment.start:{_CLOCK}} UTC, but its "
        f"newest snapshot_time is {newest:{_CLOCK}} UTC{others}. {remedy}"
    )


def _first_lines(loaded: list[Loaded]) -> dict[tuple[int, str], str]:
    """Return in words where each text's reasons were met first; not all reasons are kept."""
    kept = Reject.objects.filter(segment__in={text.segment.pk for text in loaded})
    firsts = kept.values_list("segment_id", "reason").annotate(first=Min("line"))
    return {(segment, reason): f", first in line {line:,}" for segment, reason, line in firsts}


def _in_words(loaded: list[Loaded], account: SegmentAccount, seconds: float) -> str:
    """Return the account as people read it."""
    lines = [
        f"{text.segment.name}: already loaded on {text.segment.loaded_at:%Y-%m-%d %H:%M} UTC; "
        "nothing was done"
        for text in loaded
        if text.already
    ]
    lines.append(
        f"lines         {account.lines:>15,}  = {account.accepted:,} accepted"
        f" + {account.rejected:,} rejected + {account.irrelevant:,} irrelevant"
    )
    first_lines = _first_lines(loaded)
    for text in loaded:
        lines += [
            f"  rejected    {count:>15,}  {reason} "
            f"({text.segment.name}{first_lines.get((text.segment.pk, reason), '')})"
            for reason, count in text.segment.rejected_by_reason.items()
        ]
    lines.append(f"operations    {account.operations:>15,}")
    for kind, operations in account.attributed.items():
        lines.append(f"  to a {kind:<7} {operations:>15,}")
    for kind in ("pending", "ambiguous", "unattributed"):
        lines.append(f"  {kind:<12}{getattr(account, kind):>15,}")
    lines.append(f"seconds       {seconds:>15,}")
    lines += [
        f"{text.segment.name}: no job of {' or '.join(clusters)} is known that ran around "
        f"{text.segment.start:%Y-%m-%d %H:%M:%S} to {text.segment.end:%Y-%m-%d %H:%M:%S} UTC. Load "
        "its accounting (sacct, pbs, alps): what it explains is charged then."
        for text in loaded
        if (clusters := clusters_without_jobs(text.segment))
    ]
    lines += [
        f"{text.segment.name}: {count:,} of its PanDA jobs ran inside no job of "
        f"{text.segment.cluster} that is known. Load its accounting (sacct, pbs): they are linked "
        "then."
        for text in loaded
        if (count := unlinked_workload_jobs(text.segment))
    ]
    return "\n".join(lines)
