"""Accounting: jobs of Slurm and PBS, launches of Slurm's steps and of ALPS, jobs of PanDA."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from collectors.batch import alps, pbs, sacct, squeue
from collectors.panda import jobs as panda
from ioportal.ingest.formats.common import Command, needed
from ioportal.ingest.loading import Refused
from ioportal.ingest.models import AccountingRecord, Segment, TouchedJob
from ioportal.jobs import accounting, workloads
from ioportal.telemetry.copy import copy_frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collectors.parsed import Account, Parsed
    from collectors.source import Source
    from ioportal.ingest.loading import Origin


class _AccountLoader:
    """What all accounting has in common."""

    time_column: str | None = None

    def __init__(self, command: Command, segment: Segment, origin: Origin) -> None:
        self.command = command
        self.cluster = needed(origin.cluster, "--cluster: whose accounting it is")
        self.segment = segment
        self._changes: list[accounting.Change] = []

    def recognises(self, account: Account) -> bool:
        """Tell whether there are records: lines of another format are rejects, not irrelevant."""
        return account.accepted > 0 or (account.irrelevant > 0 and not account.rejected)

    def finish(self) -> None:
        """Ask for what the changed jobs may have done."""
        TouchedJob.objects.bulk_create(
            TouchedJob(
                job_id=change.job_id,
                start=change.start,
                end=change.end,
                node_ids=list(change.node_ids),
            )
            for change in self._changes
        )

    def store_jobs(self, records: pl.DataFrame) -> None:
        """Store records of jobs, and where each was read."""
        self._extend(records, "submitted_at", "started_at", "ended_at")
        recorded = accounting.record_jobs(self.cluster, records)
        self._changes += recorded.changes
        self._store_places(records, job_id=recorded.job_of_line)

    def store_launches(self, records: pl.DataFrame) -> None:
        """Store records of launches, and where each was read."""
        self._extend(records, "started_at", "ended_at")
        self._changes += accounting.record_launches(self.cluster, records)
        self._store_places(records)

    def store_workload_jobs(self, records: pl.DataFrame) -> None:
        """Store records of PanDA jobs, and where each was read."""
        self._extend(records, "started_at", "ended_at")
        self._store_places(records, workload_job_id=workloads.record(self.cluster, records))

    def _extend(self, records: pl.DataFrame, *times: str) -> None:
        first, last = records.select(
            first=pl.min_horizontal(pl.min(*times)), last=pl.max_horizontal(pl.max(*times))
        ).row(0)
        if first:
            self.segment.start = min(first, self.segment.start or first)
            self.segment.end = max(last, self.segment.end or last)

    def _store_places(self, records: pl.DataFrame, **named: dict[int, int]) -> None:
        """Store where records were read, and the numbers of what their lines name."""
        line = pl.col("line")
        places = records.select(
            line,
            pl.lit(self.segment.pk).alias("segment_id"),
            **{
                column: line.replace_strict(of_line, return_dtype=pl.Int64)
                for column, of_line in named.items()
            },
        )
        copy_frame(AccountingRecord, places)
        self.segment.records += places.height


class SacctLoader(_AccountLoader):
    """Slurm's sacct: jobs and their steps."""

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text."""
        columns = self.command.columns
        if columns is None:
            return sacct.parse(source, self.cluster.zone)
        try:
            return sacct.parse(source, self.cluster.zone, columns)
        except ValueError as error:
            raise Refused(f"--columns: {error}") from error

    def store(self, parsed: Parsed) -> None:
        """Store jobs, then their steps."""
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
        is_step = pl.col("launch") != ""
        timeless = records.filter(~is_step, pl.col("submitted_at").is_null())
        if not timeless.is_empty():
            raise Refused(
                f"{self.segment.name}: the job of line {timeless['line'][0]} has no submit time, "
                "which tells jobs of one id apart. Export with the column Submit (squeue: %V)."
            )
        self.store_jobs(records.filter(~is_step))
        self.store_launches(
            records.filter(is_step).with_columns(
                launch=pl.concat_str("batch_id", pl.lit("."), "launch"), command="name"
            )
        )


class SqueueLoader(SacctLoader):
    """Slurm's queue: jobs that run or wait, until accounting knows more of them."""

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text."""
        return squeue.parse(source, self.cluster.zone)


class PbsLoader(_AccountLoader):
    """PBS or Torque accounting."""

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text."""
        return pbs.parse(
            source,
            self.cluster.zone,
            exec_hosts_are_compute_nodes=self.cluster.exec_hosts_are_compute_nodes,
        )

    def store(self, parsed: Parsed) -> None:
        """Store jobs."""
        self.store_jobs(parsed.table)


class AlpsLoader(_AccountLoader):
    """ALPS: where each launch of a Cray ran."""

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text."""
        return alps.parse(source)

    def recognises(self, account: Account) -> bool:
        """Tell whether there is a launch: other programs write to the same syslog."""
        return account.accepted > 0

    def store(self, parsed: Parsed) -> None:
        """Store launches."""
        self.store_launches(parsed.table)


class PandaLoader(_AccountLoader):
    """PanDA's job records."""

    def parts(self, source: Source) -> Iterator[Parsed]:
        """Parse the text."""
        return panda.parse(source)

    def store(self, parsed: Parsed) -> None:
        """Store PanDA jobs."""
        self.store_workload_jobs(parsed.table)
