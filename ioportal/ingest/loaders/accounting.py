"""Accounting: batch jobs, their launches, and PanDA jobs."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl
from django.db.models import Min

from collectors.batch import hostlists
from collectors.format import Origin as InputOrigin
from ioportal.core.postgres.advisory_locks import Lock, hold
from ioportal.ingest import checks
from ioportal.ingest.loaders.common import needed
from ioportal.ingest.loading import Loader, LoadOptions, Refused
from ioportal.ingest.models import AccountingRecord, Batch, DirtyJob, OwnerConflict, Segment
from ioportal.jobs import accounting, panda_jobs
from ioportal.telemetry.copy import copy_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.parsed import Account, Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin

_FEW_HOSTS = 1_000  # not worth a refusal, if the number of nodes is wrong
_BATCH_HOSTS = 500_000  # more than agents send; seconds of work, in which other records wait


class _AccountingLoader(Loader):
    """Base of the accounting loaders."""

    def __init__(self, options: LoadOptions, segment: Segment, origin: Origin) -> None:
        super().__init__(options, segment, origin)
        self.cluster = needed(origin.cluster, "--cluster: whose accounting it is")
        self._changes: list[accounting.Change] = []
        self._hosts = 0

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file."""
        origin = InputOrigin(
            zone=self.cluster.zone,
            columns=self.options.columns,
            exec_hosts_are_compute_nodes=self.cluster.exec_hosts_are_compute_nodes,
        )
        try:
            return self.parsed(source, origin)
        except ValueError as error:
            raise Refused(f"--columns: {error}") from error

    def recognises(self, account: Account) -> bool:
        """Return whether there are records: lines of another format are rejects, not irrelevant."""
        return account.accepted > 0 or (account.irrelevant > 0 and not account.rejected)

    def finish(self) -> None:
        """Request the attribution of what the changed jobs may have done."""
        DirtyJob.objects.bulk_create(
            DirtyJob(
                job_id=change.job_id,
                start=change.start,
                end=change.end,
                node_ids=list(change.node_ids),
            )
            for change in self._changes
        )

    def store_jobs(self, records: pl.DataFrame) -> None:
        """Store records of jobs with their line numbers."""
        self._check_hosts(records)
        self.extend(records, "submitted_at", "started_at", "ended_at")
        recorded = accounting.record_jobs(self.cluster, records, self._order())
        self.store_lines(records, job_id=recorded.job_id_by_line)
        if self.options.replace:  # a correction resolves the conflicts of its jobs
            job_ids = recorded.job_id_by_line.values()
            OwnerConflict.objects.filter(job__in=set(job_ids)).delete()
        self._store_result(recorded)

    def _store_result(self, recorded: accounting.Recorded) -> None:
        self._changes += recorded.changes
        latest = {conflict.job_id: conflict for conflict in recorded.conflicts}
        OwnerConflict.objects.bulk_create(
            (
                OwnerConflict(segment=self.segment, source_id=self._source_id, **asdict(conflict))
                for conflict in latest.values()
            ),
            update_conflicts=True,
            unique_fields=["job", "source"],
            update_fields=["reported_owner", "segment", "line", "differences"],
        )

    @property
    def _source_id(self) -> int | None:
        return self.segment.batch.source_id if self.segment.is_batch else None

    def _order(self) -> accounting.Order:
        """Return the order of the records: of a stream by batch, otherwise of loading."""
        if not self.segment.is_batch:
            return accounting.Order(self.segment.pk, is_correction=self.options.replace)
        hold(Lock.ACCOUNTING)  # batches that are stored at the same time use the same first one
        batch = self.segment.batch
        stream = Batch.objects.filter(source=batch.source, stream=batch.stream)
        return accounting.Order(
            stream.aggregate(first=Min("pk"))["first"], batch.sequence, batch.source_id
        )

    def store_launches(self, records: pl.DataFrame, source_id: int | None = None) -> None:
        """Store records of launches with their line numbers."""
        self._check_hosts(records)
        self.extend(records, "started_at", "ended_at")
        self._store_result(accounting.record_launches(self.cluster, records, source_id))
        self.store_lines(records)

    def _check_hosts(self, records: pl.DataFrame) -> None:
        """Refuse too many hosts before their expansion: more than counted, or in a whole batch."""
        lists = records.filter(pl.col("nodes").str.contains(r"[\[,]"))
        for line, nodes, node_count in lists.select("line", "nodes", "node_count").iter_rows():
            hosts = hostlists.count(nodes)
            if hosts > max(node_count or hosts, _FEW_HOSTS):
                raise Refused(
                    f"{self.segment.name}: line {line} names {hosts:,} hosts, but counts "
                    f"{node_count:,} nodes. Nothing was loaded. "
                    "Correct the host list or the number."
                )
            self._hosts += hosts
        if self.segment.is_batch and self._hosts > _BATCH_HOSTS:
            raise Refused(
                f"{self.segment.name}: its records name {self._hosts:,} hosts, more than "
                f"{_BATCH_HOSTS:,}. Nothing was loaded. Send them in several batches: a "
                "current agent does."
            )

    def extend(self, records: pl.DataFrame, *times: str) -> None:
        """Extend the time range of the segment."""
        first, last = records.select(
            first=pl.min_horizontal(pl.min(*times)), last=pl.max_horizontal(pl.max(*times))
        ).row(0)
        if first:
            self.segment.start = min(first, self.segment.start or first)
            self.segment.end = max(last, self.segment.end or last)

    def store_lines(self, records: pl.DataFrame, **ids_by_line: dict[int, int]) -> None:
        """Store the line number of each record, with the ids of its job."""
        line = pl.col("line")
        lines = records.select(
            line,
            pl.lit(self.segment.pk).alias("segment_id"),
            **{
                column: line.replace_strict(ids, return_dtype=pl.Int64)
                for column, ids in ids_by_line.items()
            },
        )
        copy_frame(AccountingRecord, lines)
        self.segment.records += lines.height


