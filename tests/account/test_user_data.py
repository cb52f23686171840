"""Data about a user: its export, and its removal under a pseudonym."""

import json
import re

import pytest
from django.apps import apps
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import Group, User
from django.core.management.base import CommandError
from django.db import connection
from django.utils import timezone

from ioportal.account import holdings
from ioportal.account.models import Removal
from ioportal.alerts import answers, copies, planning
from ioportal.alerts.models import (
    BouncedAddress,
    CaseDecision,
    DeliveryAttempt,
    MailPolicy,
    Notification,
    Subscription,
)
from ioportal.api.models import Token
from ioportal.changes.models import DismissedChange, Mitigation
from ioportal.findings.models import BackTest, Case, CaseEvent, Flag
from ioportal.jobs.models import Job, Population
from ioportal.load.models import Report
from ioportal.site.models import Filesystem, Project, UserAccount
from ioportal.telemetry.models import JobGroup
from tests import loading
from tests.logs import at

NAMES = re.compile(r"(^|_)(owner|user|username|recipient|by|reporter|assignee|author|contact)$")


@pytest.fixture
def alice(storm, automatic, call):
    """Alice has jobs, cases, mails, a log-in, a token, and texts of her own."""
    planning.plan()
    mail = Notification.objects.get()
    Notification.objects.update(
        state=Notification.State.SENT, response="250 alice@example.org", finished_at=timezone.now()
    )
    MailPolicy.objects.update(copies_to=["ops@example.org"], digest_readers=["alice"])
    assert copies.write() == 1
    account = UserAccount.objects.get(name="alice")
    Project.objects.create(name="PHY12", contact="alice", account=account)
    BouncedAddress.objects.create(address="alice@example.org", reason="550 alice is unknown")
    mail.answers.create(kind="working", comment="alice works on it")
    mail.images.get_or_create(name="chart", defaults={"png": b"alice"})
    DeliveryAttempt.objects.create(
        notification=mail, outcome="sent", response="250 alice@example.org"
    )
    Notification.objects.create(
        recipient="alice", address="alice@example.org", subject="digest", text="Hello alice",
        key="digest:2026-11-24:alice", state=Notification.State.DRAFT,
    )  # fmt: skip
    for key, text in (("1", "Of alice."), ("2", "To Alice@example.org"), ("3", "Of malice.")):
        Notification.objects.create(
            kind="digest", recipient="sam", address="sam@example.org", subject="digest", text=text,
            key=f"brake:{key}", state=Notification.State.SENT,
        )  # fmt: skip
    user = User.objects.create(
        username="alice",
        first_name="Alice",
        email="alice@example.org",
        password=make_password("a secret"),
    )
    user.groups.add(Group.objects.create(name="PHY12"))
    call("token", "create", "read", "--user", "alice")
    Subscription.objects.create(user=user)
    Population.objects.create(name="alice's jobs", slug="a", owner=user)
    lake = Filesystem.objects.get(name="lake")
    Report.objects.create(filesystem=lake, description="ls of alice hangs", reporter=user)
    CaseEvent.objects.create(case=storm, kind="commented", by="sam", text="Called alice.")
    BackTest.objects.create(
        rule="impact", thresholds={}, requested_by="alice", start=at("12:00"), end=at("13:00"),
        subjects=[{"subject": "alice", "owner": "alice"}, {"subject": "bob", "owner": "bob"}],
    )  # fmt: skip
    return user


def tables_with(text):
    """Return the tables that contain a text anywhere, but not as part of a longer name."""
    pattern = rf"\m{text}\M"
    found = []
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names()):
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT 1 FROM {name} t WHERE t::text ~ %s LIMIT 1", [pattern])  # noqa: S608
            found += [table] if cursor.fetchone() else []
    return found


def test_an_export_contains_what_is_held(alice, storm, call):
    held = json.loads(call("user_data", "export", "alice"))

    assert held["account"][0]["email"] == "alice@example.org"
    assert held["log_in"][0]["first_name"] == "Alice"
    assert {mail["recipient"] for mail in held["mails"]} == {"alice"}
    assert storm.pk in [case["id"] for case in held["cases"]]
    assert "Called alice." in [note["text"] for note in held["notes_about_cases"]]
    assert held["problem_reports"][0]["description"] == "ls of alice hangs"
    assert held["rows_with_the_name"]["jobs.Job.owner"] == Job.objects.filter(owner="alice").count()
    secrets = {alice.password, Token.objects.get().digest, str(Notification.objects.first().token)}
    assert not secrets & set(re.findall(r'"([^"]*)"', json.dumps(held)))


