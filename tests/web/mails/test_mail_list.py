"""The list of mails: search, pages and exports."""

from datetime import timedelta

import pytest
from django.utils import timezone

from ioportal.alerts.models import CaseDecision, DeliveryAttempt, Notification
from ioportal.site.models import Filesystem
from tests.web.reading import csv_of, json_of

State, Kind = Notification.State, Notification.Kind


@pytest.fixture
def write(db):
    """Write a mail."""

    def mail(recipient="alice", *, age=timedelta(0), **facts):
        written = Notification.objects.create(
            **{
                "recipient": recipient,
                "address": f"{recipient}@example.org",
                "state": State.SENT,
                "subject": "Your jobs",
                "text": f"Hello {recipient}",
                **facts,
            }
        )
        Notification.objects.filter(pk=written.pk).update(created_at=timezone.now() - age)
        return written

    return mail


@pytest.fixture
def three(write, new_case):
    """Write three mails; the first is about a case and was sent at the second attempt."""
    lake = Filesystem.objects.create(name="lake")
    about_case = write("alice", subject="Slows down others", filesystem=lake)
    case = new_case()
    about_case.cases.create(case=case, value=3e6, rule_version=2)
    CaseDecision.objects.create(case=case, verdict="mail", reason="New case.")
    for outcome, response in ((State.WAITING, "450 busy"), (State.SENT, "250 Queued")):
        DeliveryAttempt.objects.create(notification=about_case, outcome=outcome, response=response)
    write("bob", kind=Kind.REPORT, age=timedelta(days=3), text="Job 42 has ended")
    write("carol", state=State.FAILED, age=timedelta(days=40), text="50% of _all_")
    return about_case


def exported(client, **query):
    """Return the mails that a query selects."""
    return json_of(client.get("/mails/", {"format": "json", **query}))["rows"]


def recipients(client, **query):
    """Return the recipients of the mails that a query selects."""
    return [row["recipient"] for row in exported(client, **query)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ["alice", "bob", "carol"]),
        ({"q": "slows DOWN"}, ["alice"]),
        ({"q": "job 42"}, ["bob"]),
        ({"q": "0% of _a"}, ["carol"]),
        ({"recipient": "bob"}, ["bob"]),
        ({"recipient": "Bob@example.org"}, ["bob"]),
        ({"state": "failed"}, ["carol"]),
        ({"kind": "report"}, ["bob"]),
        ({"rule": "metadata-operations"}, ["alice"]),
        ({"filesystem": "lake"}, ["alice"]),
        ({"last": "7d"}, ["alice", "bob"]),
        ({"last": "7d", "state": "failed"}, []),
        ({"end": (timezone.now() - timedelta(days=30)).isoformat()}, ["carol"]),
    ],
)
def test_mails_are_found(as_staff, three, query, expected):
    assert recipients(as_staff, **query) == expected


def test_users_find_only_what_was_sent_to_them(as_alice, three, write):
    write("alice", state=State.DRAFT)

    assert recipients(as_alice) == ["alice"]
    assert recipients(as_alice, recipient="bob") == []
    [row] = exported(as_alice)
    assert {"address", "reason", "delivery_log", "decisions"} & row.keys() == set()


@pytest.mark.parametrize(
    "query",
    [
        {"state": "nonsense"},
        {"filesystem": "sea"},
        {"start": "2017-07-06", "end": "2017-07-05"},
    ],
)
def test_an_invalid_filter_matches_nothing_and_is_reported(as_staff, three, query):
    page = as_staff.get("/mails/", query)

    assert page.context["mails"].table.page.paginator.count == 0
    assert 'class="error"' in page.content.decode()
    assert as_staff.get("/mails/", {**query, "format": "csv"}).status_code == 400


def test_exports_have_everything_about_a_mail(as_staff, three):
    [row] = exported(as_staff, recipient="alice")

    assert (row["text"], row["address"], row["filesystem"]) == (
        "Hello alice", "alice@example.org", "lake",
    )  # fmt: skip
    assert [(case["rule"], case["rule_version"]) for case in row["cases"]] == [
        ("metadata-operations", 2)
    ]
    assert [decision["reason"] for decision in row["decisions"]] == ["New case."]
    assert [attempt["response"] for attempt in row["delivery_log"]] == ["450 busy", "250 Queued"]
    first = csv_of(as_staff.get("/mails/?format=csv"))[0]
    assert '"response": "450 busy"' in first["delivery_log"]


def test_queries_do_not_grow_with_the_number_of_mails(
    as_staff, three, write, new_case, django_assert_num_queries
):
    as_staff.get("/mails/")
    with django_assert_num_queries(7):
        as_staff.get("/mails/")
    with django_assert_num_queries(7):
        exported(as_staff)
    for _ in range(3):
        mail = write()
        mail.cases.create(case=new_case(), value=1, rule_version=1)
        DeliveryAttempt.objects.create(notification=mail, outcome=State.SENT)

    with django_assert_num_queries(7):
        as_staff.get("/mails/")
    with django_assert_num_queries(7):
        exported(as_staff)


def test_the_page_of_a_mail_shows_its_delivery_and_decisions_to_staff(as_staff, client, three, bob):
    page = as_staff.get(f"/mails/{three.pk}/").content.decode()

    for text in ("450 busy", "250 Queued", "New case."):
        assert text in page

    Notification.objects.update(recipient="bob")
    client.force_login(bob)
    page = client.get(f"/mails/{three.pk}/").content.decode()
    assert "Hello alice" in page
    assert "450 busy" not in page
    assert "New case." not in page
