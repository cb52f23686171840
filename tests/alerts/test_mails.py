"""From a case to a mail that a real server accepts."""

import re
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from ioportal.alerts import channel_messages, compose, copies, facts, planning, tasks
from ioportal.alerts.case_mail_texts import topics
from ioportal.alerts.delivery import outbox, smtp
from ioportal.alerts.models import (
    CaseDecision,
    Channel,
    MailPolicy,
    Notification,
    NotificationCase,
)
from ioportal.findings.flags.endings import NARROWER_GROUP
from ioportal.findings.models import Case, CaseEvent, Flag, JobEvidence
from ioportal.jobs.models import Job, JobStatistics
from ioportal.rules import BY_CODE
from ioportal.site.models import Server, UserAccount
from ioportal.telemetry.models import ImpactWindow, StageFailure
from tests import untraced
from tests.web import rows

State = Notification.State


@pytest.fixture
def waiting(storm, automatic):
    """Write the mail about the storm."""
    assert planning.plan() == 1
    return Notification.objects.get()


def again(notification):
    """Send at the time of the next attempt; return the notification."""
    Notification.objects.filter(state=State.WAITING).update(next_attempt_at=timezone.now())
    outbox.send_due(10)
    notification.refresh_from_db()
    return notification


def test_a_storm_is_mailed_to_its_owner(storm, automatic, mails):
    assert planning.plan() == 1
    outbox.send_due(10)

    [(recipients, mail)] = mails.accepted
    assert recipients == ["alice@example.org"]
    assert mail["To"] == "alice@example.org"
    assert mail["Subject"] == "Slows down other jobs: your jobs named storm on lake"
    assert mail["Auto-Submitted"] == "auto-generated"
    for kind in ("plain", "html"):
        body = mail.get_body([kind]).get_content()
        assert "Hello Alice Ng," in body
        assert f"job {untraced.STORM}: " in body
        assert f"/cases/{storm.pk}/" in body
    notification = Notification.objects.get()
    assert (notification.state, notification.response) == (State.SENT, "250 Queued")
    assert mail["Message-ID"] == f"<{notification.token}@localhost>"
    assert planning.plan() == 0


@pytest.mark.parametrize(
    ("kind", "facts", "mails_written"),
    [
        pytest.param("user", {}, 1, id="a storm of many jobs that ended"),
        pytest.param("job", {}, 0, id="findings that no longer apply"),
        pytest.param("user", {"ending": NARROWER_GROUP}, 0, id="a part is accused instead"),
        pytest.param("user", {"by": "sam"}, 0, id="resolved by staff"),
        pytest.param("user", {"later": timedelta(days=30)}, 0, id="expired"),
    ],
)
def test_a_storm_that_ended_before_a_mail_was_due_is_mailed_about(
    storm, automatic, kind, facts, mails_written
):
    now = timezone.now()
    Case.objects.update(
        until=now - facts.get("later", timedelta(minutes=10)),
        subject_kind=kind,
        state=Case.State.RESOLVED,
        resolution=facts.get("ending", "Below the thresholds."),
        resolved_by=facts.get("by", ""),
        resolved_at=now,
    )

    assert planning.plan(now + timedelta(hours=8)) == mails_written
    assert planning.plan(now + timedelta(hours=9)) == 0


