"""Logs of servers and of the batch system."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SACCT = (
    "JobID|JobIDRaw|Cluster|User|Account|Partition|State|ExitCode|Submit|Start|End|NNodes|NCPUS|"
    "TotalCPU|NodeList|JobName\n"
)


def rpc(moment: datetime, xid: int, *, nid: str, opcode: int, job: str, us: tuple[int, int]) -> str:
    """Return the line of a handled RPC; `us` are service and total time."""
    seconds, rest = divmod((moment - _EPOCH) // timedelta(microseconds=1), 1_000_000)
    return (
        f"00000100:00100000:7.0:{seconds}.{rest:06d}:0:17305:0:"
        "(service.c:2441:ptlrpc_server_handle_request()) Handled RPC req@9ececbffb659f768 "
        "pname:cluuid+ref:pid:xid:nid:opc:job mdt00_005:128b2f33-d23f-892f-1818-95315d9dc9f8+10:"
        f"5192:x{xid}:12345-{nid}:{opcode}:{job} "
        f"Request processed in {us[0]}us ({us[1]}us total) trans 0 rc 0/0\n"
    )


def job_stats(target: str, entries: Mapping[str, Mapping[str, int]], now: datetime) -> str:
    """Return a target's job_stats: operations by job id and kind; bytes are sums of 4 kB each."""
    lines = [f"{'mdt' if '-MDT' in target else 'obdfilter'}.{target}.job_stats=", "job_stats:"]
    for job, counters in entries.items():
        lines += [f"- job_id:          {job}", f"  snapshot_time:   {int(now.timestamp())}"]
        for kind, samples in counters.items():
            rest = "unit:  reqs"
            if kind.endswith("_bytes"):
                rest = f"unit: bytes, min:    4096, max:    4096, sum: {4096 * samples:>15}"
            lines.append(f"  {kind + ':':<16} {{ samples: {samples:>11}, {rest} }}")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Job:
    """A batch job in accounting."""

    batch_id: str
    nodes: str
    node_count: int
    submit: datetime
    start: datetime
    end: datetime


def sacct(*jobs: Job) -> str:
    """Return the output of `sacct --parsable2`."""
    lines = [
        f"{job.batch_id}|{job.batch_id}|anvil|alice|PHY12|batch|COMPLETED|0:0|"
        f"{_local(job.submit)}|{_local(job.start)}|{_local(job.end)}|{job.node_count}|16|01:00:00|"
        f"{job.nodes}|relax\n"
        for job in jobs
    ]
    return "".join([_SACCT, *lines])


def _local(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}"
