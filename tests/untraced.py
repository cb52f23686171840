"""A metadata server without a trace: its job_stats and service statistics, by minute.

After two calm hours, a job storms for three minutes; three minutes later the jobs of an array do.
Another job waits.
"""

from datetime import timedelta

from ioportal.site.models import Counter, Server, Service
from ioportal.telemetry.models import Coverage, ServiceSnapshot
from tests import loading
from tests.logs import Run, at, job_stats, sacct

MDT, SERVER = "lake-MDT0000", "mds1"
STORM, BYSTANDER, ARRAY = "100", "200", [str(number) for number in range(300, 310)]
LATER = ["400", "401", "402"]  # jobs of the storm's user and name
START, MINUTES, CALM_MINUTES = at("12:00"), 9, 6
STORMERS = {1: [STORM], 2: [STORM], 3: [STORM], 7: ARRAY, 8: ARRAY, 9: ARRAY}  # by minute
CALM_US, SLOW_US = 200, 20_200  # mean wait of a request
CALM_REQUESTS, STORM_REQUESTS = 600, 60_000  # a minute: of each job, of all stormers together

_CALM_READS = 60
_MINUTE = timedelta(minutes=1)


def ingest(logs, between=lambda: None, cleared_in=None):
    """Ingest everything; `between` the reads of both kinds, run a function.

    In the minute `cleared_in`, the counters of jobs are cleared.
    """
    store_calm_reads()
    loading.ingest("sacct", logs("sacct", accounting()), cluster="anvil")
    _ingest_reads(logs, reads(cleared_in), between)


def ingest_later(logs, requests):
    """Ingest the jobs `LATER` of alice, which together send requests a minute.

    The jobs of bob and dave run on, and wait.
    """
    start, end = "12:10", "12:15"
    jobs = sacct(
        *_waiting(end),
        *(
            Run(number, user="alice", name="storm", nodes=f"n{place}", start=start, end=end)
            for place, number in enumerate(LATER, start=20)
        ),
    )
    loading.ingest("sacct", logs("sacct-later", jobs), cluster="anvil")
    last = START + MINUTES * _MINUTE
    _ingest_reads(logs, (read for read in reads(later=requests) if read[0] > last))


def _ingest_reads(logs, all_reads, between=lambda: None):
    files = {"job_stats": [], "mds_stats": []}
    for moment, *texts in all_reads:
        for (form, written), text in zip(files.items(), texts, strict=True):
            written.append(logs(f"{form}-{moment:%H%M}", text, read_at=moment))
    loading.ingest("mds_stats", *files["mds_stats"], server=SERVER)
    between()
    loading.ingest("job_stats", *files["job_stats"])


def accounting():
    """Return the accounting of the jobs of alice (storm), bob and dave (array)."""
    end = "12:09"
    storm = Run(STORM, user="alice", name="storm", nodes="n1", start="12:00", end=end)
    return sacct(storm, *_waiting(end))


def _waiting(end):
    """Yield the runs of bob and dave, up to a time."""
    common = {"start": "12:00", "end": end}
    yield Run(BYSTANDER, user="bob", project="BIO1", name="vasp", nodes="n2", **common)
    for place, number in enumerate(ARRAY, start=3):
        yield Run(number, user="dave", name=f"task-{number}", nodes=f"n{place}", **common)


def store_calm_reads():
    """Store the reads of the service statistics before the start, which give the baseline."""
    server = Server.objects.get(name=SERVER)
    service, _ = Service.objects.get_or_create(name="mdt")
    wait, _ = Counter.objects.get_or_create(name="req_waittime")
    times = [START - number * 2 * _MINUTE for number in range(1, _CALM_READS + 1)]
    requests = [(_CALM_READS - number) * 1_000 for number in range(1, _CALM_READS + 1)]
    ServiceSnapshot.objects.bulk_create(
        ServiceSnapshot(
            taken_at=taken_at, segment_id=1, server_id=server.pk, service_id=service.pk,
            counter_id=wait.pk, unit=ServiceSnapshot.Unit.MICROSECONDS, samples=samples, min=0,
            max=0, sum=samples * CALM_US,
        )
        for taken_at, samples in zip(times, requests, strict=True)
    )  # fmt: skip
    Coverage.objects.bulk_create(
        Coverage(source="mds_stats", source_id=server.pk, start=time, end=time, segment_id=1)
        for time in times
    )


def calm_totals():
    """Return the requests before the start, and their total wait in microseconds."""
    return _CALM_READS * 1_000, _CALM_READS * 1_000 * CALM_US


def reads(cleared_in=None, later=0):
    """Yield the time and the texts of job_stats and of service statistics of each read."""
    counts = dict.fromkeys((STORM, BYSTANDER, *ARRAY), 0)
    requests, waited_us = calm_totals()
    for minute in range(MINUTES + 1 + (CALM_MINUTES if later else 0)):
        stormers, total = STORMERS.get(minute, []), STORM_REQUESTS
        if minute > MINUTES:
            stormers, total = LATER, later
            counts |= dict.fromkeys(set(LATER) - set(counts), 0)
        if minute == cleared_in:
            counts = dict.fromkeys(counts, 0)
        for job in counts:
            more = total // len(stormers) if job in stormers else CALM_REQUESTS
            counts[job] += more
            requests += more
            waited_us += more * (SLOW_US if stormers and total >= STORM_REQUESTS else CALM_US)
        moment = START + minute * _MINUTE
        entries = {job: {"open": count} for job, count in counts.items()}
        yield moment, job_stats(MDT, entries, snapshot=moment), statistics(requests, waited_us)


def statistics(requests, waited_us):
    """Return the output of the service statistics."""
    return (
        "mds.MDS.mdt.stats=\n"
        f"req_waittime              {requests} samples [usec] 1 1 {waited_us} 1\n"
        f"ldlm_ibits_enqueue        {requests} samples [reqs] 1 1 {requests} {requests}\n"
    )
