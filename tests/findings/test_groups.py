"""Flags of applications, users and projects: the narrowest group is flagged, and only once."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.findings import evaluation, history
from ioportal.findings.flags.episodes import episodes_of
from ioportal.findings.models import CaseEvent, Flag
from ioportal.ingest import attribution_stage
from ioportal.jobs import statistics
from ioportal.jobs.analysis.anonymity import coarse
from ioportal.load.analysis.waiting import MIN_BASELINE_WINDOWS
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, rpc, sacct

JOBS, NODES = 20, 19
BYSTANDER = Run("99", nodes="n20", user="bob", project="CHM01", name="fold")
MILLION = 1_000_000
HOUR = timedelta(hours=1)


def runs(**differing):
    """Return jobs of one node; `differing`: fields that differ between them."""
    letters = "abcdefghijklmnopqrstuvwxyz"[:JOBS]
    fields = [
        {"user": "alice smith"} | {name: value + letter for name, value in differing.items()}
        for letter in letters
    ]
    return [Run(f"{10 + n}", end=None, nodes=f"n{n % NODES + 1}", **fields[n]) for n in range(JOBS)]


@pytest.mark.parametrize(
    ("differing", "kind", "subject"),
    [
        pytest.param({}, "application", "alice smith:relax", id="one application"),
        pytest.param({"name": "a"}, "user", "alice smith", id="applications of one user"),
        pytest.param({"user": "u"}, "campaign", "PHY12:relax", id="one application of a project"),
        pytest.param({"name": "a", "user": "u"}, "project", "PHY12", id="users of one project"),
    ],
)
def test_many_jobs_that_slow_down_others_are_flagged_together(
    site, logs, ingest, evaluate, monkeypatch, differing, kind, subject
):
    ingest("sacct", logs("jobs", sacct(*runs(**differing)[:NODES], BYSTANDER)), cluster="anvil")
    calm = [
        rpc(at("12:10") - timedelta(seconds=10 * n), "20@gni", us=(80, 100))
        for n in range(MIN_BASELINE_WINDOWS + 130, 0, -1)
    ]
    storm = [  # every 20th RPC is the bystander's
        rpc(at("12:10") + timedelta(milliseconds=20 * n), f"{n % 20 + 1}@gni", us=(80, 450_100))
        for n in range(3_000)
    ]
    ingest("rpctrace", logs("trace", "\n".join(calm + storm)), server="mds1")
    flags = {key: flag for key, flag in evaluate().items() if key[0].startswith("impact")}

    assert list(flags) == [("impact-of-many-jobs", subject)]
    flag = flags["impact-of-many-jobs", subject]
    assert flag.subject_kind == kind
    # The bystander's 150 RPCs took 450 ms longer than usual each.
    assert flag.value == pytest.approx(150 * 0.45, rel=0.01)
    assert flag.numbers["impact_share"] == pytest.approx(19 / 20, rel=0.01)
    assert coarse(history.for_flag(flag).amounts["amount"].max()) == flag.value
    [episode] = episodes_of(flag)
    assert (episode.start, episode.end) == (at("12:10"), at("12:11"))
    flag.until = at("12:10:30")  # a current flag is evaluated later than its data
    assert episodes_of(flag) == [episode]
    flag.ended_at = at("12:20")
    assert episodes_of(flag)[0].end == flag.until
    assert coarse(episode.impact_s) == flag.numbers["impact_s"]
    # Of the bystander: 450.1 ms in each window, usually 0.1 ms.
    assert episode.mean_times == pytest.approx(4_501)
    assert episode.worst_times == pytest.approx(4_501)
    assert list(evaluate()) == list(flags)  # nothing changes
    flag.ended_at = None
    monkeypatch.setattr(timezone, "now", lambda: at("12:11"))  # more of the last window follows
    assert episodes_of(flag)[0].end == at("12:10:50")


@pytest.fixture
def read(logs, ingest):
    """Ingest the MDT's counters at a time: getattrs by job."""

    def run(moment, counters):
        entries = {job: {"getattr": count} for job, count in counters.items()}
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **entries}, snapshot=moment)
        ingest("job_stats", logs(f"{moment:%d%H%M}", text), at=moment.isoformat())

    return run


