"""Mails in the browser: what staff decide, and what a recipient sees."""

import pytest
from django.db.models import F

from ioportal.alerts import planning
from ioportal.alerts.models import Notification
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount

State = Notification.State


@pytest.fixture
def draft(page_names):
    UserAccount.objects.create(name="alice", email="alice@example.org")
    Flag.objects.update(opened_at=F("until"))
    Notification.objects.update(state=State.DRAFT, finished_at=None)
    return Notification.objects.get()


def test_staff_release_a_draft(as_staff, draft):
    assert "1 draft to approve" in as_staff.get("/mails/").content.decode()

    response = as_staff.post(f"/mails/{draft.pk}/", {"action": "send"}, follow=True)

    assert "The mail is in the outbox." in response.content.decode()
    draft.refresh_from_db()
    assert (draft.state, draft.released_by) == (State.WAITING, "sam")
    again = as_staff.post(f"/mails/{draft.pk}/", {"action": "send"}, follow=True)
    assert "The mail was changed meanwhile." in again.content.decode()


def test_the_page_of_a_stale_draft_shows_why_it_cannot_be_sent(as_staff, draft):
    address = f"/mails/{draft.pk}/"
    assert 'value="send"' in as_staff.get(address).content.decode()

    Case.objects.update(state="acknowledged")
    page = as_staff.get(address).content.decode()
    assert "This mail cannot be sent. The case is acknowledged" in page
    assert 'value="send"' not in page
    answer = as_staff.post(address, {"action": "send"}, follow=True).content.decode()
    assert "The mail cannot be sent. The case is acknowledged" in answer
    draft.refresh_from_db()
    assert draft.state == State.DRAFT


def test_staff_discard_a_draft(as_staff, draft):
    as_staff.post(f"/mails/{draft.pk}/", {"action": "discard"})

    draft.refresh_from_db()
    assert draft.state == State.DISCARDED


def test_a_recipient_sees_sent_mails_only(client, alice, draft):
    client.force_login(alice)
    assert client.get(f"/mails/{draft.pk}/").status_code == 404
    assert "No mails were sent to you." in client.get("/mails/").content.decode()

    Notification.objects.update(state=State.SENT)

    assert "Hello Alice" in client.get(f"/mails/{draft.pk}/").content.decode()


def test_a_digest_has_an_address_instead_of_a_user_and_cases(as_staff, draft):
    draft.cases.all().delete()
    Notification.objects.update(recipient="", kind=Notification.Kind.DIGEST)

    assert "<td>alice@example.org</td>" in as_staff.get("/mails/").content.decode()
    page = as_staff.get(f"/mails/{draft.pk}/").content.decode()
    assert "alice@example.org" in page
    assert "<dt>Cases</dt>" not in page


def test_a_case_says_why_no_mail_was_written(as_staff, page_names):
    planning.plan()

    page = as_staff.get(f"/cases/{page_names['case']}/").content.decode()

    assert "Found in historical data that was loaded later." in page


def test_text_of_a_mail_is_escaped(as_staff, draft):
    Notification.objects.update(text="<script>alert(1)</script>", subject="<b>x</b>")

    for address in ("/mails/", f"/mails/{draft.pk}/"):
        page = as_staff.get(address).content.decode()
        assert "<script>alert" not in page
        assert "<b>x</b>" not in page
