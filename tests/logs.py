"""Log files as servers and batch systems write them, rendered by the tests themselves.

The parsers and the simulator use different code, so that tests do not check them against
themselves. Times of day are on `DAY`, in UTC.
"""

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count

DAY = datetime(2017, 7, 5, tzinfo=UTC)

OPEN, CLOSE, GETATTR = 101, 35, 33  # LDLM_ENQUEUE, MDS_CLOSE, MDS_GETATTR

_xids = count(1_510_963_712_345_678, 16)


def at(clock: str) -> datetime:
    """Return a time of `DAY` from "12:00:05.25"; "30:00" is 06:00 on the next day."""
    hours, minutes, *seconds = clock.split(":")
    return DAY + timedelta(
        hours=int(hours), minutes=int(minutes), seconds=float(seconds[0]) if seconds else 0
    )


def rpc(
    moment: datetime | str,
    nid: str = "1@gni",
    opcode: int = OPEN,
    *,
    job: str | None = None,
    us: tuple[int, int] | None = (30, 40),
    thread: str = "mdt00_005",
    xid: int | None = None,
) -> str:
    """One handled RPC; `us` are service and total time, None for a server that does not time.

    Without `job`, the line has the format of Lustre 2.5; with a job id (or ""), of Lustre 2.15.
    """
    moment = at(moment) if isinstance(moment, str) else moment
    request, names, label, verb = ("", "nid:opc", "", "procesed")
    if job is not None:
        request, names, label, verb = (
            "req@9ececbffb659f768 ",
            "nid:opc:job",
            f":{job}",
            "processed",
        )
    tail = f" Request {verb} in {us[0]}us ({us[1]}us total) trans 0 rc 0/0" if us else ""
    return (
        f"00000100:00100000:7.0:{_seconds(moment)}:0:17305:0:"
        f"(service.c:2114:ptlrpc_server_handle_request()) Handled RPC {request}"
        f"pname:cluuid+ref:pid:xid:{names} {thread}:128b2f33-d23f-892f-1818-95315d9dc9f8+10:5192:"
        f"x{xid or next(_xids)}:12345-{nid}:{opcode}{label}{tail}"
    )


def handling(moment: datetime | str) -> str:
    """Return the line of an arriving request, which is no record of an RPC."""
    return rpc(moment).replace("Handled RPC", "Handling RPC").partition(" Request proc")[0]


@dataclass(frozen=True)
class Timed:
    """Operations with their time, as counted from Lustre 2.14 on."""

    samples: int
    us: int


def job_stats(
    target: str,
    entries: dict[str, dict[str, int | Timed]],
    *,
    snapshot: datetime | str = "",
    start: datetime | str = "",
) -> str:
    """Return the output of `lctl get_param` for a target: operations by job id and kind.

    `read_bytes` and `write_bytes` are pairs of requests and bytes. `snapshot` is when each entry
    was updated last, `start` when it began (from Lustre 2.15 on).
    """
    lines = [f"{'mdt' if '-MDT' in target else 'obdfilter'}.{target}.job_stats=", "job_stats:"]
    for job, counters in entries.items():
        lines.append(f"- job_id:          {job}")
        lines.append(f"  snapshot_time:   {_epoch(snapshot or '12:00')}")
        if start:
            lines.append(f"  start_time:      {_epoch(start)}")
        lines += [_counter(name, amount) for name, amount in counters.items()]
    return "\n".join(lines) + "\n"


def md_stats(target: str, counters: dict[str, int], *, snapshot: datetime | str = "12:00") -> str:
    """Return the output of `lctl get_param` for an MDT."""
    lines = [
        f"mdt.{target}.md_stats=",
        f"snapshot_time             {_epoch(snapshot)}.5 secs.usecs",
    ]
    lines += [f"{name:<25} {amount} samples [reqs]" for name, amount in counters.items() if amount]
    return "\n".join(lines) + "\n"


def exports(target: str, counters: dict[str, dict[str, int]]) -> str:
    """Return the output of `lctl get_param` for the clients of an MDT: operations by NID."""
    lines = []
    for nid, of_client in counters.items():
        lines.append(f"mdt.{target}.exports.{nid}.stats=")
        lines.append("snapshot_time             1499256000.000000001 secs.nsecs")
        lines += [f"{name:<25} {amount} samples [reqs]" for name, amount in of_client.items()]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Run:
    """An accounted batch job, for `sacct` and `pbs`."""

    batch_id: str
    start: str | datetime | None = "12:00"
    end: str | datetime | None = "13:00"  # None: still running
    nodes: str = "n1"
    node_count: int = 1
    submit: str | datetime = "11:00"
    cores: int = 16
    cpu: str = "01:00:00"
    user: str = "alice"
    project: str = "PHY12"
    queue: str = "batch"
    name: str = "relax"
    cluster: str = "anvil"
    state: str = ""

    def running(self) -> "Run":
        """The same job, before it ended."""
        return replace(self, end=None)


_SACCT = (
    "JobID|JobIDRaw|Cluster|User|Account|Partition|State|ExitCode|Submit|Start|End|NNodes|NCPUS|"
    "TotalCPU|NodeList|JobName"
)


def sacct(*runs: Run) -> str:
    """Return the output of `sacct --parsable2`, in UTC."""
    return "\n".join([_SACCT, *map(_sacct_line, runs)]) + "\n"


