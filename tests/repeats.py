"""The same jobs on other days: what a comparison of days needs."""

from datetime import timedelta

from ioportal.jobs.models import Job

WEEK_BEFORE, WEEK_AFTER = range(-7, 0), range(1, 8)  # days
_TIMES = ("submitted_at", "started_at", "ended_at")
_APART = timedelta(minutes=10)


def repeat_jobs(batch_ids, days, daily=1):
    """Store copies of jobs and their statistics, earlier or later by some numbers of days.

    Each has `daily` copies a day.
    """
    originals = Job.objects.filter(batch_id__in=batch_ids).order_by("batch_id", "pk")
    for job in originals.distinct("batch_id").select_related("statistics"):
        statistics, times = job.statistics, [getattr(job, name) for name in _TIMES]
        for shift in (timedelta(days=day) + n * _APART for day in days for n in range(daily)):
            for name, time in zip(_TIMES, times, strict=True):
                setattr(job, name, time + shift)
            job.pk = None
            job.save(force_insert=True)
            statistics.job = job
            statistics.save(force_insert=True)
