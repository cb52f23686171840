import json
from dataclasses import asdict
from datetime import timedelta
from urllib.parse import urlencode

import numpy as np
import pytest
from django.core.cache import cache
from django.http import QueryDict
from django.utils import timezone

from ioportal.changes.comparisons import compare_arms, control_arm
from ioportal.jobs.analysis.comparison.results import Refusal, Verdict
from ioportal.jobs.models import JobStatistics
from ioportal.jobs.populations.population_values import Covariate
from ioportal.jobs.populations.selections import BATCH_JOBS, PANDA_JOBS, Selection, other_jobs
from ioportal.jobs.visibility import visibility_key
from ioportal.site.models import Filesystem, Server, ServerVersion
from tests.web.conftest import NOON

MIDDLE = NOON + timedelta(days=20, hours=-12)
PERIODS = [
    {"start": NOON - timedelta(hours=12), "end": MIDDLE},
    {"start": MIDDLE, "end": NOON + timedelta(days=40)},
]


def select(reader, **filters):
    query = urlencode({n: v if isinstance(v, str) else v.isoformat() for n, v in filters.items()})
    jobs = BATCH_JOBS.filter_set(QueryDict(query), queryset=BATCH_JOBS.visible_to(reader)).qs
    return Selection(BATCH_JOBS, query, visibility_key(reader), jobs)


def before_and_after(reader, **filters):
    return [select(reader, **filters, **period) for period in PERIODS]


@pytest.fixture
def weeks(new_jobs):
    """After 20 days, opens per job fall to a quarter for alice, and double for 25 other users."""
    rng = np.random.default_rng(1)
    jobs = []
    for day in range(40):
        after = day >= 20
        for number in range(12):
            noise = rng.lognormal(0, 0.2)
            jobs.append((day, {"opens": round(8_000 * noise / (4 if after else 1))}, {}))
            facts = {"owner": f"u{(day + number) % 25}", "project": "BIO3"}
            jobs.append((day, {"opens": round(3_000 * noise * (2 if after else 1))}, facts))
    return new_jobs(jobs)


@pytest.mark.parametrize(
    ("version", "since", "refusal"),
    [
        pytest.param("2.16.0", MIDDLE, Refusal.REDEFINED, id="between the arms"),
        pytest.param("2.16.0", MIDDLE + timedelta(days=3), Refusal.REDEFINED, id="within an arm"),
        pytest.param("2.15.5", MIDDLE, None, id="an upgrade with the same meaning"),
        pytest.param("2.16.0", NOON + timedelta(days=60), None, id="later"),
    ],
)
def test_opens_across_an_upgrade_that_counts_them_differently_are_refused(
    sam, weeks, version, since, refusal
):
    lake = Filesystem.objects.create(name="lake")
    server = Server.objects.create(name="mds1", filesystem=lake)
    for each, at in (("2.15.1", NOON - timedelta(days=99)), (version, since)):
        ServerVersion.objects.create(server=server, version=each, since=at)
    arms = before_and_after(sam, user="alice")
    control = [control_arm(sam, arm) for arm in arms]

    rows = compare_arms(arms, ["opens", "closes"], control=control).result.metrics

    assert rows["opens"].effects[0].refusal is refusal
    assert rows["opens"].controlled[0].refusal is refusal
    assert rows["closes"].effects[0].refusal is Refusal.NO_VALUES


def test_a_mitigation_is_measured_against_everyone_else(sam, weeks):
    arms = before_and_after(sam, user="alice")
    control = [control_arm(sam, arm) for arm in arms]
    row = compare_arms(arms, ["opens"], control=control).result.metrics["opens"]

    assert [figures.jobs for figures in (*row.arms, *row.control_arms)] == [240] * 4
    assert row.effects[0].estimate == pytest.approx(1 / 4, rel=0.1)
    assert row.control_effects[0].estimate == pytest.approx(2, rel=0.1)
    assert row.controlled[0].estimate == pytest.approx(1 / 8, rel=0.1)
    assert {e.verdict for e in (*row.effects, *row.control_effects, *row.controlled)} == {
        Verdict.CHANGED
    }


def test_a_job_belongs_to_the_period_of_its_start(sam, new_jobs):
    [job] = new_jobs([(19, {"opens": 1}, {})])
    job.ended_at = MIDDLE + timedelta(days=2)
    job.save()
    result = compare_arms(before_and_after(sam), ["opens"]).result

    assert [arm.jobs for arm in result.arms] == [1, 0]


def test_other_users_are_an_anonymous_control(charlie, sam, weeks):
    arms = before_and_after(sam)
    control = [control_arm(charlie, arm) for arm in arms]
    result = compare_arms(arms, ["opens"], control=control, covariate=Covariate.USER)
    figures = result.result.metrics["opens"].control_arms[0]
    summary = result.result.control_arms[0]

    assert all(selection.is_anonymous for selection in control)
    assert result.covariate is Covariate.NODES
    assert (summary.jobs, summary.users, summary.largest_user_share) == (480, None, None)
    assert (figures.mean, figures.quantiles[0], figures.quantiles[100]) == (None, None, None)
    assert all(float(f"{m:.2g}") == m for m in figures.daily.medians)
    [effect] = result.result.metrics["opens"].control_effects
    assert (effect.delta, effect.verdict) == (None, Verdict.CHANGED)


