"""The year of the story: its week, its steps and its sizes, from jobs alone."""

import json
from collections import Counter, defaultdict
from statistics import mean, median

import numpy as np
import pytest

from simulator import centre, story
from simulator.batch import payloads, week
from simulator.batch.jobs import Kind
from simulator.clock import DAY_S, local, utc_name
from simulator.formats import panda
from simulator.plan import Plan
from simulator.randomness import stream
from simulator.servers import nfs

pytestmark = pytest.mark.long

STEPS = {step.key: step for step in story.STEPS}
# Steps whose sizes follow from the jobs before and after them.
COMPARED = [
    (step.key, effect.metric)
    for step in story.STEPS
    for effect in step.effects
    if effect.metric in {"duration_s", "opens_per_node", "open_close_ratio"}
]


@pytest.fixture(scope="module")
def year():
    return centre.happen(Plan())


@pytest.fixture(scope="module")
def pilots(year):
    return [job for job in year.jobs if job.era and job.started and job.ended]


@pytest.fixture(scope="module")
def inside(year):
    return payloads.of_jobs(year.jobs, stream(1, "payloads"))


def metric(job, name):
    if name == "duration_s":
        return job.ended - job.started
    if name == "opens_per_node":
        return job.demand.opens / job.node_count
    return job.demand.opens / job.demand.closes


def neighbours(pilots, step):
    """Return the pilots of the eras before and after a step."""
    after = story.era_at(step.at)
    before = story.ERAS[story.ERAS.index(after) - 1]
    if after is before or after.since != step.at:
        middle = [job for job in pilots if job.era is after]
        return (
            [job for job in middle if job.submitted < step.at],
            [job for job in middle if job.submitted >= step.at],
        )
    return [job for job in pilots if job.era is before], [job for job in pilots if job.era is after]


@pytest.mark.parametrize(("key", "name"), COMPARED)
def test_a_step_has_the_size_in_the_truth(pilots, key, name):
    step = STEPS[key]
    (effect,) = (effect for effect in step.effects if effect.metric == name)
    before, after = neighbours(pilots, step)
    if key == "one-stripe":  # the single pilots after the crisis are not representative
        before = [job for job in pilots if job.era.since == story.RESUMED]

    values = [median(metric(job, name) for job in some) for some in (before, after)]

    assert values == pytest.approx([effect.before, effect.after], rel=0.12)
    assert values[1] / values[0] == pytest.approx(effect.ratio, rel=0.12)


def test_the_clean_up_and_the_search_path_reduce_operations_by_four():
    before, after = story.era_named("SQLite on RAM disk"), story.era_named("search path fixed")

    assert before.operations.opens / after.operations.opens == pytest.approx(4, rel=0.01)


def test_moving_sqlite_changes_nothing(pilots):
    opens = defaultdict(list)
    for job in pilots:
        opens[job.era.name].append(metric(job, "opens_per_node"))

    assert mean(opens["SQLite on RAM disk"]) == pytest.approx(mean(opens["one stripe"]), rel=0.02)


def test_crisis_pilots_do_over_two_million_metadata_operations(year):
    crisis = [
        source.mdt_counts(np.array([source.end]))[0][:14].sum()
        for job, source in year.of_job.items()
        if job.era and job.era.since == story.RESUMED and job.node_count == 300
    ]

    assert max(crisis) > 2_000_000


@pytest.mark.parametrize(
    ("day", "concurrent"),
    [
        pytest.param((2017, 3, 7), 5, id="after the move"),
        pytest.param((2017, 5, 16), 20, id="in May"),
        pytest.param((2017, 8, 8), 5, id="after the crisis"),
        pytest.param((2017, 9, 26), 15, id="after the green light"),
    ],
)
def test_pilots_fill_their_slots(pilots, day, concurrent):
    start = local(*day)
    today = [job for job in pilots if start <= job.started < start + DAY_S]

    peak = max(
        sum(job.started <= moment < job.ended for job in today)
        for moment in (pilot.started for pilot in today)
    )
    assert concurrent - 1 <= peak <= concurrent


def test_a_batch_job_holds_15_to_350_panda_jobs(inside):
    counts = [len(mine.panda_id) for mine in inside]

    assert min(counts) == 15
    assert max(counts) == 350
    assert 150_000 < sum(counts) <= 300_000
    large = [mine for mine in inside if mine.job.node_count >= 15]
    assert all(len(mine.panda_id) == mine.job.node_count for mine in large)


