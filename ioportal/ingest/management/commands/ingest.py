"""Load log files: ``manage.py ingest FORMAT FILE...``."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db.models import Model

from collectors.parsed import SourceUnavailable
from collectors.source import Source
from ioportal.celery import REFRESH_STATISTICS, wake
from ioportal.ingest import charging
from ioportal.ingest.accounts import SegmentAccount
from ioportal.ingest.formats import LOADERS
from ioportal.ingest.formats import Command as Asked
from ioportal.ingest.loading import Loaded, LoaderOf, Origin, Refused, Text, load
from ioportal.ingest.models import Segment
from ioportal.jobs.models import Cluster, Filesystem, Server, Target
from ioportal.stages import drain
from ioportal.times import moment

if TYPE_CHECKING:
    from django.core.management.base import OutputWrapper

    from collectors.parsed import Account

_STDIN = "-"
_READS = (Segment.Format.JOB_STATS, Segment.Format.MD_STATS)
_Thing = TypeVar("_Thing", bound=Model)


class Command(BaseCommand):
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
        parser.add_argument("--cluster", help="whose accounting it is (sacct, pbs, alps)")
        parser.add_argument(
            "--filesystem", help="the filesystem that the server or target must be of"
        )
        parser.add_argument("--server", help="the host that wrote the log (rpctrace)")
        parser.add_argument(
            "--target", help="the MDT or OST, where the text does not say (job_stats, md_stats)"
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
        parser.add_argument("--json", action="store_true", help="print the account as JSON")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Load, charge, and print the account."""
        begun = time.monotonic()
        account = SegmentAccount()
        try:
            loaded = self._load(options)
        except (Refused, SourceUnavailable) as error:
            raise CommandError(str(error)) from error
        drain(charging.charge_pending)
        wake(REFRESH_STATISTICS)
        for text in loaded:
            account.add(text.segment)
        seconds = round(time.monotonic() - begun, 3)
        if options["json"]:
            self.stdout.write(json.dumps({**asdict(account), "seconds": seconds}))
        else:
            self.stdout.write(_in_words(loaded, account, seconds))

    def _load(self, options: dict[str, Any]) -> list[Loaded]:
        chosen = Segment.Format(options["format"])
        command = Asked(replace=options["replace"], columns=options["columns"])
        origin = _origin(options)
        texts = [
            Text(
                partial(_open, name),
                origin
                if origin.read_at or chosen not in _READS
                else replace(origin, read_at=_modified(name)),
            )
            for name in options["files"]
        ]
        progress = _Progress(self.stderr, len(texts))

        def attempt() -> LoaderOf:
            return partial(LOADERS[chosen], command.afresh())

        if chosen == Segment.Format.RPCTRACE:
            return load(texts, chosen, attempt, progress)
        return [loaded for text in texts for loaded in load([text], chosen, attempt, progress)]


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


def _open(name: str) -> Source:
    if name == _STDIN:
        return Source(sys.stdin.buffer, "standard input")
    return Source.open(Path(name))


def _modified(name: str) -> datetime:
    if name == _STDIN:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(Path(name).stat().st_mtime), UTC)
    except OSError as error:
        raise SourceUnavailable(f"{name}: {error.strerror}") from error


def _origin(options: dict[str, Any]) -> Origin:
    filesystem = _registered(Filesystem, options["filesystem"])
    server = _registered(Server, options["server"])
    target = _registered(Target, options["target"])
    for thing in (server, target):
        if filesystem and thing and thing.filesystem != filesystem:
            raise Refused(f"{thing} is of filesystem {thing.filesystem}, not of {filesystem}.")
    return Origin(
        cluster=_registered(Cluster, options["cluster"]),
        server=server,
        target=target,
        read_at=options["at"],
    )


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
    for text in loaded:
        lines += [
            f"  rejected    {count:>15,}  {reason} ({text.segment.name})"
            for reason, count in text.segment.rejected_by_reason.items()
        ]
    lines.append(f"operations    {account.operations:>15,}")
    for kind, operations in account.charged.items():
        lines.append(f"  to a {kind:<7} {operations:>15,}")
    for kind in ("pending", "ambiguous", "unattributed"):
        lines.append(f"  {kind:<12}{getattr(account, kind):>15,}")
    lines.append(f"seconds       {seconds:>15,}")
    return "\n".join(lines)
