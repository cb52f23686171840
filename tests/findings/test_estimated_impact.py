"""Flags of a site without traces: impact is estimated from job_stats and service statistics."""

from datetime import timedelta

import polars as pl
import pytest

from ioportal.findings.evidence import load_evidence
from ioportal.findings.models import Flag, FlagEvent
from ioportal.ingest import attribution_stage, impact_marks
from ioportal.jobs.models import Job, JobStatistics
from ioportal.load.analysis.waiting import BASELINES
from ioportal.load.impact import impact_estimates
from ioportal.load.models import PinnedBaseline
from ioportal.site.models import Filesystem, Nid, Server, Service, SourceJobId, Target, UserAccount
from ioportal.telemetry.models import Coverage, HostWindow, ImpactWindow, IoWindow, Principal
from ioportal.telemetry.stage_runs import drain
from tests import loading, untraced
from tests.logs import OPEN, at, rpc
from tests.untraced import BYSTANDER, STORM

_SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module")
def flags(module_site, module_logs):
    """Ingest all reads of an untraced server, counters late; return its flags by impact."""
    untraced.ingest(module_logs, between=loading.evaluate)
    return impact_flags()


def test_a_storm_is_triaged_once(flags):
    assert flags["impact", STORM].severity == Flag.Severity.ABUSE
    others = Flag.objects.filter(job__batch_id=STORM).exclude(rule="impact")
    assert {flag.severity for flag in others} == {Flag.Severity.NOTICE}


def impact_flags():
    return {key: flag for key, flag in loading.evaluate().items() if key[0].startswith("impact")}


def windows(**conditions):
    fields = ("start", "kind", "principal_id", "impact_us", "is_estimated")
    return set(ImpactWindow.objects.filter(**conditions).values_list(*fields))


def starts(**conditions):
    return {start for start, *_ in windows(**conditions)}


def test_a_storm_and_an_array_are_flagged_and_no_others(flags):
    assert flags.keys() == {
        ("impact", untraced.STORM),
        ("impact-of-many-jobs", "dave:task"),
    }
    for flag in flags.values():
        assert not flag.is_suppressed
        assert flag.numbers["impact_is_estimated"] == 1
        assert "(estimated; threshold 10 s)" in flag.advice
    storm = flags["impact", untraced.STORM]
    others = (1 + len(untraced.ARRAY)) * untraced.CALM_REQUESTS * 3  # requests in three minutes
    assert storm.numbers["impact_s"] == pytest.approx(
        others * (untraced.SLOW_US - untraced.CALM_US) / 1e6, rel=0.2
    )


def test_computing_it_again_changes_nothing(flags):
    before, events = windows(), FlagEvent.objects.count()

    attribution_stage.mark_all_dirty()
    drain(attribution_stage.attribute_pending)
    impact_flags()

    assert windows() == before
    assert FlagEvent.objects.count() == events


def test_a_host_outside_jobs_has_impact(flags):
    mdt = Target.objects.get(name=untraced.MDT)
    nid = Nid.objects.create(text="99@gni")
    span = at("12:06"), at("12:09")
    HostWindow.objects.create(
        start=span[0], end=span[1], segment_id=1, target_id=mdt.pk, nid_id=nid.pk,
        kind=Principal.HOST, basis=1, metadata_operations=10 * untraced.STORM_REQUESTS,
    )  # fmt: skip
    impact_marks.mark_targets([mdt.pk], *span)

    impact_flags()

    hosts = windows(kind=Principal.HOST)
    assert {start for start, *_ in hosts} == {at("12:06") + 10 * n * _SECOND for n in range(18)}
    assert {key for _, _, key, *_ in hosts} == {nid.pk}
    [host] = load_evidence.for_hosts(mdt.filesystem_id, span[1]).frame.rows(named=True)
    assert host["impact_s"] == pytest.approx(sum(row[3] for row in hosts) / 1e6, rel=1e-3)