def test_control_figures_of_one_owner_in_the_compared_strata_are_hidden(charlie, sam, new_jobs):
    """Only jobs of one node are in both periods: of these, only bob's opens are known."""
    one_node = ["bob"] * 10 + ["carl", "dora"] * 2
    jobs = [
        (day, {"opens": 777_000 if owner == "bob" else None}, {"owner": owner})
        for day in (1, 21)
        for owner in one_node
    ]
    jobs += [(1, {"opens": 10}, {"owner": owner, "node_count": 4}) for owner in ["u", "v", "w"] * 4]
    new_jobs([(day, figures, {"project": "BIO3", **facts}) for day, figures, facts in jobs])
    arms = before_and_after(sam)
    control = [control_arm(charlie, arm) for arm in arms]
    row = compare_arms(arms, ["opens"], control=control).result.metrics["opens"]
    figures = row.control_arms[0]

    assert figures.jobs == 20
    assert (figures.median, figures.raw, figures.quantiles) == (None, None, ())
    assert row.control_effects[0].refusal is Refusal.HIDDEN


def test_staff_have_all_other_jobs_as_control(sam, weeks):
    [arm, _] = before_and_after(sam, user="alice", queue="batch")
    control = control_arm(sam, arm)

    assert set(QueryDict(control.filters)) == {"start", "end"}
    assert {job.owner for job in control.jobs} == {f"u{n}" for n in range(25)}
    assert control.key != select(sam, **PERIODS[0]).key


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        pytest.param("aaabbbccc", None, id="nine jobs"),
        pytest.param("aaaabbbccc", 10, id="ten jobs"),
        pytest.param("aaaaaaabbbbbbb", None, id="two owners"),
        pytest.param("a" * 17 + "bcd", 20, id="85 %"),
        pytest.param("a" * 18 + "bcd", None, id="dominant owner"),
    ],
)
def test_small_groups_of_other_users_are_hidden(charlie, new_jobs, owners, expected):
    new_jobs([(day, {"opens": 777}, {"owner": owner}) for day, owner in enumerate(owners)])
    new_jobs([(day, {"opens": 5}, {"owner": "charlie"}) for day in range(15)])
    # A class with a single job of another user has no influence.
    new_jobs([(3, {"opens": 10**9}, {"owner": "dave", "node_count": 1_000})])
    arms = [
        select(charlie, **PERIODS[0]),
        other_jobs(charlie, BATCH_JOBS, select(charlie, **PERIODS[0]).filters),
    ]
    comparison = compare_arms(arms, ["opens"])
    row = comparison.result.metrics["opens"]
    text = json.dumps(asdict(row), default=str)

    assert comparison.result.arms[1].jobs == (expected or 0)
    assert ("777" in text, "1000000000" in text) == (False, False)
    is_large = expected == 20  # at least ten on either side of the median
    assert (row.arms[1].median is None) == (not is_large)
    assert row.effects[0].refusal is (None if is_large else Refusal.HIDDEN)
    assert "512" not in json.dumps(comparison.labels)


def test_hidden_values_reveal_two_digits_at_most(charlie, new_jobs):
    """Results are equal for all values of a hidden job with the same rounded digits."""
    new_jobs([(n % 40, {"opens": 1_203_000}, {"owner": "charlie"}) for n in range(80)])
    hidden = new_jobs(
        [
            (n % 40, {"opens": 1_170_000 + 1_500 * (n % 41)}, {"owner": "bcd"[n % 3]})
            for n in range(400)
        ]
    )
    arms = before_and_after(charlie)
    control = [control_arm(charlie, arm) for arm in arms]
    results = []
    for value in (1_150_001, 1_203_001, 1_249_999, 1_250_001):
        JobStatistics.objects.filter(job=hidden[20]).update(opens=value)
        cache.clear()
        results.append(
            repr(compare_arms([*arms, *control][::3], ["opens"]))
            + repr(compare_arms(arms, ["opens"], control=control))
        )

    assert results[0] == results[1] == results[2]


def test_figures_of_batch_jobs_with_panda_jobs_are_hidden(charlie, new_jobs, put_inside):
    """A few batch jobs may hold hundreds of PanDA jobs."""
    for number, job in enumerate(
        new_jobs([(d, {"opens": 7}, {"owner": "bob"}) for d in range(12)])
    ):
        put_inside(
            job,
            *range(100 * number, 100 * number + 5),
            started_at=job.started_at,
            ended_at=job.ended_at,
            user="bcd"[number % 3],
        )
    one = other_jobs(charlie, PANDA_JOBS, "")
    rows = compare_arms([one, one], ["panda_duration_s", "opens"]).result.metrics

    assert rows["panda_duration_s"].arms[0].median == 3_600
    assert rows["panda_duration_s"].arms[0].daily.days.size == 0
    assert (rows["opens"].arms[0].jobs, rows["opens"].arms[0].median) == (0, None)
    assert rows["opens"].effects[0].refusal is Refusal.HIDDEN


def test_results_are_cached_until_statistics_change(sam, weeks, django_assert_num_queries):
    cache.clear()
    arms = before_and_after(sam, user="alice")
    with django_assert_num_queries(10):  # two arms, two versions, and six of the cache
        first = compare_arms(arms, ["opens"])
    with django_assert_num_queries(3):  # the cache and two versions
        assert repr(compare_arms(arms, ["opens"])) == repr(first)
    JobStatistics.objects.update(opens=3, computed_at=timezone.now())
    cache.clear()

    assert compare_arms(arms, ["opens"]).result.metrics["opens"].arms[0].median == 3
