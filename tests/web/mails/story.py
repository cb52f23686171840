"""The crisis of the reports in minutes: a storm of 20 pilots, then 5 pilots at a quarter the rate.

Counters only, by minute, as in `tests.untraced`.
"""

from datetime import timedelta

from tests import loading, untraced
from tests.logs import Run, job_stats, sacct
from tests.repeats import repeat_jobs

PILOTS = [str(number) for number in range(100, 120)]
LATER = [str(number) for number in range(400, 405)]
OTHERS = "900"
STORM_MINUTES, LATER_MINUTES = range(1, 4), range(11, 14)
OPERATIONS, LATER_OPERATIONS = 700_000, 175_000  # a minute, of each pilot
_OTHERS_REQUESTS = 10_000
_STORM_ENDS, _LAST = 9, 15  # minutes
_PILOT = {"user": "hepprod", "name": "atlas_pilot"}


def ingest_storm(logs):
    """Ingest everything up to the end of the storm's jobs."""
    untraced.store_calm_reads()
    times = {"start": "12:00", "end": "12:09"}
    runs = [Run(job, nodes=f"n{n}", **_PILOT, **times) for n, job in enumerate(PILOTS, 1)]
    others = Run(OTHERS, user="bob", name="vasp", nodes="n20", start="12:00", end="12:16")
    _ingest(logs, range(_STORM_ENDS + 1), *runs, others)


def ingest_later(logs):
    """Ingest the later pilots."""
    times = {"start": "12:10", "end": "12:15"}
    runs = (Run(job, nodes=f"n{n}", **_PILOT, **times) for n, job in enumerate(LATER, 1))
    _ingest(logs, range(_STORM_ENDS + 1, _LAST + 1), *runs)


def repeat():
    """Repeat pilots of the storm on the days before it, and later pilots on the days after it."""
    repeat_jobs(PILOTS[:4], range(-7, 0))
    repeat_jobs(LATER[:4], range(1, 8))


def _ingest(logs, minutes, *runs):
    loading.ingest("sacct", logs(f"sacct-{minutes[0]}", sacct(*runs)), cluster="anvil")
    files = {"mds_stats": [], "job_stats": []}
    for minute, *texts in _reads():
        if minute in minutes:
            moment = untraced.START + timedelta(minutes=minute)
            for (form, paths), text in zip(files.items(), texts, strict=True):
                paths.append(logs(f"{form}-{minute}", text, read_at=moment))
    loading.ingest("mds_stats", *files["mds_stats"], server=untraced.SERVER)
    loading.ingest("job_stats", *files["job_stats"])


def _reads():
    """Yield the minute and the texts of service statistics and job_stats of each read."""
    counts = dict.fromkeys([OTHERS, *PILOTS], 0)
    requests, waited_us = untraced.calm_totals()
    for minute in range(_LAST + 1):
        if minute > _STORM_ENDS:
            counts |= dict.fromkeys(set(LATER) - counts.keys(), 0)
        more = {OTHERS: _OTHERS_REQUESTS}
        if minute in STORM_MINUTES:
            more |= dict.fromkeys(PILOTS, OPERATIONS)
        if minute in LATER_MINUTES:
            more |= dict.fromkeys(LATER, LATER_OPERATIONS)
        counts |= {job: counts[job] + count for job, count in more.items()}
        requests += sum(more.values())
        is_storm = minute in STORM_MINUTES
        waited_us += sum(more.values()) * (untraced.SLOW_US if is_storm else untraced.CALM_US)
        moment = untraced.START + timedelta(minutes=minute)
        entries = {job: {"open": count} for job, count in counts.items()}
        yield (
            minute,
            untraced.statistics(requests, waited_us),
            job_stats(untraced.MDT, entries, snapshot=moment),
        )
