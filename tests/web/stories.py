"""Log files of a heavy job for the tests of pages, ingested as an administrator does."""

from datetime import timedelta
from functools import partial

from ioportal.jobs import statistics
from ioportal.jobs.models import Job
from ioportal.telemetry.stage_runs import drain
from tests import loading
from tests.collectors.lustre.counters import FIXTURES
from tests.conftest import SITE
from tests.logs import CLOSE, Run, at, job_stats, rpc, sacct

READS = {  # of lake-MDT0000: opens of the job so far; None: not listed yet
    "11:50": None,
    "12:00": None,
    "12:10": 60_000,
    "12:20": 66_000,
    "12:50": 84_000,
    "13:00": 90_000,
    "13:10": 90_000,
}
TRACED = 1_000  # LDLM_ENQUEUE RPCs, every ten milliseconds from 12:05 on


def heavy_job(folder):
    """Ingest the logs of job 3567126 of alice, on n1 and n2 from 12:00 to 13:00.

    Its MDT was read every ten minutes, except between 12:20 and 12:50; OST0000 was first read at
    12:10, with earlier counts; mds1 was traced for ten seconds.
    """
    loading.register(folder, SITE)
    write = partial(loading.write_log, folder)
    runs = sacct(Run("3567126", nodes="n[1-2]", node_count=2, name="<b>relax</b>"))
    loading.ingest("sacct", write("sacct-1.log", runs), cluster="anvil")
    reads = []
    for clock, opens in READS.items():
        entries = {"login1.bash": {"open": 1}}
        if opens:
            entries["3567126"] = {"open": opens, "close": opens // 3, "getattr": 300}
        text = job_stats("lake-MDT0000", entries)
        reads.append(write(f"mdt-{clock}.log", text, read_at=at(clock)))
    for clock, size in {"12:10": 4_000_000, "12:20": 10_000_000}.items():
        entries = {"3567126": {"read_bytes": (size // 1_000_000, size)}}
        text = job_stats("lake-OST0000", entries)
        reads.append(write(f"ost-{clock}.log", text, read_at=at(clock)))
    loading.ingest("job_stats", *reads)
    begin = at("12:05")
    trace = [
        rpc(begin + timedelta(milliseconds=10 * number), f"{number % 2 + 1}@gni", us=(30, 40))
        for number in range(TRACED)
    ]
    trace.append(rpc(begin + timedelta(seconds=10), "1@gni", CLOSE, us=(20, 90)))
    trace.append("00000100:00100000:7.0:1499256000.0:0:1:0:(x) Handled RPC \x1b[31m<b>no</b> shape")
    loading.ingest("rpctrace", write("trace.log", *trace), server="mds1")
    drain(statistics.refresh_statistics)
    return Job.objects.get(batch_id="3567126")


def read_services():
    """Ingest two reads of the services of mds1."""
    for minute, name in enumerate(("get_param_2.12_a", "get_param_2.12_b")):
        path = FIXTURES / "lustre_service_stats" / f"{name}.txt"
        loading.ingest("mds_stats", path, server="mds1", at=f"2017-07-05T12:0{minute}:00Z")


def ingest(folder, form, text, **options):
    """Write a log file into a folder and ingest it."""
    path = loading.write_log(folder, f"{form}-{len(list(folder.iterdir()))}.log", text)
    return loading.ingest(form, path, **options)
