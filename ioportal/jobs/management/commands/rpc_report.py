"""Print who sent how many RPCs: ``manage.py rpc_report --launch 9205593``."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError, CommandParser
from django.db.models import Q

from ioportal import commands
from ioportal.jobs import rpc_reports
from ioportal.jobs.accounting import OPEN_END
from ioportal.jobs.models import Job, Launch
from ioportal.site.models import Cluster, Nid, SourceJobId
from ioportal.telemetry.models import Principal
from ioportal.times import moment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ioportal.analysis.rpc_report import RpcReport

_EVER = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS = {str(kind.label): kind for kind in Principal if kind is not Principal.JOB}


class Command(commands.Command):
    """Prints RPC reports."""

    help = (
        "Print the metadata RPCs of a launch, a job, another principal or everybody: counts, rates "
        "and service times by kind. A range is widened to whole windows of 10 s; rates divide by "
        "its traced seconds."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        whose = parser.add_mutually_exclusive_group()
        whose.add_argument("--launch", nargs="+", help="apids, or Slurm steps such as 123.0")
        whose.add_argument("--job", nargs="+", help="batch ids")
        whose.add_argument("--host", help="a node or a NID outside any job")
        whose.add_argument("--process", help="a process name as job ids carry it")
        whose.add_argument("--kind", choices=_KINDS, help="all principals of a kind")
        parser.add_argument("--cluster", help="of the launch or job, where several have its id")
        parser.add_argument("--from", dest="start", type=moment, help="as 2017-07-05T18:45:00Z")
        parser.add_argument("--to", dest="end", type=moment)
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
    """Refuse what would give an answer to another question than was asked."""
    if options["start"] and options["end"] and options["start"] >= options["end"]:
        raise CommandError("--from must be before --to.")
    if cluster := options["cluster"]:
        if not options["launch"] and not options["job"]:
            raise CommandError("--cluster goes with --launch or --job.")
        if not Cluster.objects.filter(name=cluster).exists():
            raise CommandError(f"No cluster {cluster!r} is registered.")
    host = options["host"]
    if host and not Nid.objects.filter(Q(text=host) | Q(node__name=host)).exists():
        raise CommandError(f"No node or NID {host!r} is known.")
    process = options["process"]
    if process and not SourceJobId.objects.filter(text=process).exists():
        raise CommandError(f"No telemetry carries the name {process!r}.")


def _reports(options: dict[str, Any]) -> Iterator[RpcReport]:
    start, end = options["start"], options["end"]
    for name in options["launch"] or ():
        for launch in _found(Launch.objects.filter(name=name), "launch", name, options):
            yield _traced(rpc_reports.of_launch(launch, start, end), f"launch {name}")
    for batch_id in options["job"] or ():
        for job in _found(Job.objects.filter(batch_id=batch_id), "job", batch_id, options):
            yield _traced(rpc_reports.of_job(job, start, end), f"job {job}")
    if options["launch"] or options["job"]:
        return
    start, end = start or _EVER, end or OPEN_END
    if host := options["host"]:
        report = rpc_reports.of_kind(Principal.HOST, start, end, host=host)
    elif process := options["process"]:
        report = rpc_reports.of_kind(Principal.PROCESS, start, end, process=process)
    elif kind := options["kind"]:
        report = rpc_reports.of_kind(_KINDS[kind], start, end)
    else:
        report = rpc_reports.of_everything(start, end)
    yield _traced(report, "the range")


def _found(things: Any, kind: str, name: str, options: dict[str, Any]) -> Any:
    things = things.select_related("cluster")
    if cluster := options["cluster"]:
        things = things.filter(cluster__name=cluster)
    if not things:
        raise CommandError(
            f"No {kind} {name!r} is known. Load its accounting (manage.py ingest sacct|pbs|alps)."
        )
    return things


def _traced(report: RpcReport | None, what: str) -> RpcReport:
    if report is None:
        raise CommandError(
            f"No RPC trace covers {what}. Load one (manage.py ingest rpctrace --server NAME FILE)."
        )
    return report