def test_panda_jobs_run_inside_their_batch_job(inside):
    ids = np.concatenate([mine.panda_id for mine in inside])

    assert (np.diff(ids) > 0).all()
    for mine in inside:
        assert mine.job.started <= mine.started.min()
        assert mine.ended.max() <= mine.job.ended
        assert (mine.started < mine.ended).all()
        assert mine.job.started <= local(2017, 8, 1) or mine.panda_id[0] > 3_558_462_700


def test_validation_takes_40_s_instead_of_1320(inside):
    validation = defaultdict(list)
    for mine in inside:
        validation[mine.job.era.name].append(mine.validation_s.mean())

    assert mean(validation["software on Lustre"]) == pytest.approx(1_320, rel=0.03)
    assert mean(validation["software on NFS"]) == pytest.approx(40, rel=0.03)


def test_copies_from_the_ram_disk_take_the_reported_times(inside):
    moved = [batch for batch in inside if batch.job.submitted >= story.WORK_ON_RAM_DISK]
    times = [
        list(map(int, json.loads(record)["pilottiming"].split("|")))
        for batch in moved
        for _, record in panda.records(batch)
        if json.loads(record)["jobstatus"] == "finished"
    ]
    copy_in_s, copy_out_s = np.array(times).T[[1, 3]]

    assert (copy_in_s.min(), copy_in_s.max()) == (10, 18)
    assert np.median(copy_in_s) == 14
    assert copy_out_s.mean() == pytest.approx(0.8, abs=0.02)


def test_the_load_moves_to_the_nfs_server(inside, tmp_path):
    nfs.write(Plan(), inside, tmp_path)

    def calls_on(*day):
        days = (local(*day) - Plan().start) // DAY_S
        reads = [tmp_path / f"{utc_name(Plan().start + n * DAY_S)}.txt" for n in (days, days + 1)]
        before, after = (int(path.read_text().split("\nrpc ")[1].split()[0]) for path in reads)
        return after - before

    assert calls_on(2016, 10, 20) < 6_000_000
    assert calls_on(2016, 11, 22) > 3 * calls_on(2016, 10, 20)
    assert calls_on(2017, 5, 16) > 2 * calls_on(2016, 11, 22)


def test_the_reported_jobs_have_their_numbers_and_times(year):
    ran = {job.number: job for job in year.jobs}

    assert {
        (number, ran[number].started, ran[number].ended, ran[number].node_count)
        for number in (3_567_126, 3_570_319, 3_573_737)
    } == {
        (3_567_126, local(2017, 8, 15, "23:56:11"), local(2017, 8, 16, "01:01:16"), 350),
        (3_570_319, local(2017, 8, 18, "01:46:04"), local(2017, 8, 18, "02:58:22"), 350),
        (3_573_737, local(2017, 8, 21, "01:02:42"), local(2017, 8, 21, "02:16:04"), 350),
    }
    numbers = [job.number for job in year.jobs if job.cluster == "titan"]
    assert numbers == sorted(set(numbers))


def test_the_year_has_the_portals_target_size(year):
    started = [job for job in year.jobs if job.started]

    assert len(started) >= 20_000
    assert all(year.of_job[job].bursts for job in started)
    assert {job.kind for job in started} == set(Kind)


def test_nodes_of_the_analysis_cluster_are_shared_but_never_overfull(year):
    cores = Counter()
    shared = 0
    events = []
    for job in year.jobs:
        if job.cluster == "rhea" and job.started:
            events.append((job.started, 1, job))
            events.append((job.ended or Plan().end, 0, job))
    jobs_on = Counter()
    for _, begins, job in sorted(events, key=lambda event: event[:2]):
        for node in job.nodes.tolist():
            cores[node] += job.cores_per_node if begins else -job.cores_per_node
            jobs_on[node] += 1 if begins else -1
            shared += jobs_on[node] > 1
            assert 0 <= cores[node] <= 16

    assert shared > 1_000


def test_the_week_has_the_jobs_of_the_table_for_any_seed():
    for seed in (1, 2, 3):
        jobs = week.jobs(np.random.default_rng(seed))
        nodes = np.array([job.node_count for job in jobs])
        opens = np.array([job.demand.opens for job in jobs])

        assert len(jobs) == 1_175
        assert nodes.mean() == pytest.approx(35.66, rel=0.02)
        assert nodes.std() == pytest.approx(55.33, rel=0.05)
        assert opens.max() <= 1_260_185
