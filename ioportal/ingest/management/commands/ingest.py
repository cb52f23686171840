"""Load log files: ``manage.py ingest FORMAT FILE...``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from django.core.management.base import CommandError, CommandParser
from django.db.models import Min, Model

from collectors import tables
from collectors.format import Option
from collectors.formats import BY_NAME, FORMATS, names
from collectors.lustre.targets import folded
from collectors.parsed import SourceUnavailable
from collectors.source import Source
from ioportal.celery import wake
from ioportal.core.stages import ROLL_UP
from ioportal.core.times import moment
from ioportal.ingest import attribution_stage
from ioportal.ingest.accounts import (
    SegmentAccount,
    last_counter_changes,
    unlinked_workload_jobs,
    without_jobs,
)
from ioportal.ingest.loaders import FILE_LOADERS, NAMED, attempts
from ioportal.ingest.loading import InputFile, Loaded, LoadOptions, Origin, Refused, load, load_each
from ioportal.ingest.models import Reject, Segment
from ioportal.site.models import Cluster, Filesystem, Server, Target
from ioportal.telemetry import commands
from ioportal.telemetry.free_space import Overload
from ioportal.telemetry.stage_runs import drain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.management.base import OutputWrapper

    from collectors.format import Format
    from collectors.parsed import Account

_STDIN = "-"
_FORMATS = [form.name for form in FORMATS if form.table in FILE_LOADERS]
# Files repeat records, or are of one run.
_LOADED_TOGETHER = (tables.RPC_WINDOWS, tables.REQUEST_WINDOWS, tables.SYSTEM_CALLS)
_GROUP, _GROUP_BYTES = 100, 16 << 20  # reads of counters in one transaction
_LISTED = 10  # refused files
_TIME = "%Y-%m-%d %H:%M:%S"
_DOUBTFUL = timedelta(hours=1)  # between a read and the latest change of its counters
_Model = TypeVar("_Model", bound=Model)


class Command(commands.Command):
    """Loads log files."""

    help = (
        "Load log files, attribute their operations to jobs, and account for every line. "
        "Files are plain, gzip or zstd; - is standard input. A file is loaded completely or not at "
        "all. Loading it a second time changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("format", choices=_FORMATS, metavar="FORMAT", help=", ".join(_FORMATS))
        parser.add_argument("files", nargs="+", metavar="FILE", help="- for standard input")
        parser.add_argument("--cluster", help=_help("the cluster of the jobs", "cluster"))
        parser.add_argument(
            "--filesystem", help=_help("the filesystem of the server or target", "filesystem")
        )
        parser.add_argument("--server", help=_help("the MDS or OSS of the data", "server"))
        parser.add_argument(
            "--target", help=_help("the MDT or OST, if the file does not name it", "target")
        )
        parser.add_argument(
            "--service",
            help=_help("the service, such as mdt, if the file does not name it", "service"),
        )
        parser.add_argument(
            "--at",
            type=moment,
            help=_help(
                "when the counters were read, such as 2017-07-06T13:52:55Z; default: the "
                "modification time of the file",
                "at",
            ),
        )
        parser.add_argument(
            "--columns",
            type=lambda text: text.split(","),
            help=_help("columns of a file without a header, separated by commas", "columns"),
        )
        parser.add_argument(
            "--experiment",
            help=_help("the experiment of the runs, new or known", "experiment"),
        )
        parser.add_argument(
            "--arm", help=_help("the arm of the runs, if the file does not name it", "arm")
        )
        parser.add_argument(
            "--run", help=_help("the name of the run; default: the name of the file", "run")
        )
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace overlapping files of the same server or target, or data of the same run; "
            "apply accounting as a correction of stored jobs",
        )
        parser.add_argument(
            "--register-targets",
            action="store_true",
            default=None,
            help=_help(
                "register new MDTs and OSTs by their names: lake-OST0001 on the filesystem lake, "
                "or on --filesystem",
                "register_targets",
            ),
        )
        parser.add_argument("--json", action="store_true", help="print the account as JSON")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Load the files, attribute their operations, and print the account."""
        begun = time.monotonic()
        names_before = _target_names() if options["register_targets"] else frozenset()
        loaded: list[Loaded] = []
        refused: list[str] = []
        try:
            for group in self._load(options, refused):
                loaded += group
        except (Refused, SourceUnavailable, Overload) as error:
            refused.append(str(error))
        failure = _failure(refused)
        if failure and not loaded:
            raise CommandError(failure)
        drain(partial(attribution_stage.attribute_pending, only=_filesystems(loaded)))
        wake(ROLL_UP)
        account = SegmentAccount.for_segments({file.segment for file in loaded})
        form = BY_NAME[options["format"]]
        reads = [file.segment for file in loaded if _is_read(form) and not file.already]
        if options["register_targets"] and (added := _target_names() - names_before):
            self.stderr.write(
                f"Registered {len(added):,} targets: {folded(added)}. Their servers are unknown: "
                "add them on the Site page, or as [[target]] with server = ..."
            )
        if warning := _time_warning(reads, options["at"]):
            self.stderr.write(warning)
        if options["json"]:
            seconds = round(time.monotonic() - begun, 3)
            self.stdout.write(json.dumps({**asdict(account), "seconds": seconds}))
        else:
            report = [] if options["at"] else _read_times(reads)
            report.append(_report(loaded, account, round(time.monotonic() - begun, 3)))
            self.stdout.write("\n".join(report))
        if failure:
            files = len(options["files"])
            raise CommandError(f"{failure} Loaded: {len(loaded):,} of {files:,} files.")

    def _load(self, options: dict[str, Any], refused: list[str]) -> Iterator[list[Loaded]]:
        """Load all files together where they repeat records, otherwise in groups."""
        form = BY_NAME[options["format"]]
        for name in get_args(Option):
            if options[name] is not None and name not in form.options:
                raise Refused(
                    f"{form.name} does not take --{name.replace('_', '-')}. Remove the option."
                )
        if _STDIN in options["files"] and len(options["files"]) > 1:
            raise Refused("- (standard input) cannot be combined with other files.")
        if form.table is tables.SYSTEM_CALLS and len(options["files"]) > 1 and not options["run"]:
            raise Refused("Give --run: these files are parts of one run, as of strace -ff.")
        shared = LoadOptions(
            replace=options["replace"],
            register_targets=bool(options["register_targets"]),
            columns=options["columns"],
        )
        origin = _origin(options)
        texts = [
            InputFile(
                partial(_open, name),
                replace(origin, read_at=_modified(name))
                if _is_read(form) and not origin.read_at
                else origin,
                None if name == _STDIN else name,
            )
            for name in options["files"]
        ]
        progress = _Progress(self.stderr, len(texts))

        attempt = attempts(form, shared)
        if form.table in _LOADED_TOGETHER:
            yield load(texts, form, attempt, progress, replace=shared.replace)
            return
        for group in _groups(texts) if _is_read(form) else ([text] for text in texts):
            for loaded in load_each(
                group, form, attempt, progress, refused, replace=shared.replace
            ):
                shared.loaded.update(file.segment.pk for file in loaded)
                yield loaded


