"""RPC reports on the command line: ``manage.py rpc_report --launch 9205593``."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from ioportal.core.times import moment
from ioportal.jobs import rpc_reports
from ioportal.jobs.accounting import OPEN_END
from ioportal.jobs.models import Job, Launch
from ioportal.site.models import Cluster, Nid, SourceJobId
from ioportal.telemetry import commands
from ioportal.telemetry.models import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.jobs.analysis.rpc_report import RpcReport

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {str(kind.label): kind for kind in Principal if kind is not Principal.JOB}


class Command(commands.Command):
    """Print RPC reports."""

    help = (
        "Print metadata RPCs of a launch, a job, another principal, or all: counts, rates and "
        "service times by opcode. Ranges are widened to whole windows of 10 s. Rates are per "
        "traced second."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        principal = parser.add_mutually_exclusive_group()
        principal.add_argument("--launch", nargs="+", help="apids, or Slurm steps such as 123.0")
        principal.add_argument("--job", nargs="+", help="batch ids")
        principal.add_argument("--host", help="a node or NID; RPCs outside jobs")
        principal.add_argument("--process", help="a process name in job ids")
        principal.add_argument("--kind", choices=_KINDS, help="all principals of a kind")
        parser.add_argument("--cluster", help="cluster of the launch or job, if ids are ambiguous")
        parser.add_argument(
            "--from",
            dest="start",
            type=moment,
            help="start of the range, e.g. 2017-07-05T18:45:00Z",
        )
        parser.add_argument("--to", dest="end", type=moment, help="end of the range")
        parser.add_argument("--json", action="store_true", help="print a JSON list")

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Print one report per launch, job or principal."""
        _check(options)
        reports = list(_reports(options))
        if options["json"]:
            self.stdout.write(json.dumps([asdict(report) for report in reports]))
        else:
            self.stdout.write("\n\n".join(report.text() for report in reports))


def _check(options: dict[str, Any]) -> None:
    """Reject contradictory options and unknown names."""
    if options["start"] and options["end"] and options["start"] >= options["end"]:
        raise CommandError("--from must be before --to.")
    if cluster := options["cluster"]:
        if not options["launch"] and not options["job"]:
            raise CommandError("--cluster requires --launch or --job.")
        if not Cluster.objects.filter(name=cluster).exists():
            raise CommandError(f"Cluster {cluster!r} is not registered.")
    host = options["host"]
    if host and not Nid.objects.filter(Q(text=host) | Q(node__name=host)).exists():
        raise CommandError(f"Unknown node or NID {host!r}.")
    process = options["process"]
    if process and not SourceJobId.objects.filter(text=process).exists():
        raise CommandError(f"Unknown process {process!r}: no job id contains this name.")


def _reports(options: dict[str, Any]) -> Iterator[RpcReport]:
    start, end = options["start"], options["end"]
    for name in options["launch"] or ():
        for launch in _matching(Launch.objects.filter(name=name), "launch", name, options):
            yield _traced(rpc_reports.for_launch(launch, start, end), f"launch {name}")
    for batch_id in options["job"] or ():
        for job in _matching(Job.objects.filter(batch_id=batch_id), "job", batch_id, options):
            yield _traced(rpc_reports.for_job(job, start, end), f"job {job}")
    if options["launch"] or options["job"]:
        return
    start, end = start or _EVER, end or OPEN_END
    if host := options["host"]:
        report = rpc_reports.for_principals(Principal.HOST, start, end, host=host)
    elif process := options["process"]:
        report = rpc_reports.for_principals(Principal.PROCESS, start, end, process=process)
    elif kind := options["kind"]:
        report = rpc_reports.for_principals(_KINDS[kind], start, end)
    else:
        report = rpc_reports.for_all(start, end)
    yield _traced(report, "the range")


def _matching(rows: Any, kind: str, name: str, options: dict[str, Any]) -> Any:
    rows = rows.select_related("cluster")
    if cluster := options["cluster"]:
        rows = rows.filter(cluster__name=cluster)
    if not rows:
        raise CommandError(f"Unknown {kind} {name!r}. Load its accounting with `manage.py ingest`.")
    return rows


def _traced(report: RpcReport | None, scope: str) -> RpcReport:
    if report is None:
        raise CommandError(
            f"No RPC trace covers {scope}. Load one: manage.py ingest rpctrace --server NAME FILE"
        )
    return report