def test_a_forged_job_id_blames_the_node_that_sent_it(flags):
    storm, bystander = (Job.objects.get(batch_id=each) for each in (STORM, BYSTANDER))
    mdt = Target.objects.get(name=untraced.MDT)
    span = at("12:00"), at("12:04")
    common = {
        "start": span[0], "end": span[1], "segment_id": 1, "target_id": mdt.pk, "nid_id": 0,
        "kind": Principal.JOB, "basis": 1,
    }  # fmt: skip
    sent = {storm: 4 * untraced.CALM_REQUESTS, bystander: 3 * untraced.STORM_REQUESTS}
    before = {
        key: {start for start, _, principal, *_ in windows(kind=Principal.JOB) if principal == key}
        for key in (storm.pk, bystander.pk)
    }
    assert before[storm.pk]
    assert not before[bystander.pk]

    for job, operations in sent.items():
        HostWindow.objects.create(**common, job_id=job.pk, metadata_operations=operations)
    Coverage.objects.create(
        source="exports", source_id=mdt.pk, start=span[0], end=span[1], segment_id=1
    )
    impact_marks.mark_targets([mdt.pk], *span)
    impact_flags()

    blamed = {key: start for start, _, key, *_ in windows(kind=Principal.JOB) if start < span[1]}
    assert blamed.keys() == {bystander.pk}


def test_nodes_of_several_jobs_send_for_jobs_on_shared_nodes_only(flags):
    mdt = Target.objects.get(name=untraced.MDT)
    storm = Job.objects.get(batch_id=STORM)
    span = at("12:00"), at("12:04")
    common = {
        "start": span[0], "end": span[1], "segment_id": 1, "target_id": mdt.pk, "nid_id": 0,
        "kind": Principal.JOB, "basis": 1,
    }  # fmt: skip
    HostWindow.objects.create(**common, job_id=storm.pk, metadata_operations=2_400)
    HostWindow.objects.create(**common, job_id=0, metadata_operations=3 * untraced.STORM_REQUESTS)
    Coverage.objects.create(
        source="exports", source_id=mdt.pk, start=span[0], end=span[1], segment_id=1
    )

    def is_blamed():
        impact_marks.mark_targets([mdt.pk], *span)
        impact_flags()
        of_storm = ImpactWindow.objects.filter(kind=Principal.JOB, principal_id=storm.pk)
        return of_storm.filter(start__lt=span[1]).exists()

    assert not is_blamed()
    other = Job.objects.get(batch_id=BYSTANDER)
    other.allocations.create(node=storm.allocations.get().node)
    assert not is_blamed()  # its owner may have sent them with the storm's id
    Job.objects.filter(pk=other.pk).update(owner=storm.owner)
    assert is_blamed()


def test_names_of_a_user_s_processes_are_one_principal(flags):
    source = SourceJobId.objects.get(text=STORM)
    for n, window in enumerate(IoWindow.objects.filter(source_job_id=source.pk)):
        name = SourceJobId.objects.create(text=f"x{n}.1001", filesystem=source.filesystem)
        rows = IoWindow.objects.filter(start=window.start, source_job_id=source.pk)
        rows.update(kind=Principal.PROCESS, job_id=0, source_job_id=name.pk)

    server = Server.objects.get(name=untraced.SERVER)
    impacts = impact_estimates.Estimate(server.pk, at("12:00"), at("12:04")).impact.impacts

    assert impacts["key"].unique().to_list() == [f"{Principal.PROCESS}:{-1 - 1001}"]


