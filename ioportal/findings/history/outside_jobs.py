"""Histories of RPCs and operations from outside jobs at metadata servers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import polars as pl
from django.db.models import F, Q, Sum, Value
from django.db.models.functions import Coalesce

from collectors.tables import METADATA_OPERATIONS, UTC_US
from ioportal.findings.history.source import INTERVAL, HistorySource, moving, one_by_one
from ioportal.load.impact import principal_windows
from ioportal.rules.evidence import DAY, HOUR, PEAK_SPAN
from ioportal.site import process_names
from ioportal.site.models import Server, SourceJobId, Target
from ioportal.telemetry import buckets, levels, piecewise
from ioportal.telemetry.coverage import Interval
from ioportal.telemetry.models import AttributedRpc, HostWindow, IoWindow, Principal, RpcWindow

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from ioportal.findings.models import Flag
    from ioportal.telemetry.levels import Level

_METADATA_OPERATIONS: Any = reduce(
    add, (Coalesce(F(name), Value(0)) for name in METADATA_OPERATIONS)
)
_AROUND = timedelta(minutes=30)  # before a host was flagged


def _rpc_sums(level: Level, flag: Flag, over: Interval, senders: Q, **sums: Sum) -> pl.DataFrame:
    """Return sums over RPCs to a filesystem's metadata servers by windows of a level."""
    servers = Server.objects.filter(filesystem=flag.filesystem_id, kind=Server.Kind.MDS)
    frames = [pl.DataFrame(schema={**INTERVAL, **dict.fromkeys(sums, pl.Float64())})]
    for piece in piecewise.pieces(level, *over):
        rows = (
            piece.level.model._default_manager.filter(  # noqa: SLF001  (documented)
                senders,
                server_id__in=servers.values("pk"),
                start__gte=piece.start,
                start__lt=piece.end,
            )
            .values("start")
            .annotate(**sums)
            .values_list("start", *sums)
        )
        schema = {"start": UTC_US, **dict.fromkeys(sums, pl.Float64())}
        totals = pl.DataFrame(list(rows), schema=schema, orient="row").fill_null(0)
        end = (pl.col("start") + piece.level.width).alias("end")
        frames.append(totals.select("start", end, *sums))
    return pl.concat(frames).sort("end")


def _around(flag: Flag) -> Interval:
    width = levels.LOAD_WINDOWS.width
    start = buckets.floor(flag.since - _AROUND - PEAK_SPAN, width)
    return Interval(start, buckets.ceil(flag.until + PEAK_SPAN, width))


def _host_rpcs(flag: Flag, over: Interval) -> pl.DataFrame:
    kind, principal_id = principal_windows.principal_key(flag.subject)
    if kind == Principal.PENDING:
        return moving(_unknown_ids(principal_id, flag, over), PEAK_SPAN)
    if kind == Principal.PROCESS:
        senders = Q(kind=kind, source_job_id__in=_processes(flag, principal_id))
    else:
        senders = Q(kind__in=(kind, Principal.CONTRADICTED), nid_id=principal_id)
    return moving(
        _rpc_sums(levels.LOAD_WINDOWS, flag, over, senders, amount=Sum("count")), PEAK_SPAN
    )


def _processes(flag: Flag, key: int) -> list[int]:
    """Return the source job ids of a process, or of all processes of a user id."""
    uid = process_names.uid_of_key(key)
    names = SourceJobId.objects.filter(filesystem=flag.filesystem_id)
    names = names.filter(pk=key) if uid is None else names.filter(text__endswith=f".{uid}")
    return list(names.values_list("pk", flat=True))


def _unknown_ids(nid_id: int, flag: Flag, over: Interval) -> pl.DataFrame:
    """Return the RPCs of a NID with job ids that no job explains, by 10 s."""
    servers = Server.objects.filter(filesystem=flag.filesystem_id, kind=Server.Kind.MDS)
    sent = RpcWindow.objects.between(over.start, over.end).filter(
        nid_id=nid_id, server_id__in=servers.values("pk")
    )
    ids = sent.exclude(source_job_id=0).values_list("source_job_id", flat=True).distinct()
    pending = AttributedRpc.objects.between(over.start, over.end).filter(
        kind=Principal.PENDING, source_job_id__in=list(ids)
    )
    rows = sent.filter(source_job_id__in=pending.values("source_job_id")).values_list("start")
    totals = pl.DataFrame(
        list(rows.annotate(amount=Sum("count"))),
        schema={"start": UTC_US, "amount": pl.Float64()},
        orient="row",
    )
    end = (pl.col("start") + levels.RPC_WINDOWS.width).alias("end")
    return totals.select("start", end, "amount").sort("end")


