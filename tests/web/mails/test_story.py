"""The four mails of the reports: complaint, request, confirmed effect, and the green light.

They are sent as the story goes, and recomposed from its history by previews.
"""

from datetime import timedelta
from html import unescape

import pytest
from django.core.cache import cache
from django.db.models import F

from ioportal.alerts import answers, planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.follow_ups import follow_up
from ioportal.alerts.models import MailPolicy, Notification
from ioportal.findings.models import Case, Flag
from ioportal.site.models import UserAccount
from tests import loading
from tests.logs import at
from tests.web.mails import story
from tests.web.reading import words_of

pytestmark = pytest.mark.long

WEEK = timedelta(days=7)
SENT, LATER = at("12:09:30"), at("12:30")
CONFIRMED = SENT + timedelta(days=6)
REQUEST = (
    "Please run at most 4 of these jobs in parallel (20 ran in parallel). They then do at most 20% "
    "of the server's work (together below 1,000 metadata operations a second) and leave the rest "
    "to others. Solved when the extra wait of other users is below 10 s in every five minutes."
)
EFFECT = (
    "metadata operations fell 4.00\N{MULTIPLICATION SIGN} (± <0.1 %), "
    "median 2,100,000 operations → 525,000 operations"
)
COUNTS = " (40 jobs on 6 days before 5 July, 25 jobs on 6 days since 5 July)"
SAFE = (
    "Safe up to 5 of these jobs in parallel, the highest number seen since 5 July: {} jobs ran "
    "without such a finding."
)


def words(mail):
    return " ".join(mail.get_body(["plain"]).get_content().split())


@pytest.fixture(scope="module")
def crisis_case(module_site, module_logs):
    """Load the storm, as if it had been evaluated live; return the key of its case."""
    UserAccount.objects.create(name="hepprod", team="PanDA", email="panda@example.org")
    story.ingest_storm(module_logs)
    flags = loading.evaluate()
    Flag.objects.update(opened_at=F("until"))
    [key] = {flag.case_id for (rule, _), flag in flags.items() if rule == "impact-of-many-jobs"}
    return key


@pytest.fixture
def crisis(crisis_case):
    return Case.objects.get(pk=crisis_case)


def test_a_crisis_is_complained_about_confirmed_and_over(crisis, logs, automatic, mails, client):
    MailPolicy.objects.update(daily_cap=9)  # all mails are written today
    planning.plan()
    outbox.send_due(10)
    Notification.objects.update(finished_at=SENT)
    first = Notification.objects.get()
    comment = {"kind": "fixed", "comment": "20 slots are 5 now."}
    client.post(f"/answers/{answers.key_of(first)}/fixed/", comment)
    story.ingest_later(logs)
    loading.evaluate()
    story.repeat()
    times = (LATER, CONFIRMED, CONFIRMED, SENT + WEEK, CONFIRMED + WEEK)
    assert [follow_up(now) for now in times] == [0, 1, 0, 0, 1]
    outbox.send_due(10)

    complaint, thanks, green_light = (words(mail) for _, mail in mails.accepted)
    assert "42,000,000, median 2,100,000 a job (open 100%)" in complaint
    assert "the requests of other users would have waited" in complaint
    assert REQUEST in complaint
    assert "It is fixed. 20 slots are 5 now." in thanks
    assert EFFECT + COUNTS in thanks
    assert f"Our request still applies: {REQUEST}" in thanks
    assert "after 7 days without such a finding" in thanks
    assert f"Our request no longer applies: {REQUEST}" in green_light
    assert EFFECT in green_light
    assert SAFE.format(33) in green_light
    replies = [mail["In-Reply-To"] for _, mail in mails.accepted]
    assert replies == [None, mails.accepted[0][1]["Message-ID"], replies[1]]


def test_a_recurring_problem_postpones_the_green_light(crisis, logs, automatic, mails):
    planning.plan()
    outbox.send_due(10)
    Notification.objects.update(finished_at=SENT)
    story.ingest_later(logs)
    loading.evaluate()
    story.repeat()
    crisis.flags.update(since=at("12:14:30"), until=at("12:15"))

    assert follow_up(SENT + WEEK) == 1
    assert "still applies" in Notification.objects.latest("pk").text


def test_the_mails_are_recomposed_from_history(crisis, logs, as_staff):
    story.ingest_later(logs)
    loading.evaluate()
    story.repeat()
    Flag.objects.update(opened_at=at("12:00") + 100 * WEEK)  # loaded later: no mail was sent
    cache.clear()

    def preview(query):
        page = as_staff.get(f"/mails/preview/?case={crisis.pk}{query}")
        html = as_staff.get(f"/mails/preview/html/?{page.context['preview'].query}")
        assert html.status_code == 200
        return unescape(words_of(page)), unescape(words_of(html))

    first, _ = preview("")
    thanks, thanks_html = preview("&step=thanks")
    early, _ = preview("&step=thanks&at=2017-07-06T12:30Z")
    green_light, green_light_html = preview("&step=green+light")
    reminder, _ = preview("&step=reminder")

    assert "median 2,100,000 a job" in first
    assert REQUEST in first
    assert "It would be written: The jobs have improved" in thanks
    for text in (thanks, thanks_html, green_light, green_light_html):
        assert EFFECT in text
        assert REQUEST in text
    assert "Our request still applies" in thanks_html
    assert "It would be written: The jobs have improved, without findings" in green_light
    assert SAFE.format(33) in green_light
    for sample, state in ((early, "unknown"), (reminder, "improved")):
        assert f"It would not be written, and its wording is a sample. Since the mail: {state}" in (
            sample
        )
        assert "[Sample wording: this mail would not be written now.]" in sample
        assert "Thank you" not in sample
    assert not Notification.objects.exists()


@pytest.mark.parametrize(
    "query",
    [
        "step=escalation",
        "step=thanks&at=yesterday",
        "at=2017",
        "step=thanks&sent=2017-07-06&at=2017-07-05",
    ],
)
def test_an_invalid_choice_shows_the_error_and_no_mail(crisis, as_staff, query):
    cache.clear()
    page = as_staff.get(f"/mails/preview/?case={crisis.pk}&{query}")

    assert page.context["preview"].form.errors
    words = words_of(page)
    assert "No mail is shown. Correct the values above." in words
    assert "Please run at most" not in words
    assert "Create draft" not in words
