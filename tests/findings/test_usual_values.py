"""Usual values of similar jobs: the groups of rules are the similar jobs of job pages."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from random import Random
from statistics import median

import numpy as np
import pytest

from ioportal.findings.evidence import subject_evidence, usual_values
from ioportal.findings.evidence.usual_values import MovingWindow
from ioportal.jobs import similar_jobs
from ioportal.jobs.analysis.anonymity import coarsened, hides_owners
from ioportal.jobs.analysis.usual import MIN_SAME_NAME
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster
from tests.web.rows import flag_job

pytestmark = pytest.mark.usefixtures("jobs")

DAY = timedelta(days=1)
FIRST = datetime(2024, 3, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def jobs(module_site):
    """Store jobs of 70 days: some without nodes, name or figures, some of poor quality."""
    draw = Random(7)  # noqa: S311  (no secret)
    cluster = Cluster.objects.get(name="anvil")
    stored = Job.objects.bulk_create(
        Job(
            cluster=cluster,
            batch_id=str(n),
            submitted_at=FIRST,
            started_at=FIRST + draw.random() * 70 * DAY,
            node_count=draw.choice([0, 1, 2, 3, 4, 7]),
            owner=draw.choice(["alice", "bob", "carol", "dave"]),
            name=draw.choice(["", "a,b\nc", "täglich", "täglich"]),
            quality="poor" if n % 9 == 0 else "good",
        )
        for n in range(1_400)
    )
    JobStatistics.objects.bulk_create(
        JobStatistics(
            job=job,
            computed_at=FIRST,
            quality=job.quality,
            metadata_operations_per_node=draw.choice([None, *[draw.randrange(10**6)] * 3]),
            read_bytes=draw.randrange(10**9),
        )
        for job in stored
    )
    for severity, job in zip([1, 2, 3] * 12, stored[::8], strict=False):
        flag_job(job, severity=severity)


def known_figures(jobs, metric):
    figures = JobStatistics.objects.filter(job__in=jobs).values_list(metric, flat=True)
    return [figure for figure in figures if figure is not None]


def hides_each_owner(jobs):
    """Return whether all owners may read figures of the jobs of the others."""
    number = Counter(jobs.values_list("owner", flat=True))
    others = [number - Counter({owner: number[owner]}) for owner in number]
    return all(
        hides_owners(rest.total(), len(rest), max(rest.values(), default=0), rest.total())
        for rest in others
    )


@pytest.mark.long
def test_rules_and_pages_have_the_same_similar_jobs():
    checked = list(Job.objects.filter(statistics__quality="good", node_count__gt=0)[::7])
    frame = subject_evidence.for_jobs({job.pk for job in checked}).frame

    sizes = set()
    for job in checked:
        row = frame.filter(subject=str(job.pk)).row(0, named=True)
        similar = similar_jobs.for_job(job)
        of_owner = similar.filter(owner=job.owner, name=job.name).count()
        is_named = similar.count() == of_owner >= MIN_SAME_NAME
        sizes.add(is_named)
        known = similar.filter(statistics__metadata_operations_per_node__isnull=False)
        if not (is_named or hides_each_owner(known)):
            assert row["usual_operations"] is None
            continue
        assert (row["similar_jobs_with_bytes"] or 0) == similar.count()
        assert not similar.filter(started_at__gte=job.started_at).exists()
        assert not similar.filter(flags__severity__gte=2).exists()
        group = known_figures(similar, "metadata_operations_per_node")
        usual = median(coarsened(np.array(group, dtype=float))) if group else None
        assert row["usual_operations"] == usual
    assert sizes == {True, False}  # groups by name, and by size class


def test_similar_jobs_do_not_depend_on_the_other_evaluated_jobs():
    ordered = Job.objects.filter(statistics__isnull=False).order_by("started_at")
    old, new = ordered.filter(node_count=1)[80], ordered.last()

    alone = subject_evidence.for_jobs({old.pk}).frame
    together = subject_evidence.for_jobs({old.pk, new.pk}).frame.filter(subject=str(old.pk))

    assert alone["similar_jobs"].item() > 0
    assert together.equals(alone)


def test_a_moving_window_equals_windows_of_single_days():
    moving = MovingWindow()
    group = ["cluster", "size_class", "user_and_name"]

    for days in (10, 11, 11, 25, 12, 40, 30, 69, 300):
        day = date(2024, 3, 1) + days * DAY
        single = MovingWindow().on(day).sort(group)
        assert moving.on(day).sort(group).equals(single)
        assert usual_values.cached(day).sort(group).equals(single)