@pytest.mark.parametrize("is_job_first", [True, False], ids=["job first", "group first"])
@pytest.mark.parametrize(
    ("kind", "subject", "is_same"),
    [("user", "alice", True), ("application", "alice:storm", True), ("user", "bob", False)],
)
def test_the_same_harm_of_a_job_and_its_group_is_mailed_once(
    storm, automatic, mails, kind, subject, is_same, is_job_first
):
    flag = storm.flags.get()
    owner = subject.partition(":")[0]
    UserAccount.objects.update_or_create(name=owner, defaults={"email": f"{owner}@example.org"})
    copied = ("since", "until", "severity", "value", "numbers", "thresholds")
    group = rows.flag_job(
        flag.job,
        rule="impact-of-many-jobs",
        subject_kind=kind,
        subject=subject,
        owner=owner,
        **{name: getattr(flag, name) for name in copied},
    ).case
    Flag.objects.update(opened_at=F("until"))
    later = group if is_job_first else storm
    cases = Case.objects.filter(pk=later.pk)
    cases.update(severity=Flag.Severity.NOTICE)  # not accused yet

    assert planning.plan() == 1
    cases.update(severity=Flag.Severity.WARNING)
    assert planning.plan(timezone.now() + timedelta(hours=5)) == (not is_same)
    Notification.objects.update(next_attempt_at=timezone.now())
    outbox.send_due(10)

    assert len(mails.accepted) == 2 - is_same
    if is_same:
        reason = CaseDecision.objects.filter(case=later).first().reason
        first = Notification.objects.get().cases.get().case_id
        assert reason.startswith(f"Case {first} is about the same harm; a mail about it was")
        a_week_later = timezone.now() + timedelta(days=8)
        assert planning.plan(a_week_later) == 0
        cases.update(until=timezone.now() + timedelta(days=7))  # it goes on
        assert planning.plan(a_week_later) == 1


def test_operations_and_waits_of_running_jobs_have_their_own_times(storm):
    Job.objects.filter(batch_id=untraced.STORM).update(ended_at=None)
    counted = F("metadata_operations") - untraced.CALM_REQUESTS  # without requests of 12:08
    JobStatistics.objects.filter(job__batch_id=untraced.STORM).update(metadata_operations=counted)

    [topic] = topics([storm.pk], "alice")

    assert " so far (threshold " in topic.facts[0]
    [heading] = [fact for fact in topic.facts if fact.startswith("Threshold ")]
    assert heading.endswith(" 12:08:00 UTC (still running: operations are counted until then)")
    assert " 12:00:00 to 12:03:00 UTC, was from job 100." in topic.why


def test_all_figures_of_a_mail_are_of_one_time(storm):
    total = Job.objects.get(batch_id=untraced.STORM).statistics.metadata_operations
    rule = BY_CODE["metadata-operations"]
    Case.objects.filter(pk=storm.pk).update(rule=rule.code)
    Flag.objects.filter(case=storm).update(  # evaluated earlier
        rule=rule.code, value=total / 2, numbers={}, thresholds=rule.defaults
    )

    [topic] = topics([storm.pk], "alice")

    text = "\n".join([*topic.facts, *topic.worst, topic.jobs_heading, topic.request])
    assert text.count(f"{total:,.0f}") >= 3
    assert f"{total / 2:,.0f}" not in text


def test_a_rate_is_of_the_time_in_which_others_waited(storm):
    """Three minutes: their rate is more than the mean of five."""
    Server.objects.update(capacity_per_s=50)

    [topic] = topics([storm.pk], "alice")

    assert f"from {untraced.STORM_REQUESTS / 60:,.0f} to below 10 a second" in topic.request


def test_a_share_of_the_server_is_of_all_operations_at_the_peak(storm):
    Flag.objects.update(numbers={}, thresholds={"peak_impact_s": 10})
    ImpactWindow.objects.all().delete()
    JobEvidence.objects.update(impact_s=None)

    [topic] = topics([storm.pk], "alice")

    # Within the five minutes before its peak: three minutes of the storm, two calm ones.
    own = 3 * untraced.STORM_REQUESTS + 2 * untraced.CALM_REQUESTS
    share = own / (own + 5 * 11 * untraced.CALM_REQUESTS)
    assert f"At its peak, this job did {share:.0%} of all metadata operations on lake." in topic.why
    assert "delays" not in topic.why


