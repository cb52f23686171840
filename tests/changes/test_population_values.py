from datetime import UTC, date, datetime

import numpy as np
import pytest
from django.utils import timezone

from ioportal.jobs.models import Job, WorkloadJob
from ioportal.jobs.populations.population_values import (
    Covariate,
    batch_job_values,
    panda_job_values,
    size_label,
)

EPOCH = date(1970, 1, 1)


def by_batch_job(values, column):
    """Return the values of a column by primary key."""
    return dict(zip(values.batch_jobs.tolist(), column.tolist(), strict=True))


def test_columns_have_the_same_order_of_jobs(new_jobs):
    rng = np.random.default_rng(1)
    jobs = new_jobs(
        [
            (day, {"opens": 2**40 + n, "duration_s": n / 3 if n % 5 else None},
             {"owner": f"u{n % 3}", "node_count": n})
            for n, day in enumerate(rng.integers(0, 40, 300).tolist())
        ]
    )  # fmt: skip
    values = batch_job_values(Job.objects.all(), ["opens", "duration_s"])
    opens, durations, days, strata, users = (
        by_batch_job(values, column)
        for column in (
            values.values["opens"], values.values["duration_s"], values.days, values.strata,
            values.users,
        )
    )  # fmt: skip

    for n, job in enumerate(jobs):
        assert opens[job.pk] == 2**40 + n
        assert durations[job.pk] == pytest.approx(n / 3 if n % 5 else np.nan, nan_ok=True)
        assert days[job.pk] == (job.started_at.date() - EPOCH).days
        assert values.labels[strata[job.pk]] == (size_label(n.bit_length() - 1) if n else "unknown")
        assert users[job.pk] == users[jobs[n % 3].pk]
    assert len(set(users.values())) == 3


def test_days_are_local(new_job):
    """Days of New York begin at 4 h UTC in summer and at 5 h in winter."""
    for start, day in (
        (datetime(2017, 7, 2, 3, 59, tzinfo=UTC), date(2017, 7, 1)),
        (datetime(2017, 7, 2, 4, 0, tzinfo=UTC), date(2017, 7, 2)),
        (datetime(2017, 12, 2, 4, 59, tzinfo=UTC), date(2017, 12, 1)),
    ):
        job = new_job({}, started_at=start)
        with timezone.override("America/New_York"):
            values = batch_job_values(Job.objects.filter(pk=job.pk), [])
        assert values.days.tolist() == [(day - EPOCH).days]


@pytest.mark.parametrize(
    ("covariate", "expected"),
    [
        (Covariate.NODES, {"2\u20133", "4\u20137"}),
        (Covariate.QUEUE, {"batch", "deb'ug\x1f"}),
        (Covariate.USER, {"alice", "bob"}),
        (Covariate.APPLICATION, {"relax", "scan_*_post"}),
        (Covariate.NONE, {"all"}),
    ],
)
def test_jobs_are_divided_by_a_covariate(new_jobs, covariate, expected):
    other = {"owner": "bob", "queue": "deb'ug\x1f", "name": "scan_7_post", "node_count": 5}
    jobs = new_jobs([(0, {}, {}), (1, {}, other), (2, {}, {})])
    values = batch_job_values(Job.objects.all(), [], covariate)
    labels = {
        pk: values.labels[stratum] for pk, stratum in by_batch_job(values, values.strata).items()
    }

    assert set(values.labels.values()) == expected
    assert labels[jobs[0].pk] == labels[jobs[2].pk]
    assert len(set(labels.values())) == len(expected)


def test_jobs_that_have_not_started_or_have_no_statistics(new_job):
    new_job(None)
    new_job(None, started_at=None, ended_at=None)
    values = batch_job_values(Job.objects.all(), ["opens"])

    assert values.days.size == 1
    assert np.isnan(values.values["opens"]).tolist() == [True]


def test_panda_jobs_have_values_of_their_own_and_of_their_batch_job(new_job, put_inside):
    job = new_job({"opens": 5}, node_count=9)
    put_inside(job, 1, 2, cpu_s=480)
    put_inside(new_job({}), 3)
    WorkloadJob.objects.filter(panda_id=3).update(batch_job=None)
    values = panda_job_values(WorkloadJob.objects.all(), ["opens", "panda_cpu_s"])

    assert sorted(values.values["panda_cpu_s"].tolist()) == [480, 480, 4_800]
    assert np.sort(values.values["opens"]).tolist() == pytest.approx([5, 5, np.nan], nan_ok=True)
    assert sorted(values.batch_jobs.tolist()) == [0, job.pk, job.pk]
    assert sorted(values.labels.values()) == ["8\u201315", "unknown"]
