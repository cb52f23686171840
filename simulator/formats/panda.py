"""PanDA job records as returned by BigPanDA's pages with ``?json``."""

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from simulator.batch.payloads import FAILED_WITH, Payloads
from simulator.clock import HOUR_S, MINUTE_S

SITE = "ORNL_Titan_MCORE"
_RELEASE = "Atlas-19.2.4"


def records(payloads: Payloads) -> Iterator[tuple[int, str]]:
    """Yield the end and the record of each PanDA job of one batch job."""
    job = payloads.job
    # Templates for the shared and the individual part: there are many records.
    common = json.dumps(
        {
            "batchid": f"{job.number}",
            "computingsite": SITE,
            "computingelement": SITE,
            "cloud": "US",
            "vo": "atlas",
            "jeditaskid": payloads.task,
            "taskid": payloads.task,
            "reqid": payloads.task,
            "produsername": "ATLAS production",
            "prodsourcelabel": "managed",
            "processingtype": "simul",
            "transformation": "Sim_tf.py",
            "atlasrelease": _RELEASE,
            "attemptnr": 1,
            "corecount": payloads.cores,
            "cpuconsumptionunit": "s+AMD Opteron(TM) Processor 6274",
            "creationtime": _stamp(payloads.created),
            "exeerrorcode": 0,
            "taskbuffererrorcode": 0,
            "transfertype": None,  # input is copied, not read remotely
        }
    )[1:]
    columns = (
        payloads.panda_id,
        payloads.started,
        payloads.ended,
        payloads.node,
        payloads.failed,
        payloads.cpu_s,
        payloads.validation_s,
        payloads.copy_in_s,
        payloads.copy_out_s,
        payloads.events,
        payloads.max_pss_kb,
        payloads.max_swap_kb,
    )
    for values in zip(*(column.tolist() for column in columns), strict=True):
        panda_id, started, ended, node, failed, cpu_s, validation_s = values[:7]
        copy_in_s, copy_out_s, events, max_pss_kb, max_swap_kb = values[7:]
        run_s = max(ended - started - validation_s - copy_in_s - copy_out_s, 0)
        record = (
            f'{{"pandaid": {panda_id}, "jobstatus": "{"failed" if failed else "finished"}", '
            f'"modificationhost": "nid{node:05d}", "starttime": "{_stamp(started)}", '
            f'"endtime": "{_stamp(ended)}", "modificationtime": "{_stamp(ended + 90)}", '
            f'"duration": "{_duration(ended - started)}", "durationsec": {ended - started}, '
            f'"cpuconsumptiontime": {cpu_s}, "piloterrorcode": {FAILED_WITH if failed else 0}, '
            f'"transexitcode": "{int(bool(failed))}", "nevents": {events}, '
            f'"maxpss": {max_pss_kb}, "maxswap": {max_swap_kb}, '
            f'"pilottiming": "0|{copy_in_s}|{run_s}|{copy_out_s}|{validation_s}", {common}'
        )
        yield ended, record


def text(lines: Iterable[str]) -> str:
    """Return a file of records, one per line."""
    return '{"jobs": [\n' + ",\n".join(lines) + "\n]}\n"


def _stamp(epoch_s: int) -> str:
    return datetime.fromtimestamp(epoch_s, UTC).isoformat()


def _duration(seconds: int) -> str:
    return f"{seconds // HOUR_S}:{seconds // MINUTE_S % 60:02d}:{seconds % 60:02d}"
