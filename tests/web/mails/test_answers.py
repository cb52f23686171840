"""Answers through links in mails."""

import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from ioportal.alerts import answers, planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.models import Answer, Notification
from ioportal.findings.models import Case, CaseEvent
from ioportal.site.models import Server
from tests.web.reading import text_of, words_of


@pytest.fixture
def links(storm, automatic, mails):
    """Send the mail about a storm; return the paths of its links for answers by kind."""
    planning.plan()
    outbox.send_due(10)
    text = mails.accepted[0][1].get_body(["plain"]).get_content()
    found = re.findall(r"http\S+/answers/\S+/(\w+)/", text)
    addresses = re.findall(r"http\S+/answers/\S+", text)
    return {kind: urlsplit(url).path for kind, url in zip(found, addresses, strict=True)}


def test_an_answer_becomes_an_event_of_the_case(client, storm, links):
    page = client.get(links["working"])
    assert 'value="working"' in page.content.decode()
    assert not Answer.objects.exists()  # scanners open links

    client.post(links["working"], {"kind": "working", "comment": "I stopped <b>it</b>"})

    event = storm.events.get(kind=CaseEvent.Kind.ANSWERED)
    assert (event.by, event.text) == ("alice", "I am on it. I stopped <b>it</b>")


def test_the_page_shows_the_evidence_and_an_earlier_answer(client, storm, links):
    client.post(links["working"], {"kind": "working", "comment": "Next week"})

    page = words_of(client.get(links["fixed"]))

    assert "Evidence (log-in required): Slows down other jobs, jobs named storm, lake" in page
    assert "I am on it. Next week" in page


def test_the_owner_answers_on_the_page_of_the_case(as_alice, storm, links):
    page = words_of(as_alice.get(f"/cases/{storm.pk}/"))
    assert "I am on it It is fixed This is wrong" in page
    sent = Notification.objects.get().created_at
    assert f"Asked in the mail of {sent:%Y-%m-%d %H:%M:%S} " in page
    assert " to alice" in page.partition("Mails")[2]  # the mail about it

    for _ in range(2):  # submitted twice
        as_alice.post(f"/cases/{storm.pk}/answer/", {"kind": "wrong", "comment": "Not mine"})

    event = storm.events.get(kind=CaseEvent.Kind.ANSWERED)
    assert (event.by, event.text) == ("alice", "This is wrong. Not mine")
    assert Answer.objects.get().kind == Answer.Kind.WRONG  # no follow-up


def test_an_answer_needs_no_mail_but_the_owner(client, as_alice, storm, bob):
    assert as_alice.post(f"/cases/{storm.pk}/answer/", {"kind": "x"}).status_code == 302
    assert not storm.events.filter(kind=CaseEvent.Kind.ANSWERED).exists()
    as_alice.post(f"/cases/{storm.pk}/answer/", {"kind": "fixed"})
    assert storm.events.get(kind=CaseEvent.Kind.ANSWERED).text == "It is fixed."

    client.force_login(bob)  # of the same project
    assert client.post(f"/cases/{storm.pk}/answer/", {"kind": "fixed"}).status_code == 403
    assert client.post(f"/cases/{storm.pk}/draft/").status_code == 403


def test_the_owner_is_shown_the_request_and_no_advice_of_staff(as_alice, storm):
    for address in (f"/cases/{storm.pk}/", f"/flags/{storm.flags.get().pk}/"):
        assert "Advice" not in words_of(as_alice.get(address))

    Server.objects.update(capacity_per_s=50)
    assert "Before you run this job again, please reduce" in words_of(
        as_alice.get(f"/cases/{storm.pk}/")
    )


def test_only_exports_of_staff_have_advice(as_alice, storm, sam):
    flag = storm.flags.get()
    exports = (
        f"/flags/{flag.pk}/?format=json",
        f"/cases/{storm.pk}/?format=json",
        f"/cases/{storm.pk}/flags/?format=csv",
        f"/cases/{storm.pk}/flags/?format=json",
        "/cases/?state=all&format=csv",
    )
    advice = "Check which files it opens"
    assert advice in flag.advice

    for address in exports:
        assert advice not in text_of(as_alice.get(address))
    assert advice not in text_of(as_alice.get(f"/flags/{flag.pk}/"))
    as_alice.force_login(sam)
    for address in exports:
        assert advice in text_of(as_alice.get(address))


def test_the_same_answer_again_changes_nothing(client, storm, links):
    for _ in range(3):
        client.post(links["fixed"], {"kind": "fixed", "comment": ""})

    assert Answer.objects.count() == storm.events.filter(kind="answered").count() == 1


def test_many_answers_are_refused(client, links):
    for number in range(25):
        page = client.post(links["fixed"], {"kind": "fixed", "comment": f"{number}"})

    assert Answer.objects.count() == 20
    assert "too many answers" in page.content.decode()


@pytest.mark.parametrize("forge", [str.upper, lambda key: f"{key}x", lambda key: key[1:]])
def test_a_forged_link_is_refused(client, links, forge):
    key = links["fixed"].split("/")[2]

    assert client.post(f"/answers/{forge(key)}/fixed/", {"kind": "fixed"}).status_code == 404


def test_a_link_expires(client, links):
    mail = Notification.objects.get()
    mail.created_at -= timedelta(days=61)

    assert client.get(f"/answers/{answers.key_of(mail)}/fixed/").status_code == 404


def test_the_archive_does_not_contain_the_key(client, sam, links):
    mail = Notification.objects.get()
    key = links["fixed"].split("/")[2]
    client.force_login(sam)

    pages = [client.get(f"/mails/{mail.pk}/{part}").content.decode() for part in ("", "html/")]

    assert all("YOUR-KEY" in page and key not in page for page in pages)


def test_a_case_with_another_owner_is_neither_shown_nor_answered(client, storm, links):
    Case.objects.update(owner="bob", application="secret_of_bob")

    for page in (client.get(links["fixed"]), client.post(links["fixed"], {"kind": "fixed"})):
        assert "has another owner now" in words_of(page)
        assert "bob" not in page.content.decode()
    assert not storm.events.filter(kind=CaseEvent.Kind.ANSWERED).exists()
    assert not Answer.objects.exists()


def test_drafts_cannot_be_answered(client, links):
    Notification.objects.update(state=Notification.State.DRAFT)

    assert client.get(links["fixed"]).status_code == 404
