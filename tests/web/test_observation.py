"""Slow servers under observation: who is named, and until when."""

import pytest
from django.utils import timezone

from ioportal.findings.models import Flag, Observation
from ioportal.site.models import Nid, SourceJobId
from ioportal.telemetry.models import Principal
from tests.logs import at
from tests.web.reading import json_of, words_of

REFRESH = {"HX-Request": "true"}  # of a part of a page
JOB, PROCESS, HOST = (int(kind) for kind in (Principal.JOB, Principal.PROCESS, Principal.HOST))


@pytest.fixture
def set_clock(monkeypatch):
    """Set the current time."""
    return lambda now: monkeypatch.setattr(timezone, "now", lambda: now)


def rows(client):
    return json_of(client.get("/observed/?format=json"))["rows"]


@pytest.fixture
def observe(mds, set_clock):
    """Store who works on a server."""
    set_clock(at("12:31"))

    def store(*shares):
        return Observation.objects.create(
            server=mds, until=at("12:30"), is_estimated=False, since=at("12:29"), times=7,
            shares=shares,
        )  # fmt: skip

    return store


WARNING, NOTICE = Flag.Severity.WARNING, Flag.Severity.NOTICE


@pytest.mark.parametrize(
    ("accused", "facts", "named"),
    [
        ("1", {}, {"1": True}),  # the other job may be a waiting job
        ("2", {}, {"1": False}),  # another user's job is under observation, too
        ("1", {"severity": NOTICE}, {"1": False, "2": False}),
        ("1", {"rule": "metadata-operations"}, {"1": False, "2": False}),
        ("1", {"suppression_reasons": ["Poor data."]}, {"1": False, "2": False}),
        ("1", {"ended_at": at("12:20"), "ending": "It ended."}, {"1": False, "2": False}),
        (
            "1",
            {"rule": "impact-of-many-jobs", "subject_kind": "user", "subject": "alice"},
            {"1": True},
        ),
        (
            "1",
            {"rule": "impact-of-many-jobs", "subject_kind": "project", "subject": "BIO1"},
            {"1": False},
        ),
    ],
)
def test_an_accusation_replaces_the_observation(
    as_staff, observe, new_job, new_flag, accused, facts, named
):
    jobs = {"1": new_job(batch_id="1"), "2": new_job(batch_id="2", owner="bob", project="BIO1")}
    observe((JOB, jobs["1"].pk, 0.6), (JOB, jobs["2"].pk, 0.3))
    new_flag(jobs[accused], **{"rule": "impact", **facts})

    assert {row["name"].split()[1]: row["accused"] for row in rows(as_staff)} == named


def test_processes_hosts_and_the_unknown_are_named(as_staff, observe, mds, site_ids):
    process, host = site_ids
    observe((PROCESS, process.pk, 0.4), (HOST, host.pk, 0.3), (int(Principal.PENDING), 0, 0.2))

    names = [row["name"] for row in rows(as_staff)]

    assert names == ["process du.4711", "host 9@gni", "pending job ids"]


@pytest.fixture
def site_ids(mds):
    process = SourceJobId.objects.create(filesystem=mds.filesystem, text="du.4711")
    return process, Nid.objects.create(text="9@gni")


@pytest.mark.parametrize(
    ("shares", "is_known", "words"),
    [
        ((), True, "No job, user, project, process or host does 10 % of the work now."),
        ((), False, "Who does the work is unknown."),
    ],
)
def test_a_server_may_be_slow_without_anybody(as_staff, observe, shares, is_known, words):
    Observation.objects.filter(pk=observe(*shares).pk).update(is_known=is_known)

    for address in ("/", "/overview/", "/servers/mds1/"):
        assert words in words_of(as_staff.get(address))


def test_the_number_of_queries_does_not_grow(
    as_staff, observe, new_job, site_ids, django_assert_num_queries
):
    process, host = site_ids
    others = ((PROCESS, process.pk, 0.2), (HOST, host.pk, 0.2))
    row = observe((JOB, new_job().pk, 0.2), *others)
    for jobs in (1, 3):
        row.shares = [*((JOB, new_job().pk, 0.2) for _ in range(jobs)), *others]
        row.save()
        with django_assert_num_queries(10):
            as_staff.get("/observed/", headers=REFRESH)


def test_the_part_of_a_page_leads_to_the_page_if_it_is_opened(as_staff, observe):
    observe()

    assert as_staff.get("/observed/")["Location"] == "/"
