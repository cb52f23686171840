"""What other jobs usually do, in the month before a moment."""

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Context
from math import log
from random import Random
from statistics import median

import pytest

from ioportal.flags import evidence, others
from ioportal.flags.others import NAMESAKES, PEERS, Month
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster

pytestmark = pytest.mark.usefixtures("site")

DAY, MONTH = timedelta(days=1), timedelta(days=30)
_TWO_DIGITS = Context(prec=2, rounding=ROUND_HALF_UP)
FIRST = datetime(2024, 3, 1, tzinfo=UTC)


@pytest.fixture
def jobs():
    """Jobs of three months: start, nodes, name, metadata operations on a node, bytes read."""
    draw = Random(7)  # noqa: S311  (no secret)
    told = [
        (
            FIRST + draw.random() * 3 * MONTH,
            draw.choice([0, 1, 2, 3, 4, 7, 8, 1024]),
            draw.choice(["", "a,b\nc", "täglich", "x" * 200]),
            draw.choice([None, draw.randrange(10**6)]),
            draw.randrange(10**9),
        )
        for _ in range(300)
    ]
    cluster = Cluster.objects.get(name="anvil")
    made = Job.objects.bulk_create(
        Job(
            cluster=cluster,
            batch_id=str(n),
            submitted_at=start,
            started_at=start,
            node_count=nodes,
            name=name,
        )
        for n, (start, nodes, name, *_) in enumerate(told)
    )
    JobStatistics.objects.bulk_create(
        JobStatistics(
            job=job,
            computed_at=start,
            quality="poor" if n % 9 == 0 else "good",
            metadata_operations_per_node=operations,
            read_bytes=read,
        )
        for n, (job, (start, _, _, operations, read)) in enumerate(zip(made, told, strict=True))
    )
    return [one for n, one in enumerate(told) if n % 9]


def coarse(value):
    """The owner of a flag sees what is usual: two digits of single jobs."""
    return float(_TWO_DIGITS.create_decimal(value))


def month_before(jobs, moment):
    return [one for one in jobs if moment - MONTH <= one[0] < moment]


def test_peers_are_jobs_of_half_to_twice_as_many_nodes(jobs):
    by_size = {}
    for _, nodes, _, operations, _ in month_before(jobs, FIRST + MONTH):
        if nodes and operations is not None:
            by_size.setdefault(nodes.bit_length() - 1, []).append(log(1 + coarse(operations)))

    found = Month(PEERS).before(FIRST + MONTH)

    assert set(by_size) == {0, 1, 2, 3, 10}
    assert {size: tuple(told) for _, size, *told in found.rows()} == {
        size: (
            len(figures),
            pytest.approx(median(figures)),
            pytest.approx(median(abs(one - median(figures)) for one in figures)),
        )
        for size, figures in by_size.items()
    }


def test_namesakes_are_jobs_of_the_same_name_if_they_have_one(jobs):
    by_name = {}
    for _, _, name, _, read in month_before(jobs, FIRST + MONTH):
        by_name.setdefault(name, []).append(coarse(read))
    del by_name[""]

    found = Month(NAMESAKES).before(FIRST + MONTH)

    told = sorted((count, usual) for _, _, count, usual in found.rows())
    assert told == sorted((len(read), median(read)) for read in by_name.values())


def test_peers_of_a_job_are_the_same_whoever_is_judged_beside_it(jobs):
    known = Job.objects.filter(statistics__isnull=False).order_by("started_at")
    old, new = known.filter(node_count=1)[40], known.last()

    alone = evidence.for_jobs({old.pk}).frame
    together = evidence.for_jobs({old.pk, new.pk}).frame.filter(subject=str(old.pk))

    assert alone["peers"].item() > 0
    assert together.equals(alone)


@pytest.mark.parametrize("kind", others.KINDS)
def test_a_month_that_moves_on_tells_what_is_told_of_it_at_once(jobs, kind):
    moving = Month(kind)

    for days in (30, 30, 31, 45, 50, 89, 200):
        moment = FIRST + days * DAY
        columns = ["cluster", kind.alike]
        at_once = Month(kind).before(moment).sort(columns)
        assert moving.before(moment).sort(columns).equals(at_once)
        assert others.kept(kind, moment).sort(columns).equals(at_once)
