"""A labelled set: logs that equal its truth."""

import re
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from simulator.labelled import cast, tracing, truth, writing
from simulator.labelled.counting import Counting
from simulator.labelled.scene import Scene
from simulator.labelled.service import Service
from simulator.servers.queueing import Discipline
from tests.simulator.reading import RPC

SEED = 11  # a slow server
COUNTER = re.compile(r"  (\w+): +\{ samples: +(\d+).*")
JOB = re.compile(r'- job_id: +"?(\d+)')
TIMED = re.compile(r"  getattr: +\{ samples: +(\d+), unit: +usecs.*? sum: +(\d+)")


@pytest.fixture(scope="module")
def made():
    """A small set: some heavy jobs that overload a slow server."""
    scene = Scene.draw(SEED, 0.05)
    scene = replace(
        scene,
        discipline=Discipline.FIFO,
        version="2.15.3",
        failover=None,
        actors=heavy(scene.actors),
    )
    service = Service.serve(scene)
    return SimpleNamespace(
        scene=scene,
        service=service,
        counting=Counting(scene, service),
        truth=truth.content(scene, service),
    )


def heavy(actors):
    """Return up to ten jobs of each part in the stream."""
    parts = defaultdict(list)
    for actor in actors:
        if actor.role.start > 0 and not actor.role.cleared_s:
            parts[actor.role.play.part].append(actor)
    return [actor for part in sorted(set(parts) - {"ordinary"}) for actor in parts[part][:10]]


def whole(made):
    """Return the jobs that end before the stream does, with the operations that were served."""
    senders = zip(made.scene.actors, made.service.sources, strict=False)
    return {
        actor.job.batch_id: source
        for actor, source in senders
        if source.end < made.scene.closed - 60 and not actor.role.spoofs
    }


def read(text):
    """Return the samples of each job and counter in the first target of a read."""
    samples, job = {}, ""
    for line in text.partition("\nobdfilter.")[0].splitlines():
        if match := JOB.match(line):
            job = match[1]
        elif match := COUNTER.match(line):
            samples[job, match[1]] = int(match[2])
    return samples


@pytest.mark.long
def test_a_slow_server_delays_operations_and_loses_none(made):
    assert made.service.served.queues
    delayed = 0
    for demanded, served in zip(made.scene.senders, made.service.sources, strict=True):
        if served.end < made.scene.closed:
            end = np.array([max(demanded.end, served.end)])
            assert abs(demanded.mdt_counts(end) - served.mdt_counts(end)).max() <= 1
        delayed += served.end > demanded.end
    assert delayed > 3


def test_a_server_is_never_faster_than_its_capacity_and_as_fast_in_a_queue(made):
    requests, served, power = made.service.requests, made.service.served, made.service.server.power
    load = np.bincount(served.answer_s.astype(int), requests.idle_s) / power
    queue = max(served.queues, key=lambda rows: rows.stop - rows.start)
    begin_s, end_s = requests.demand_s[queue.start], served.answer_s[queue].max()

    assert load.max() < 1.05
    assert load[int(begin_s) + 1 : int(end_s)].mean() == pytest.approx(1, rel=0.01)


def test_counters_equal_the_served_operations(made):
    moments = np.arange(made.scene.opened, made.scene.closed + 1, 300)
    highest = Counter()
    for texts in writing.reads(made.scene, made.counting, moments):
        for key, count in read(texts["job_stats"]).items():
            highest[key] = max(highest[key], count)

    busy = {
        job: source
        for job, source in whole(made).items()
        if len(source.bursts) and source.end - source.start < 700
    }
    assert busy
    for job, source in busy.items():
        done = source.mdt_counted(np.array([source.end]), 0)[0]
        assert highest[job, "open"] == done[0], job


def test_times_of_operations_grow_while_the_server_is_slow(made):
    requests, served = made.service.requests, made.service.served
    slow = served.queues[0]
    seconds = np.array([requests.demand_s[slow.start], served.answer_s[slow].max() + 1])
    moments = made.scene.begun + seconds.astype(int)
    before, after = (
        np.array(TIMED.findall(texts["job_stats"]), dtype=int).sum(axis=0)
        for texts in writing.reads(made.scene, made.counting, moments)
    )

    samples, took_us = after - before
    assert took_us / samples > 2 * before[1] / before[0]


def test_the_trace_has_every_request(made):
    slow = made.service.served.queues[0]
    begin = made.scene.begun + int(made.service.requests.demand_s[slow.start])
    records = tracing.records(made.scene, made.service, begin, begin + 60)
    lines = writing.lines(made.scene, records)

    assert all(RPC.fullmatch(line) for line in lines.head(50))
    done = sum(
        np.diff(source.mdt_counts(np.array([begin, begin + 60])), axis=0)[0]
        for source in made.service.sources
    )
    kinds = ("open", "getattr")
    enqueues = sum(done[truth.MDT_KINDS.index(kind)] for kind in kinds)
    traced = records.filter(opcode=101).height + records.filter(opcode=33).height
    assert traced == enqueues
    waited_us = records["total_us"] - records["service_us"]
    assert waited_us.mean() > 1_000


