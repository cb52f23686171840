"""Pending and running jobs: ``squeue`` with bars between cells, or ``--json``.

Source: docs/formats.md, "squeue"; src/squeue/print.c of Slurm.
"""

from collections.abc import Iterator
from zoneinfo import ZoneInfo

from collectors.batch import sacct, slurm, slurm_json
from collectors.batch.records import Row, is_json
from collectors.batch.values import Unreadable
from collectors.format import Format
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import JOBS

# sacct's names of squeue's columns. %i and %A have the same header: the second is the raw number.
_NAMES = {
    "second jobid": "jobidraw",
    "name": "jobname",
    "time": "elapsed",
    "time_limit": "timelimit",
    "submit_time": "submit",
    "start_time": "start",
    "end_time": "end",
    "nodes": "nnodes",
    "cpus": "ncpus",
    "nodelist(reason)": "nodelist",
}
# --format='%i|%A|%P|%a|%u|%V|%S|%T|%M|%l|%D|%C|%N|%j'
COLUMNS = (
    "jobid",
    "jobidraw",
    "partition",
    "account",
    "user",
    "submit",
    "start",
    "state",
    "elapsed",
    "timelimit",
    "nnodes",
    "ncpus",
    "nodelist",
    "jobname",
)


def parse(source: Source, zone: ZoneInfo) -> Iterator[Parsed]:
    """Read the jobs in a queue.

    Args:
        source: the output. A header line names the columns; the default is `COLUMNS`.
        zone: the cluster's, for times without a UTC offset.

    Yields:
        Parts with a frame of `tables.JOBS`.

    Raises:
        SourceUnavailable: the source cannot be read to its end.

    Source: docs/formats.md, "squeue".
    """
    if is_json(source):
        return slurm_json.parse(source, zone)
    layout = sacct.Layout(COLUMNS, tool="squeue with '|' between its columns", names=_NAMES)
    return sacct.read(source, layout, lambda cells: _row(cells, zone))


def _row(cells: dict[str, str], zone: ZoneInfo) -> Row:
    if "state" not in cells:  # times are predictions until the job has started
        raise Unreadable("no column STATE (%T): the meaning of the times depends on it")
    nodes = cells.get("nodelist", "")
    # %R of a pending job is the reason in parentheses.
    return slurm.row_of({**cells, "nodelist": "" if nodes.startswith("(") else nodes}, zone)


SQUEUE = Format(
    name="squeue",
    label="Slurm squeue",
    table=JOBS,
    parse=lambda source, origin: parse(source, origin.zone),
    scopes=("cluster",),
    options=("cluster",),
    agent_inputs=("command",),
    has_local_times=True,
    is_queue_view=True,
)
