"""From a storm to a mail, its user's answer, and what changed."""

import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.utils import timezone
from playwright.sync_api import expect

from ioportal.alerts import planning
from ioportal.alerts.delivery import outbox
from ioportal.alerts.follow_ups import follow_up
from ioportal.alerts.models import Notification
from ioportal.findings.models import Case
from tests import contents, loading, untraced
from tests.alerts.conftest import load_storm, mails
from tests.logs import at
from tests.repeats import WEEK_AFTER, WEEK_BEFORE, repeat_jobs

__all__ = ["mails"]

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

IS_WHOLE = """() => {
    const frame = document.querySelector("iframe");
    return frame.contentDocument.body.scrollHeight <= frame.clientHeight;
}"""


@pytest.fixture(scope="module")
def heavy_job(browser, django_db_setup, django_db_blocker):
    """No data but the storm's."""
    with django_db_blocker.unblock():
        yield
        contents.remove()
        connection.close()


def test_a_storm_is_mailed_about_answered_and_followed_up(
    visit, browser, portal, site, mails, logs
):
    storm = Case.objects.get(pk=load_storm(logs))
    planning.plan(timezone.now() + timedelta(minutes=6))
    page = visit("/cases/")
    page.get_by_role("link", name=storm.title).first.click()
    page.get_by_role("link", name="to alice").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("Hello Alice Ng,")).to_be_visible()
    expect(frame.get_by_role("img")).to_have_js_property("naturalWidth", 1200)
    page.wait_for_function(IS_WHOLE)  # shown to its end, with the buttons for answers
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(IS_WHOLE)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("The mail is in the outbox.")).to_be_visible()

    outbox.send_due(10)
    [(recipients, mail)] = mails.accepted
    assert recipients == ["alice@example.org"]
    html = mail.get_body(["html"]).get_content()
    link = re.search(r'href="([^"]+/working/)"', html)[1]

    with browser.new_context(base_url=portal) as context:  # without a log-in
        user = context.new_page()
        user.goto(urlsplit(link).path)
        user.get_by_label("What did you find or change?").fill("I run one job now.")
        user.get_by_role("button", name="Send the answer").click()
        expect(user.get_by_role("status")).to_contain_text("Thank you.")
    inbox = visit("/cases/")
    expect(inbox.get_by_text("alice: I am on it. I run one job now.")).to_be_visible()

    Notification.objects.update(finished_at=at("12:09:30"))
    untraced.ingest_later(logs, 3 * untraced.CALM_REQUESTS)
    loading.evaluate()
    repeat_jobs([untraced.STORM], WEEK_BEFORE, daily=2)
    repeat_jobs(untraced.LATER, WEEK_AFTER)
    follow_up(at("12:30") + timedelta(days=6))
    case = visit(f"/cases/{storm.pk}/")
    expect(case.get_by_text(re.compile("Improved: peak metadata rate fell .* → "))).to_be_visible()
    thanks = Notification.objects.get(kind=Notification.Kind.FOLLOW_UP)
    outbox.release(thanks, by="sam")
    outbox.send_due(10)
    assert mails.accepted[1][1]["In-Reply-To"] == mail["Message-ID"]