def test_a_campaign_within_a_day_counts_no_other_days(site, logs, ingest, evaluate, read, settings):
    """20 jobs of three days do 16 million operations a day, 48 million in all."""
    settings.POLL_GAP = 3 * HOUR
    start = at("00:00") - timedelta(days=2)
    jobs = [Run(f"{10 + n}", start, None, "n1", submit=start - HOUR) for n in range(JOBS)]
    ingest("sacct", logs("jobs", sacct(*jobs)), cluster="anvil")
    hourly = 16 * MILLION // 24 // JOBS
    for hours in range(0, 73, 2):
        read(start + hours * HOUR, {job.batch_id: hours * hourly for job in jobs if hours})

    assert not [key for key in evaluate() if key[0] == "campaign"]


@pytest.mark.parametrize(
    ("differing", "subject"),
    [
        pytest.param({}, "alice smith:relax", id="one application"),
        pytest.param({"name": "a"}, "alice smith", id="applications of one user"),
        pytest.param({"user": "u"}, "PHY12:relax", id="one application of a project"),
        pytest.param({"name": "a", "user": "u"}, "PHY12", id="users of one project"),
    ],
)
def test_the_narrowest_group_of_a_campaign_is_flagged(
    site, logs, ingest, evaluate, read, differing, subject
):
    jobs = [*runs(**differing), Run("70", end=None, nodes="n20", name="other")]
    ingest("sacct", logs("jobs", sacct(*jobs)), cluster="anvil")
    for minute in (0, 20, 40):
        counters = {job.batch_id: minute * 50_000 for job in jobs[:-1]}
        read(at(f"12:{minute:02}"), {**counters, "70": minute * 1_000} if minute else {})
    flags = {key: flag for key, flag in evaluate().items() if key[0] == "campaign"}

    assert list(flags) == [("campaign", subject)]
    flag = flags["campaign", subject]
    assert flag.value == pytest.approx(40 * MILLION, rel=0.001)
    assert history.for_flag(flag).amounts["amount"].max() == pytest.approx(flag.value)
    assert Flag.objects.filter(rule="campaign").count() == 1


@pytest.mark.parametrize("slice_", [8, 500])
def test_a_campaign_of_a_past_day_is_evaluated_once(site, logs, ingest, slice_):
    day, jobs = at("12:00") - timedelta(days=40), range(60)
    runs_of_day = [
        Run(
            f"{100 + n}", day + timedelta(minutes=n), day + timedelta(minutes=n + 60),
            f"n{n % NODES + 1}", submit=day - HOUR,
        )
        for n in jobs
    ]  # fmt: skip
    later = Run("900", end="12:30", nodes="n20")
    ingest("sacct", logs("jobs", sacct(*runs_of_day, later)), cluster="anvil")
    for minute in range(0, 140, 20):
        moment = day + timedelta(minutes=minute)
        done = {n: min(60, minute - n) for n in jobs if minute > n}
        counters = {f"{100 + n}": {"getattr": each * 17_000} for n, each in done.items()}
        text = job_stats("lake-MDT0000", {"x": {"open": 1}, **counters}, snapshot=moment)
        ingest("job_stats", logs(f"day{minute}", text), at=moment.isoformat())
    drain(attribution_stage.attribute_pending)

    while statistics.refresh_statistics(slice_):  # as the slices of a year
        drain(evaluation.evaluate_pending)

    [flag] = Flag.objects.filter(rule="campaign")
    assert flag.value == 60 * 60 * 17_000
    kinds = list(CaseEvent.objects.filter(case=flag.case).values_list("kind", flat=True))
    assert (kinds.count("opened"), kinds.count("reopened")) == (1, 0)