def test_a_centre_signs_its_mails(storm, automatic, mails, settings):
    settings.CENTRE, settings.CENTRE_CONTACT = "Oak Centre", "help@oak.example"
    UserAccount.objects.filter(name="alice").update(team="HEP production", full_name="")
    planning.plan()
    outbox.send_due(10)

    [(_, mail)] = mails.accepted
    assert mail["From"] == "Oak Centre <ioportal@localhost>"
    text = mail.get_body(["plain"]).get_content()
    assert text.startswith("Hello HEP production,")
    assert text.splitlines()[-3:] == ["--", "Oak Centre", "help@oak.example"]
    assert "Oak Centre" in mail.get_body(["html"]).get_content()


def test_without_a_policy_a_member_of_staff_sends_the_draft(storm, mails):
    planning.plan(timezone.now() + timedelta(minutes=6))
    outbox.send_due(10)
    draft = Notification.objects.get()
    assert (draft.state, mails.received) == (State.DRAFT, [])

    assert outbox.release(draft, by="sam")
    outbox.send_due(10)

    draft.refresh_from_db()
    assert (draft.state, draft.released_by) == (State.SENT, "sam")
    assert not outbox.release(draft, by="sam")


def test_a_stored_policy_may_ask_for_approval(storm, automatic):
    MailPolicy.objects.update(default_mode="automatic", modes={storm.rule: "approval"})

    planning.plan()

    assert Notification.objects.get().state == State.DRAFT


def test_nothing_is_sent_about_loaded_history(storm, automatic):
    Flag.objects.update(opened_at=timezone.now())

    assert planning.plan() == 0

    reasons = {row.reason for row in CaseDecision.objects.filter(case=storm)}
    assert reasons == {"Found in historical data that was loaded later."}


def test_nothing_is_sent_on_suppressed_data(storm, automatic):
    Case.objects.update(state=Case.State.SUPPRESSED)

    assert planning.plan() == 0

    assert CaseDecision.objects.get(case=storm).reason == "Its data quality is not good."


def test_reasons_are_stored_when_they_change(storm):
    for minutes in (0, 1, 2, 3, 4, 6):
        planning.plan(storm.opened_at + timedelta(minutes=minutes))

    decisions = CaseDecision.objects.filter(case=storm).order_by("pk")
    assert [row.verdict for row in decisions] == ["later", "mail"]
    assert Notification.objects.get().reason == decisions[1].reason


@pytest.mark.parametrize("fault", ["450 busy", "421 closing", "dies", "DATA: 451 try later"])
def test_a_temporary_failure_is_tried_again(waiting, mails, fault):
    mails.faults = [fault]
    outbox.send_due(10)
    waiting.refresh_from_db()
    assert (waiting.state, waiting.attempts, mails.accepted) == (State.WAITING, 1, [])
    assert waiting.next_attempt_at > timezone.now()

    assert again(waiting).state == State.SENT
    assert len(mails.accepted) == 1


def test_a_refused_recipient_fails_for_good(waiting, mails):
    mails.faults = ["550 no such user"]
    outbox.send_due(10)

    waiting.refresh_from_db()
    assert (waiting.state, waiting.response) == (State.FAILED, "550 no such user")


def test_an_unreachable_server_is_given_up_after_all_attempts(waiting, settings):
    settings.EMAIL_PORT = 1
    for _ in outbox.RETRY_AFTER:
        assert again(waiting).state == State.WAITING
    assert again(waiting).state == State.FAILED


def test_a_lost_answer_is_uncertain_and_never_repeated(waiting, mails):
    mails.faults = ["dies after DATA"]
    outbox.send_due(10)

    assert again(waiting).state == State.UNCERTAIN
    assert len(mails.received) == 1


def test_a_worker_that_ended_leaves_nothing_behind(waiting, mails, monkeypatch):
    def killed(*_):
        raise SystemExit

    monkeypatch.setattr(smtp, "send", killed)
    with pytest.raises(SystemExit):
        outbox.send_due(10)
    monkeypatch.undo()
    waiting.refresh_from_db()
    assert waiting.state == State.SENDING

    tasks.send_mails()

    waiting.refresh_from_db()
    assert waiting.state == State.SENT
    assert len(mails.received) == 1