def _failure(refused: list[str]) -> str:
    """Return the reasons of refused files, "" without any."""
    more = len(refused) - _LISTED
    others = [f"{more:,} more files were refused."] if more > 0 else []
    return "\n".join([*refused[:_LISTED], *others])


def _filesystems(loaded: list[Loaded]) -> set[int] | None:
    """Return the filesystems of loaded files: others are the workers' business. None: all."""
    segments = [file.segment.pk for file in loaded]
    of_servers = Filesystem.objects.filter(servers__segment__in=segments).values_list("pk")
    of_targets = Filesystem.objects.filter(targets__segment__in=segments).values_list("pk")
    return {key for (key,) in of_servers.union(of_targets)} or None


def _groups(reads: list[InputFile]) -> Iterator[list[InputFile]]:
    """Yield reads in groups of some files and bytes: their rows are in memory together."""
    group: list[InputFile] = []
    size = 0
    for read in reads:
        read_bytes = _size(read.name)
        if group and (len(group) == _GROUP or size + read_bytes > _GROUP_BYTES):
            yield group
            group, size = [], 0
        group.append(read)
        size += read_bytes
    yield group


def _size(name: str | None) -> int:
    """Return the size of a file in bytes; 0 if it cannot be read, which loading reports."""
    try:
        return Path(name).stat().st_size if name else 0
    except (OSError, ValueError):
        return 0


def _help(meaning: str, option: Option) -> str:
    """Return the help of an option, with the formats that take it."""
    return f"{meaning} ({', '.join(form.name for form in FORMATS if option in form.options)})"


def _is_read(form: Format) -> bool:
    """Return whether files of a format are counters at the moment of a read."""
    return "at" in form.options


class _Progress:
    """Reports the progress of a long load: at most one line every few seconds."""

    INTERVAL_S = 5

    def __init__(self, stream: OutputWrapper, files: int) -> None:
        self._stream = stream
        self._files = files
        self._lines: dict[str, int] = {}
        self._begun = self._reported = time.monotonic()

    def __call__(self, source: Source, account: Account) -> None:
        now = time.monotonic()
        self._lines[source.name] = account.lines
        if now - self._reported >= self.INTERVAL_S:
            self._reported = now
            lines = sum(self._lines.values())
            self._stream.write(
                f"{source.name}, {len(self._lines):,} of {self._files:,}: {lines:,} lines so far, "
                f"{lines / (now - self._begun):,.0f} per second"
            )


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
        raise SourceUnavailable(f"{name}: modification time not available: {error}") from error


def _origin(options: dict[str, Any]) -> Origin:
    origin = Origin(
        cluster=_registered(Cluster, options["cluster"]),
        filesystem=_registered(Filesystem, options["filesystem"]),
        server=_registered(Server, options["server"]),
        target=_registered(Target, options["target"]),
        service=options["service"],
        read_at=options["at"],
        experiment=options["experiment"] and NAMED["experiment"](options["experiment"]),
        arm=options["arm"] or "",
        run=options["run"] or "",
    )
    if origin.server:
        origin.check(origin.server)
    if origin.target:
        origin.check(origin.target)
    return origin