def test_harm_is_assigned_to_the_narrowest_group(made):
    harms = {(group["kind"], group["name"]): group["harm_s"] for group in made.truth["groups"]}
    subjects = made.truth["subjects"]

    assert subjects
    for subject in subjects:
        assert subject["harm_s"] == harms[subject["kind"], subject["name"]]
        assert subject["harm_s"] >= 30
        onset = subject["onset"]
        assert (onset is None) == (subject["harm_s"] < 60)
        if onset:
            moment = datetime.fromisoformat(onset)
            assert moment > datetime.fromtimestamp(made.scene.begun, UTC)
    jobs = Counter(job for subject in subjects for job in subject["jobs"])
    assert max(jobs.values(), default=1) <= 2  # of a user and of a campaign


def test_failed_look_ups_are_waste(made):
    wasteful = {
        actor.job.batch_id
        for actor in made.scene.actors
        if actor.role.play.part == "failed look-ups"
    }
    wasted = {
        group["name"]: group["wasted"] / group["operations"]
        for group in made.truth["groups"]
        if group["kind"] == "job" and group["operations"]
    }

    assert wasteful & wasted.keys()
    assert all(wasted[job] > 0.5 for job in wasteful & wasted.keys())


def test_a_spoofing_job_sends_the_id_of_another_users_job():
    actors = cast.actors(SEED, 0, 10_000.0, 0.2, has_uids=False)
    users = {actor.job.batch_id: actor.job.user for actor in actors}

    spoofers = [actor for actor in actors if actor.role.spoofs]
    assert spoofers
    for actor in spoofers:
        assert users[actor.source.job_id] is not actor.job.user
    honest = [actor for actor in actors if not actor.role.spoofs]
    assert all(actor.source.job_id == actor.job.batch_id for actor in honest)


def test_cron_jobs_of_many_users_begin_together_and_each_is_harmless(made):
    actors = cast.actors(SEED, 0, 10_000.0, 0.2, has_uids=False)
    crowd = [actor for actor in actors if actor.role.play.part == "cron jobs of many users"]
    assert len({actor.job.user.name for actor in crowd}) == len(crowd) == 50
    assert len({actor.job.started for actor in crowd}) == 1
    assert max(Counter(actor.job.user.project for actor in crowd).values()) == 2

    for group in made.truth["groups"]:
        if "nightly.sh" in group["name"]:
            assert group["harm_s"] == 0


def test_some_storms_happen_together():
    actors = cast.actors(SEED, 0, 10_000.0, 0.2, has_uids=False)
    storms = [
        actor for actor in actors if actor.role.is_punctual and actor.role.play.part == "storm"
    ]

    first, second = (
        max(actor.source.bursts, key=lambda burst: sum(burst.mdt.values())).start
        for actor in storms
    )
    assert first == second


def test_jobs_hold_separate_nodes():
    actors = cast.actors(SEED, 0, 10_000.0, 0.3, has_uids=True)
    held = sorted(
        (int(node), actor.job.started, actor.job.ended)
        for actor in actors
        for node in actor.job.nodes
    )

    for (node, _, ended), (following, started, _) in pairwise(held):
        assert node != following or ended <= started


def test_a_seed_gives_the_same_demand():
    first, second = (Scene.draw(SEED, 0.02) for _ in range(2))

    assert [actor.source.bursts for actor in first.actors] == [
        actor.source.bursts for actor in second.actors
    ]
    assert Scene.draw(SEED + 1, 0.02).capacity_per_s != first.capacity_per_s


def test_export_statistics_of_all_clients_add_up_to_the_totals(made):
    moments = np.array([made.scene.opened, made.scene.closed])
    totals = made.counting.reads(moments).totals
    for counts, clients in zip(totals, made.counting.clients(moments), strict=True):
        assert np.array(list(clients.values())).sum(axis=0).tolist() == counts.tolist()

    *_, text = writing.export_texts(made.scene, made.counting, moments)
    assert text.count(".stats=") == len(clients)
    for host in made.scene.hosts:
        assert f"mdt.{writing.MDT}.exports.{host.nid}.stats=" in text


def test_export_statistics_begin_again_with_the_server(made):
    restarted = replace(made.scene, failover=made.scene.opened + 600)
    counting = Counting(restarted, made.service)

    before, after = counting.clients(restarted.failover + np.array([-1, 1]))
    assert sum(map(sum, after.values())) < 0.1 * sum(map(sum, before.values()))


def test_requests_blocked_on_locks_take_long_and_are_harmless(made):
    numbers = [
        n for n, actor in enumerate(made.scene.actors) if actor.role.play.part == "lock convoy"
    ]
    convoys = {made.scene.actors[n].job.batch_id for n in numbers}
    assert convoys

    source = made.service.sources[numbers[0]]
    records = tracing.records(made.scene, made.service, source.start, source.start + 300)
    enqueues = records.filter(opcode=101, job=source.job_id)["service_us"]
    assert enqueues.mean() > 5_000
    for group in made.truth["groups"]:
        if group["kind"] == "job" and group["name"] in convoys:
            assert group["harm_s"] < 60
    (read_then,) = made.counting.reads(np.array([source.end])).mdt
    (entry,) = [entry for entry in read_then if entry.job_id == source.job_id]
    slowed = dict(zip(truth.MDT_KINDS, entry.slowdowns, strict=True))
    assert slowed["open"] > slowed["close"] + 100