def test_a_worker_whose_claim_was_returned_cannot_end_its_message(waiting, mails, monkeypatch):
    send = smtp.send

    def frozen(content, address, identity, may_end):
        def later():
            outbox.recover()  # by another worker
            return may_end()

        return send(content, address, identity, later)

    monkeypatch.setattr(smtp, "send", frozen)
    outbox.send_due(10)

    assert mails.received == []
    monkeypatch.undo()
    assert again(waiting).state == State.SENT


def test_an_error_about_one_mail_stops_neither_the_others_nor_channels(
    storm, automatic, monkeypatch
):
    def broken(topics, account):
        if account.name == "alice":
            raise ValueError("The site's template is broken.")
        return compose_mail(topics, account)

    compose_mail = compose.about_cases
    monkeypatch.setattr(compose, "about_cases", broken)
    UserAccount.objects.create(name="dave", email="dave@example.org")
    Flag.objects.filter(owner="dave").update(suppression_reasons=[])
    Case.objects.filter(owner="dave").update(severity=3, state="open")
    ops = Channel.objects.create(name="ops", kind="webhook", address="https://example.org/x")
    Channel.objects.update(enabled_at=storm.opened_at - timedelta(days=1))

    with pytest.raises(ValueError, match="template is broken"):
        tasks.plan_mails()
    tasks.notify_channels()

    assert Notification.objects.filter(channel=None).get().recipient == "dave"
    assert Notification.objects.filter(channel=ops, cases__case=storm).exists()
    reason = "The mail could not be written: ValueError: The site's template is broken."
    assert CaseDecision.objects.get(case=storm).reason == reason
    assert "template is broken" in StageFailure.objects.get(stage="mail planning").error
    monkeypatch.undo()
    tasks.plan_mails()
    assert not StageFailure.objects.exists()
    assert Notification.objects.filter(recipient="alice").exists()


def test_history_that_was_loaded_later_is_not_quoted(storm, automatic):
    flag = Flag.objects.get(case=storm)
    live = flag.value
    job = Job.objects.get(batch_id=untraced.BYSTANDER)
    Job.objects.filter(pk=job.pk).update(owner="alice")
    flag.pk, flag.job, flag.subject, flag.value = None, job, str(job.pk), 50 * flag.value
    flag.since, flag.until = (each - timedelta(days=400) for each in (flag.since, flag.until))
    flag.save()  # found now
    Flag.objects.filter(subject=untraced.STORM).update(opened_at=F("until"))

    planning.plan()

    about = NotificationCase.objects.get()
    assert about.value == live
    text = about.notification.text
    assert f"job {untraced.STORM}: " in text
    assert f"job {untraced.BYSTANDER}" not in text
    assert "The job:" in text


def test_findings_that_no_longer_apply_are_the_reason_for_no_mail(storm, automatic):
    Flag.objects.update(ended_at=timezone.now(), ending="Other figures.")

    assert planning.plan() == 0

    decision = CaseDecision.objects.get(case=storm)
    assert (decision.verdict, decision.reason) == (
        "withheld",
        "It has no finding on good data that still applies.",
    )


@pytest.mark.parametrize(
    ("change", "mails_written"),
    [
        pytest.param({}, 0, id="it has not grown"),
        pytest.param({"state": "failed", "response": "550 no such user"}, 1, id="it was refused"),
        pytest.param({"state": "failed", "response": "Bounced: 4.4.7"}, 0, id="it bounced"),
        pytest.param({"reopened": True}, 1, id="the case opened again"),
    ],
)
def test_which_mails_count_for_growth(waiting, storm, change, mails_written):
    changes = {"state": "sent", **change}
    if changes.pop("reopened", False):
        CaseEvent.objects.create(case=storm, kind=CaseEvent.Kind.REOPENED)
    Notification.objects.update(finished_at=timezone.now(), next_attempt_at=None, **changes)

    assert planning.plan(timezone.now() + timedelta(days=6)) == 0
    assert planning.plan(timezone.now() + timedelta(days=8)) == mails_written