def squeue(*runs: Run) -> str:
    """Return the output of `squeue` in the documented format."""
    head = "JOBID|JOBID|PARTITION|ACCOUNT|USER|SUBMIT_TIME|START_TIME|STATE|NODES|NODELIST|NAME\n"
    return head + "".join(
        f"{run.batch_id}|{run.batch_id}|{run.queue}|{run.project}|{run.user}|{_epoch(run.submit)}|"
        f"{_epoch(run.start)}|RUNNING|{run.node_count}|{run.nodes}|{run.name}\n"
        for run in runs
    )


def _sacct_line(run: Run) -> str:
    state = run.state or ("RUNNING" if run.end is None else "COMPLETED")
    if run.start is None:
        state = run.state or "PENDING"
    return "|".join(
        [
            run.batch_id, run.batch_id, run.cluster, run.user, run.project, run.queue, state, "0:0",
            _local(run.submit), _local(run.start), _local(run.end), str(run.node_count),
            str(run.cores), run.cpu, run.nodes, run.name,
        ]
    )  # fmt: skip


def pbs(*records: tuple[str, Run]) -> str:
    """Accounting records of PBS: pairs of a type (Q, S, E, R) and a job on the nodes it names."""
    return "".join(_pbs_line(kind, run) for kind, run in records)


def _pbs_line(kind: str, run: Run) -> str:
    moments = {"Q": run.submit, "S": run.start, "E": run.end, "R": run.end}
    head = _moment(moments[kind]).strftime("%m/%d/%Y %H:%M:%S")
    facts = f"queue={run.queue} ctime={_epoch(run.submit)}"
    if kind != "Q":
        hosts = "+".join(f"{node}/0" for node in run.nodes.split(",") if node)
        facts = (
            f"user={run.user} account={run.project} jobname={run.name} queue={run.queue} "
            f"ctime={_epoch(run.submit)} qtime={_epoch(run.submit)} start={_epoch(run.start)} "
            + (f"exec_host={hosts} " if hosts else "")
            + f"Resource_List.nodect={run.node_count}"
        )
    if kind in "ER":
        facts += (
            f" end={_epoch(run.end)} Exit_status=0 total_execution_slots={run.cores}"
            f" resources_used.cput={run.cpu}"
        )
    return f"{head};{kind};{run.batch_id}.sdb;{facts}\n"


def alps(*records: str) -> str:
    """A Cray's syslog with some launches (`starting`, `finishing`)."""
    return "".join(f"{record}\n" for record in records)


def starting(apid: int, batch_id: str, moment: datetime | str, nodes: str, node_count: int) -> str:
    """Return the line of a starting launch; `nodes` in the form of ALPS: "2-3,7"."""
    return (
        f"<150>1 {_moment(moment).isoformat()} c0-0c0s1n1 aprun 2035 p0-20170620t081433 "
        f"[alps_msgs@34] apid={apid}, Starting, user=15311, batch_id={batch_id}.sdb, "
        f'cmd_line="aprun -n 16 ./a.out ", num_nodes={node_count}, node_list={nodes}, cwd="/tmp"'
    )


def finishing(apid: int, batch_id: str, moment: datetime | str) -> str:
    """Return the line of an ended launch."""
    return (
        f"<150>1 {_moment(moment).isoformat()} c0-0c0s1n1 apsys 2039 p0-20170620t081433 "
        f"[alps_msgs@34] apid={apid}, Finishing, user=15311, batch_id={batch_id}.sdb, "
        "exit_code=0, exitcode_array=0, exitsignal_array=0"
    )


def panda(*records: dict[str, object]) -> str:
    """Return a response of BigPanDA with records of `panda_job`."""
    return json.dumps({"jobs": records, "selectionparams": {}}) + "\n"


def panda_job(
    pandaid: int,
    batchid: str | None = "77",
    start: datetime | str | None = "12:05",
    end: datetime | str | None = "12:55",
    **facts: object,
) -> dict[str, object]:
    """A PanDA job, by default one that finished; `facts` by PanDA's names."""
    known = {
        "pandaid": pandaid,
        "jeditaskid": 10_995_522,
        "jobstatus": "finished" if end else "running",
        "batchid": batchid,
        "computingsite": "ORNL_Titan_MCORE",
        "modificationhost": "slot1@n1",
        "produsername": "Alice Example",
        "transformation": "Sim_tf.py",
        "corecount": 16,
        "cpuconsumptiontime": 36_000 if end else None,
        "starttime": start and _moment(start).isoformat(),
        "endtime": end and _moment(end).isoformat(),
        "modificationtime": (_moment(end or start or "11:00") + timedelta(seconds=90)).isoformat(),
    }
    return known | facts


def _counter(name: str, amount: int | tuple[int, int] | Timed) -> str:
    if isinstance(amount, Timed):
        return (
            f"  {name + ':':<16} {{ samples: {amount.samples:>11}, unit: usecs, min: {0:>8}, "
            f"max: {amount.us:>8}, sum: {amount.us:>16}, sumsq: {amount.us**2:>18} }}"
        )
    if isinstance(amount, tuple):
        requests, size = amount
        return (
            f"  {name + ':':<16} {{ samples: {requests:>11}, unit: bytes, min: {0:>7}, "
            f"max: {size:>7}, sum: {size:>15} }}"
        )
    return f"  {name + ':':<16} {{ samples: {amount:>11}, unit:  reqs }}"


def _moment(moment: datetime | str) -> datetime:
    return at(moment) if isinstance(moment, str) else moment


def _epoch(moment: datetime | str) -> int:
    return int(_moment(moment).timestamp())


def _seconds(moment: datetime) -> str:
    whole = int((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
    return f"{whole}.{moment.microsecond:06d}"


def _local(moment: datetime | str | None) -> str:
    return "Unknown" if moment is None else f"{_moment(moment):%Y-%m-%dT%H:%M:%S}"