class JobsLoader(_AccountingLoader):
    """Batch jobs, and the launches among their records."""

    def store(self, parsed: Parsed) -> None:
        """Store jobs, then their launches."""
        records = parsed.table
        foreign = records.filter(
            pl.col("cluster") != "",
            pl.col("cluster").str.to_lowercase() != self.cluster.name.lower(),
        )
        if not foreign.is_empty():
            line, cluster = foreign.select("line", "cluster").row(0)
            raise Refused(
                f"{self.segment.name}: line {line} is of cluster {cluster[:64]!r}, not of "
                f"{self.cluster}. Load it with --cluster of that name, or export one cluster at a "
                "time (sacct --clusters)."
            )
        is_launch = pl.col("launch") != ""
        timeless = records.filter(~is_launch, pl.col("submitted_at").is_null())
        if not timeless.is_empty():
            raise Refused(
                f"{self.segment.name}: the job in line {timeless['line'][0]} has no submit time, "
                "which distinguishes jobs with the same id. Export with the column Submit "
                "(squeue: %V)."
            )
        self.store_jobs(records.filter(~is_launch))
        launches = records.filter(is_launch)
        if not launches.is_empty():
            self.store_launches(
                launches.with_columns(
                    launch=pl.concat_str("batch_id", pl.lit("."), "launch"), command="name"
                ),
                self._source_id,
            )


class LaunchesLoader(_AccountingLoader):
    """Launches and where they ran."""

    def recognises(self, account: Account) -> bool:
        """Return whether there is a launch: other programs write to the same syslog."""
        return account.accepted > 0

    def store(self, parsed: Parsed) -> None:
        """Store launches."""
        self.store_launches(parsed.table)


class WorkloadJobsLoader(_AccountingLoader):
    """Jobs of a workload manager."""

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the file; the record modified last counts, so none may be of the future."""
        for parsed in super().parts(source):
            yield checks.without_future(parsed, "panda_id", now=datetime.now(UTC))

    def store(self, parsed: Parsed) -> None:
        """Store the jobs with their line numbers."""
        self.extend(parsed.table, "started_at", "ended_at")
        ids_by_line = panda_jobs.record(self.cluster, parsed.table)
        self.store_lines(parsed.table, workload_job_id=ids_by_line)