def _contradicted_rpcs(flag: Flag, over: Interval) -> pl.DataFrame:
    kind, key = principal_windows.principal_key(flag.subject)
    if kind == Principal.JOB:
        contradicted = Q(kind=kind, job_id=key, source_job_id__gt=0, nid_id__gt=0)
    elif kind == Principal.CONTRADICTED:
        contradicted = Q(kind=kind, nid_id=key)
    else:  # by version 1 of the rule: of a host, whatever job held it
        contradicted = Q(kind__in=(Principal.JOB, Principal.CONTRADICTED), nid_id=key)
    return moving(
        _rpc_sums(levels.LOAD_WINDOWS, flag, over, contradicted, amount=Sum("count")), PEAK_SPAN
    )


OUTSIDE_JOBS = HistorySource(
    "Totals of five minutes, at the end of each 10 s with RPCs (rpctrace).",
    (levels.LOAD_WINDOWS,),
    _around,
    one_by_one(_host_rpcs),
    lambda _flag, over: Interval(over.start + PEAK_SPAN, over.end),
)
CONTRADICTED = replace(OUTSIDE_JOBS, amounts=one_by_one(_contradicted_rpcs))


def _polled_sums(windows: QuerySet[Any], amount: Sum) -> pl.DataFrame:
    """Return the totals of `PEAK_SPAN` at the end of each poll interval with a duration."""
    rows = (
        windows.exclude(start=F("end"))
        .values("start", "end")
        .annotate(amount=amount)
        .values_list("start", "end", "amount")
    )
    schema = {**INTERVAL, "amount": pl.Float64()}
    return moving(pl.DataFrame(list(rows), schema=schema, orient="row").sort("end"), PEAK_SPAN)


def _host_operations(flag: Flag, over: Interval) -> pl.DataFrame:
    _, nid_id = principal_windows.principal_key(flag.subject)
    mdts = Target.objects.filter(filesystem=flag.filesystem_id, kind=Target.Kind.MDT)
    windows = HostWindow.objects.filter(nid_id=nid_id, end__gt=over.start, end__lte=over.end)
    windows = windows.filter(target_id__in=mdts.values("pk"))
    return _polled_sums(windows, Sum("metadata_operations"))


OUTSIDE_OPERATIONS = HistorySource(
    "Totals of five minutes, at the end of each poll interval (exports).",
    (levels.HOST_WINDOWS,),
    _around,
    one_by_one(_host_operations),
    lambda _flag, over: Interval(over.start + PEAK_SPAN, over.end),
)


def _process_operations(flag: Flag, over: Interval) -> pl.DataFrame:
    _, key = principal_windows.principal_key(flag.subject)
    mdts = Target.objects.filter(filesystem=flag.filesystem_id, kind=Target.Kind.MDT)
    windows = IoWindow.objects.filter(
        kind=Principal.PROCESS,
        source_job_id__in=_processes(flag, key),
        target_id__in=mdts.values("pk"),
        start__gte=over.start - DAY,
        end__gt=over.start,
        end__lte=over.end,
    )
    return _polled_sums(windows.exclude(basis=IoWindow.Basis.TOTAL), Sum(_METADATA_OPERATIONS))


PROCESS_OPERATIONS = HistorySource(
    "Totals of five minutes, at the end of each poll interval (job_stats).",
    (levels.IO_WINDOWS,),
    _around,
    one_by_one(_process_operations),
    lambda _flag, over: Interval(over.start + PEAK_SPAN, over.end),
)


def _last_day(flag: Flag) -> Interval:
    width = levels.LOAD_MINUTES.width
    start = buckets.floor(flag.until - DAY - HOUR, width)
    return Interval(start, buckets.ceil(flag.until, width))


def _unattributed_share(flag: Flag, over: Interval) -> pl.DataFrame:
    unattributed = Sum("count", filter=Q(kind=Principal.UNATTRIBUTED))
    rpcs = _rpc_sums(
        levels.LOAD_MINUTES, flag, over, Q(), all=Sum("count"), unattributed=unattributed
    )
    share = pl.col("unattributed") / pl.col("all")
    return moving(rpcs, HOUR).select(*INTERVAL, amount=share)


UNATTRIBUTED = HistorySource(
    "Over one hour, at the end of each minute of the day before the last finding (rpctrace).",
    (levels.LOAD_MINUTES,),
    _last_day,
    one_by_one(_unattributed_share),
    lambda _flag, over: Interval(over.start + HOUR, over.end),
)