def _registered(model: type[_Model], name: str | None) -> _Model | None:
    if name is None:
        return None
    manager = model._default_manager  # noqa: SLF001  (Django's documented manager)
    instance = manager.filter(name=name).first()
    if instance is None:
        kind = model.__name__.lower()
        known = manager.order_by("name").values_list("name", flat=True)[:10]
        raise Refused(
            f"{kind} {name!r} is not registered (registered: {', '.join(known) or 'none'}). Add it "
            f"on the Site page, or as [[{kind}]] to the file of 'manage.py register'."
        )
    return instance


def _target_names() -> frozenset[str]:
    return frozenset(Target.objects.values_list("name", flat=True))


def _read_times(reads: list[Segment]) -> list[str]:
    """Return a note if modification times stand for the times of reads."""
    times = sorted(segment.start for segment in reads if segment.start)
    if not times:
        return []
    if len(times) == 1:
        return [f"{reads[0].name}: read at {times[0]:{_TIME}} UTC (modification time of the file)"]
    first, last = f"{times[0]:{_TIME}}", f"{times[-1]:{_TIME}}"
    return [
        f"{len(times):,} files: read at {first} to {last} UTC (modification times of the files)"
    ]


def _time_warning(reads: list[Segment], at: datetime | None) -> str:
    """Return a warning if counters changed last long before or after their read."""
    changed = last_counter_changes(reads)
    doubtful = [
        (read, changed[read.pk])
        for read in reads
        if read.start and read.pk in changed and abs(read.start - changed[read.pk]) > _DOUBTFUL
    ]
    if not doubtful:
        return ""
    segment, latest = doubtful[0]
    others = f" ({len(doubtful) - 1:,} more files are similar)" if len(doubtful) > 1 else ""
    remedy = (
        "Check the time given with --at, and its zone."
        if at
        else "Give the time of the read with --at. The default is the modification time of the "
        "file, which is wrong for a copy."
    )
    return (
        f"Warning: {segment.name}: read time {segment.start:{_TIME}} UTC, but latest snapshot_time "
        f"{latest:{_TIME}} UTC{others}. {remedy}"
    )


def _first_lines(loaded: list[Loaded]) -> dict[tuple[int, str], str]:
    """Return the first line of each reject reason by segment; not all rejects are stored."""
    rejects = Reject.objects.filter(segment__in={file.segment.pk for file in loaded})
    firsts = rejects.values_list("segment_id", "reason").annotate(first=Min("line"))
    return {(segment, reason): f", first in line {line:,}" for segment, reason, line in firsts}


def _names(segments: list[Segment]) -> str:
    """Return the name of the first file, and the number of others."""
    others = f" and {len(segments) - 1:,} more files" if len(segments) > 1 else ""
    return f"{segments[0].name}{others}"


def _report(loaded: list[Loaded], account: SegmentAccount, seconds: float) -> str:
    """Return the account in words."""
    lines = [
        f"{file.segment.name}: already loaded on {file.segment.loaded_at:%Y-%m-%d %H:%M} UTC; "
        "no change"
        for file in loaded
        if file.already
    ]
    lines.append(
        f"lines         {account.lines:>15,}  = {account.accepted:,} accepted"
        f" + {account.rejected:,} rejected + {account.irrelevant:,} irrelevant"
    )
    first_lines = _first_lines(loaded)
    for file in loaded:
        lines += [
            f"  rejected    {count:>15,}  {reason} "
            f"({file.segment.name}{first_lines.get((file.segment.pk, reason), '')})"
            for reason, count in file.segment.rejected_by_reason.items()
        ]
    lines.append(f"operations    {account.operations:>15,}")
    for kind, operations in account.attributed.items():
        lines.append(f"  to a {kind:<7} {operations:>15,}")
    for kind in ("pending", "contradicted", "ambiguous", "unattributed"):
        lines.append(f"  {kind:<12}{getattr(account, kind):>15,}")
    lines.append(f"seconds       {seconds:>15,}")
    accounting = ", ".join(names(tables.JOBS))
    lines += [
        f"{_names(segments)}: {' and '.join(clusters)} had no job around "
        f"{min(each.start for each in segments if each.start):{_TIME}} to "
        f"{max(each.end for each in segments if each.end):{_TIME}} UTC. Load the accounting of "
        f"this time ({accounting}): the operations are then attributed."
        for clusters, segments in without_jobs([file.segment for file in loaded]).items()
    ]
    lines += [
        f"{file.segment.name}: {count:,} of its PanDA jobs have no batch job on "
        f"{file.segment.cluster}. Load the accounting of this time ({accounting}): they are then "
        "linked."
        for file in loaded
        if (count := unlinked_workload_jobs(file.segment))
    ]
    return "\n".join(lines)