def test_a_claim_on_nodes_of_several_owners_accuses_only_with_a_user_id(flags):
    storm = Job.objects.get(batch_id=STORM)
    node = storm.allocations.get().node
    other = Job.objects.get(batch_id=BYSTANDER)
    other.allocations.create(node=node)
    mdt = Target.objects.get(name=untraced.MDT)

    def accused(**run):
        Job.objects.filter(pk=other.pk).update(**run)
        impact_marks.mark_targets([mdt.pk], at("12:00"), at("12:04"))
        impact_flags()
        found = ImpactWindow.objects.filter(start__lt=at("12:04"))
        return {kind for (kind,) in found.values_list("kind").distinct()}

    start, end = other.started_at, other.ended_at
    assert accused() == set()
    # A job of one second can have sent little of the storm; a job that ended before it, nothing.
    assert Principal.JOB in accused(started_at=at("12:01:30"), ended_at=at("12:01:31"))
    assert Principal.JOB in accused(started_at=at("11:00"), ended_at=storm.started_at)
    assert accused(started_at=start, ended_at=end) == set()
    UserAccount.objects.update_or_create(name=storm.owner, defaults={"uid": 1001})
    SourceJobId.objects.filter(text=STORM).update(uid=1001)
    assert Principal.JOB in accused()


def test_exports_are_awaited_where_job_ids_have_no_user_id(flags):
    mdt = Target.objects.get(name=untraced.MDT)
    polled_until, later = at("12:02"), at("12:06")
    Coverage.objects.create(
        source="exports", source_id=mdt.pk, start=at("12:00"), end=polled_until, segment_id=1
    )

    def estimated():
        return impact_estimates.untraced(
            mdt.server_id, polled_until, later, pl.DataFrame(schema=BASELINES)
        )

    assert estimated() == [(at("12:04"), later)]
    Filesystem.objects.update(job_id_pattern=r"(?P<batch_id>\d+):(?P<uid>\d+)")
    assert estimated() == [(polled_until, later)]


@pytest.fixture
def traced(flags, logs, ingest):
    """Ingest a trace of two minutes of the storm, in which RPCs of alice and bob are slow."""

    def run(begin="12:01", seconds=120, total_us=20_000, **rpc_options):
        lines = [
            rpc(at(begin) + number * _SECOND / 10, nid, us=(100, total_us), **rpc_options)
            for number in range(10 * seconds)
            for nid in ["2@gni" if number % 10 == 0 else "1@gni"]
        ]
        ingest("rpctrace", logs("trace", "\n".join(lines)), server=untraced.SERVER)
        impact_flags()
        return {at(begin) + number * 10 * _SECOND for number in range(seconds // 10)}

    return run


@pytest.fixture
def baseline(flags):
    """Pin the usual time of an open."""
    PinnedBaseline.objects.create(
        server=Server.objects.get(name=untraced.SERVER), service=Service.objects.get(name="mdt"),
        opcode=OPEN, baseline_us=100, since=at("00:00"), pinned_by="admin",
    )  # fmt: skip


@pytest.mark.usefixtures("baseline")
def test_a_storm_with_the_id_of_another_job_is_flagged_as_that_of_its_node(traced):
    Flag.objects.all().delete()
    traced("12:00", 180, total_us=2_000_000, job=BYSTANDER)

    found = impact_flags()
    assert found["impact", STORM].numbers["impact_is_estimated"] == 0
    assert not found["impact", STORM].is_suppressed
    assert ("impact", BYSTANDER) not in found
    statistics = JobStatistics.objects.get(job__batch_id=STORM)
    assert (statistics.contradicted_share, statistics.quality) == (1, "poor")


@pytest.mark.usefixtures("baseline")
def test_a_storm_under_many_process_names_blames_no_job(logs, ingest):
    senders = 8 * ["19@gni"] + 2 * ["2@gni"]
    lines = [
        rpc(at("12:00") + n * _SECOND / 10, nid, us=(100, 2_000_000), job=f"find.{n % 100}")
        for n in range(1_200)
        for nid in senders
    ]
    ingest("rpctrace", logs("trace", "\n".join(lines)), server=untraced.SERVER)

    assert ("impact", BYSTANDER) not in impact_flags()


@pytest.mark.usefixtures("baseline")
def test_a_trace_replaces_the_estimate(traced):
    estimated = starts(is_estimated=True)
    within = traced()

    assert within < estimated
    assert starts(is_estimated=False) == within
    assert starts(is_estimated=True) == estimated - within


def test_a_trace_without_a_baseline_replaces_nothing(flags, traced):
    before = windows()

    traced()

    assert windows() == before
