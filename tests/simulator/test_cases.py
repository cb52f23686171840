"""A labelled set: logs that equal its truth, and labels that follow the injected causes."""

import json
import re
from collections import Counter
from datetime import datetime, timedelta
from types import SimpleNamespace

import pytest

from simulator.cases import cast, labelled, truth, writing
from simulator.cases.causes import Cause
from simulator.cases.filesystems import SMALL
from simulator.cases.scene import Scene
from simulator.cases.traffic import Traffic
from tests.simulator.reading import RPC

pytestmark = pytest.mark.long

SEED, SHARE = 3, 0.12
TARGET = re.compile(r"(?:mdt|obdfilter)\.(\S+)\.job_stats=.*")
JOB = re.compile(r"- job_id: +(\S+)")
COUNTER = re.compile(r"  (\w+): +\{ samples: +(\d+), unit: +(\w+)(?:.*?sum: +(\d+))?.*")
STEP = timedelta(seconds=10)
HARMLESS = {
    *("ordinary", "checkpointer", "scanner", "large", "large reads", "interactive", "busy"),
    *("start-up of normal size", "short burst", "some look-ups fail", "one of many small jobs"),
    "one of a campaign",
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A small labelled set: its folder, its slices, its truth."""
    folder = tmp_path_factory.mktemp("cases")
    labelled.write(folder, seed=SEED, share=SHARE)
    content = json.loads((folder / "truth.json").read_text())
    return SimpleNamespace(
        folder=folder,
        slices=sorted((folder / "slices").iterdir()),
        truth=content,
        start=datetime.fromisoformat(content["start"]),
        end=datetime.fromisoformat(content["end"]),
        of_jobs={
            case["subject"]["name"]: case
            for case in content["cases"]
            if case["subject"]["kind"] == "job"
        },
    )


def whole(cases, filesystem):
    """Return the jobs of a filesystem that begin and end in the stream, with nothing lost."""
    return {
        job: cases.truth["jobs"][job]
        for job, case in cases.of_jobs.items()
        if case["subject"]["filesystem"] == filesystem
        and not case["fault"]
        and datetime.fromisoformat(case["subject"]["start"]) > cases.start
        and datetime.fromisoformat(case["subject"]["end"]) < cases.end - STEP
    }


def reads(text):
    """Return {(target, job id, counter): (samples, sum of bytes)} of one read."""
    counts, target, job = {}, "", ""
    for line in text.splitlines():
        if match := COUNTER.fullmatch(line):
            total = int(match[4]) if match[3] == "bytes" and match[4] else 0
            counts[target, job, match[1]] = (int(match[2]), total)
        elif match := JOB.fullmatch(line):
            job = match[1]
        elif match := TARGET.fullmatch(line):
            target = match[1]
    return counts


def counted(cases, filesystem):
    """Return the sums of the stream's counters; an idle entry may be dropped."""
    last, samples, sizes = {}, Counter(), Counter()
    for step in cases.slices:
        path = step / f"job_stats-{filesystem}.txt"
        now = reads(path.read_text()) if path.exists() else {}
        for key, (count, size) in now.items():
            before = last.get(key, (0, 0))
            is_new = count < before[0]
            samples[key] += count - (0 if is_new else before[0])
            sizes[key] += size - (0 if is_new else before[1])
        last = now
    return samples, sizes


@pytest.mark.parametrize("filesystem", ["atlas1", "widow0"])
def test_counters_equal_the_true_activity(cases, filesystem):
    samples, sizes = counted(cases, filesystem)

    jobs = whole(cases, filesystem)
    assert len(jobs) > 15
    for job, did in jobs.items():
        for kind, count in did["operations"].items():
            assert samples[f"{filesystem}-MDT0000", job, kind] == count
        ost = f"{filesystem}-OST0000"
        assert samples[ost, job, "read_bytes"] == did["reads"]
        assert sizes[ost, job, "read_bytes"] == did["read_bytes"]
        assert samples[ost, job, "write_bytes"] == did["writes"]
        assert sizes[ost, job, "write_bytes"] == did["write_bytes"]


def test_the_trace_has_every_request_in_the_step_of_its_end(cases):
    jobs, rpcs = whole(cases, "widow0"), Counter()
    for number, step in enumerate(cases.slices):
        begin = (cases.start + number * STEP).timestamp()
        for line in (step / "rpctrace-widow0.log").read_text().splitlines():
            record = RPC.fullmatch(line)
            assert record, line
            assert begin <= float(record["time"]) < begin + STEP.seconds
            rpcs[record["job"]] += 1

    assert {job: rpcs[job] for job in jobs} == {job: did["rpcs"] for job, did in jobs.items()}


def test_failed_look_ups_are_unmatched_opens_or_uncounted_enqueues(cases):
    jobs = {
        case["subject"]["filesystem"]: cases.truth["jobs"][job]
        for job, case in cases.of_jobs.items()
        if case["part"] == "failed look-ups" and case["label"] == "positive"
    }

    searched = jobs["atlas1"]["operations"]
    assert searched["open"] > 3 * searched["close"]
    hidden = jobs["widow0"]
    assert hidden["operations"]["open"] < 1.1 * hidden["operations"]["close"]
    assert hidden["rpcs"] > hidden["failed_opens"] + sum(hidden["operations"].values()) * 0.9


def test_accounting_has_each_end_once_and_the_queue_running_jobs(cases):
    def ids(name):
        for step in [cases.folder / "before", *cases.slices]:
            if (step / name).exists():
                for line in (step / name).read_text().splitlines()[1:]:
                    yield line.split("|")[0]

    over = {
        job
        for job, case in cases.of_jobs.items()
        if datetime.fromisoformat(case["subject"]["end"]) <= cases.end
    }
    assert Counter(ids("sacct.txt")) == Counter(over)
    assert set(ids("squeue.txt")) >= set(whole(cases, "atlas1"))


def test_steps_follow_each_other_and_a_gap_has_no_reads(cases):
    spans = [json.loads((step / "slice.json").read_text()) for step in cases.slices]
    assert [span["start"] for span in spans[1:]] == [span["end"] for span in spans[:-1]]
    assert (spans[0]["start"], spans[-1]["end"]) == (cases.truth["start"], cases.truth["end"])

    [gap] = [each["unread"] for each in cases.truth["filesystems"] if each["unread"]]
    unread = [
        span["end"]
        for span, step in zip(spans, cases.slices, strict=True)
        if not (step / "job_stats-widow1.txt").exists()
    ]
    assert unread == [span["end"] for span in spans if gap[0] < span["end"] < gap[1]]
    assert all((step / "job_stats-atlas1.txt").exists() for step in cases.slices)


def test_every_cause_occurs_and_starts_in_the_stream(cases):
    positives = [
        (case, cause)
        for case in cases.truth["cases"]
        if case["label"] == "positive"
        for cause in case["causes"]
        if not cause["is_borderline"]
    ]

    assert {cause["cause"] for _, cause in positives} == set(Cause)
    assert all(cases.truth["start"] < cause["onset"] < cases.truth["end"] for _, cause in positives)
    too_many = next(cause for _, cause in positives if cause["cause"] == Cause.OPERATIONS)
    assert too_many["amounts"]["operations"] > 2_000_000


def test_labels_follow_the_injected_causes(cases):
    for case in cases.truth["cases"]:
        ratios = [cause["ratio"] for cause in case["causes"]]
        expected = {
            "bad-data": bool(case["fault"]),
            "negative": not ratios,
            "borderline": bool(ratios) and max(ratios) < 1.25,
            "positive": bool(ratios) and max(ratios) >= 1.25,
        }
        assert expected[case["label"]]
        if case["part"] in HARMLESS - {"one of a campaign"} and not case["fault"]:
            assert case["label"] == "negative", case


def test_nearly_all_subjects_of_a_complete_set_are_harmless():
    actors = cast.actors(1, 0, 300.0, 1.0)

    parts = Counter(actor.role.play.part for actor in actors if not actor.role.fault)
    doubtful = len(actors) - sum(parts[part] for part in HARMLESS)
    assert doubtful < 0.055 * len(actors)  # including harmless near misses
    assert len(actors) > 2_000
    assert min(parts[part] for part in HARMLESS) >= 4


def test_a_seed_gives_the_same_bytes(cases, tmp_path):
    scene = Scene.draw(SEED, SHARE)
    calm = Traffic.draw(scene, SMALL, scene.calm_since, scene.opened, bin_s=labelled.CALM_BIN_S)

    writing.before(tmp_path / "before", scene, calm)

    paths = [path for path in (tmp_path / "before").rglob("*") if path.is_file()]
    assert len(paths) > 300
    for path in paths:
        assert path.read_bytes() == (cases.folder / path.relative_to(tmp_path)).read_bytes()


def test_another_seed_differs_in_every_amount(cases):
    def amounts(content):
        return {
            (cause["cause"], *sorted(cause["amounts"].values()))
            for case in content["cases"]
            for cause in case["causes"]
        }

    other = truth.content(Scene.draw(SEED + 1, SHARE), {})

    assert amounts(other)
    assert not amounts(other) & amounts(cases.truth)