@pytest.mark.parametrize(
    ("address", "recipients", "state"),
    [
        ("a@exämple.org", [["a@xn--exmple-cua.org"]], State.SENT),
        ("müller@example.org", [], State.FAILED),
        ("a@" + "x" * 64 + ".örg", [], State.FAILED),
    ],
)
def test_addresses_are_in_ascii(storm, automatic, mails, address, recipients, state):
    UserAccount.objects.filter(name="alice").update(email=address)
    planning.plan()
    outbox.send_due(10)

    assert Notification.objects.get().state == state
    assert [to for to, _ in mails.accepted] == recipients


def test_external_names_cannot_forge_lines(storm, automatic, mails):
    Case.objects.update(application="x\r\nBcc: all@example.org\u202e")
    planning.plan()
    outbox.send_due(10)

    [(recipients, mail)] = mails.accepted
    assert recipients == ["alice@example.org"]
    assert mail["Bcc"] is None
    text = mail.get_body(["plain"]).get_content()
    assert "Bcc: all" in text
    assert "\u202e" not in text


ENCODED = [  # a header, and an empty line before a body
    "=?us-ascii?b?VWJIbwpYLUZvcmdlZDogeXByaA==?= solver",
    "=?us-ascii?b?YVgKCmJvZHly?= solver",
]


@pytest.mark.parametrize("name", ENCODED)
def test_names_in_headers_are_never_decoded(storm, automatic, mails, name):
    MailPolicy.objects.update(copies_to=["security@example.org"])
    Case.objects.update(application=name, subject=f"alice:{name}")
    queue = Channel(name="tickets", kind="ticket", address="queue@example.org", min_severity=1)
    queue.enabled_at = timezone.now() - timedelta(days=9_000)
    queue.save()
    planning.plan()
    channel_messages.plan()
    outbox.send_due(10)
    copies.write()
    outbox.send_due(10)

    assert [to for [to], _ in mails.accepted] == [
        "alice@example.org", "queue@example.org", "security@example.org"
    ]  # fmt: skip
    for _, mail in mails.accepted:
        assert name.replace("=?", "= ?") in mail["Subject"]
        assert {"From", "To", "Date", "Message-ID", "Auto-Submitted"} <= {*mail.keys()}
        assert "X-Forged" not in mail
        assert not mail.get_body(["plain"]).get_content().startswith("body")


def test_a_header_with_a_control_character_is_refused(waiting, mails, settings):
    settings.MAIL_REPLY_TO = "=?utf-8?q?a=07?= <a@example.org>"
    outbox.send_due(10)

    mail = Notification.objects.get()
    assert (mail.state, mails.received) == (State.FAILED, [])
    assert "control character" in mail.response


def test_html_is_escaped_and_loads_nothing(storm, automatic, mails, settings):
    Case.objects.update(application="<img src=https://example.org/x>")
    planning.plan()
    outbox.send_due(10)

    html = mails.accepted[0][1].get_body(["html"]).get_content()
    assert "&lt;img src" in html
    assert not re.search(r"<(link|script|iframe)|src=[\"'](?!cid:)|url\(", html)
    assert set(re.findall(r'href="(http://[^/"]+)', html)) == {settings.PORTAL_URL}
    assert len(html) < 100_000


def test_policies_are_immutable_rows(automatic):
    MailPolicy.objects.create(
        wait="01:00", interval="04:00", repeat="7 00:00", daily_cap=5, hourly_brake=9, reason="r"
    )

    assert facts.current_policy().daily_cap == 5