def test_a_removal_leaves_a_pseudonym_only(alice, storm, call):
    facts = {"kind": "code", "started_at": timezone.now(), "scope": "user=alice&queue=batch"}
    Mitigation.objects.create(title="Fix", **facts)
    DismissedChange.objects.create(scope="user=alice", day=timezone.now().date(), by="sam")
    sam, _ = User.objects.get_or_create(username="sam")
    Population.objects.create(
        slug="ours", name="Ours", query="user=alice", owner=sam, is_shared=True
    )
    before = {model: model.objects.count() for model in (Job, Flag, Case, Notification, JobGroup)}

    assert {"jobs_job", "findings_case", "alerts_notification"} < {*tables_with("alice")}
    assert "removed-" in call("user_data", "remove", "alice", "--yes", "--reason", "left")

    assert tables_with("alice") == []
    assert tables_with("Alice") == []
    removal = Removal.objects.get()
    assert removal.reason == "left"
    assert Mitigation.objects.get(title="Fix").scope == f"user={removal.pseudonym}&queue=batch"
    assert removal.rows["jobs.Job.owner"] == Job.objects.filter(owner=removal.pseudonym).count()
    assert {model: model.objects.count() for model in before} == before
    alice.refresh_from_db()
    assert (alice.username, alice.is_active) == (removal.pseudonym, False)
    assert not alice.has_usable_password()
    states = Notification.objects.order_by("pk").values_list("state", flat=True)
    sent, discarded = Notification.State.SENT, Notification.State.DISCARDED
    assert list(states) == [sent, discarded, discarded, sent, sent, sent]
    digests = Notification.objects.filter(recipient="sam").order_by("pk")
    assert list(digests.values_list("text", flat=True)) == ["", "", "Of malice."]
    assert [test.subjects for test in BackTest.objects.all()] == [
        [{"subject": "bob", "owner": "bob"}]
    ]


def test_links_in_mails_to_a_removed_user_no_longer_work(alice, call):
    mail = Notification.objects.get(kind="cases", state="sent")
    key = answers.key_of(mail)
    assert answers.notification_of(key) == mail

    call("user_data", "remove", "alice", "--yes")

    assert answers.notification_of(key) is None


def test_cases_of_a_removed_user_continue(alice, storm, call):
    call("user_data", "remove", "alice", "--yes")
    pseudonym = Removal.objects.get().pseudonym
    cases = set(Case.objects.values_list("pk", flat=True))

    loading.evaluate()
    planning.plan()

    assert set(Case.objects.values_list("pk", flat=True)) == cases
    storm.refresh_from_db()
    assert (storm.owner, storm.subject) == (pseudonym, pseudonym)
    reasons = CaseDecision.objects.filter(case=storm).values_list("reason", flat=True)
    assert all(pseudonym in reason or "mail" in reason for reason in reasons)


def test_a_removal_needs_a_confirmation_and_a_known_user(alice, call):
    with pytest.raises(CommandError, match="Add --yes"):
        call("user_data", "remove", "alice")
    with pytest.raises(CommandError, match="Nothing is held about 'nobody'"):
        call("user_data", "remove", "nobody", "--yes")

    assert UserAccount.objects.filter(name="alice").exists()


def test_other_users_are_left_alone(alice, call):
    JobGroup.objects.create(kind=JobGroup.Kind.PROJECT, text="alice")
    for name in ("alicex", "xalice"):
        UserAccount.objects.create(name=name, email=f"{name}@example.org")
        JobGroup.objects.create(kind=JobGroup.Kind.APPLICATION, text=f"{name}:relax")

    call("user_data", "remove", "alice", "--yes")

    assert UserAccount.objects.filter(name__in=["alicex", "xalice"]).count() == 2
    assert JobGroup.objects.filter(text__in=["alicex:relax", "xalice:relax", "alice"]).count() == 3


def test_every_column_that_names_a_user_is_known():
    known = {f"{each.table}.{each.column}" for each in holdings.NAME_COLUMNS}
    known |= {f"{each.table}.{each.path.split('__')[0]}" for each in holdings.SECTIONS}
    known |= {"findings.Case.assignee", "admin.LogEntry.user"}  # keys of the log-in, which remains
    known |= {"site.Project.contact"}  # removed with the account

    named = {
        f"{model._meta.label}.{field.name}"  # noqa: SLF001  (documented)
        for model in apps.get_models()
        for field in model._meta.local_fields  # noqa: SLF001
        if field.related_model in {User, UserAccount}
        or (not field.is_relation and NAMES.search(field.name))
    }

    assert named - known == set()
