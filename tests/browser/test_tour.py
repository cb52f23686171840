"""A first visitor follows the tour of the demo."""

import re
from email.message import EmailMessage
from mailbox import Maildir

import pytest
from django.db import transaction
from django.test import override_settings
from playwright.sync_api import expect

from ioportal.demo import mailbox
from ioportal.site.models import Cluster
from tests.web.demo.tour import date_the_story, pilots
from tests.web.rows import flag_job

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

HEADINGS = {
    "The storm now": "Overview",
    "The job that does 2 million operations": "2017-07-06T10:00-0",
    "The week of 1,175 jobs": "hepprod",
    "Before and after the search-path fix": "Compare",
    "Who was flagged, and why": "Excessive metadata operations",
    "The mail that the storm produced": "Slows down other jobs",
    "Is the data trustworthy": "Coverage",
}


@pytest.fixture
def _story(heavy_job, tmp_path, monkeypatch):
    """Create jobs of the story with the flag of one, as in a demo."""
    date_the_story(tmp_path, monkeypatch)
    anvil = Cluster.objects.get(name="anvil")
    [crisis] = pilots(anvil, "2017-07-06T10:00", 1, 1_100_000)
    pilots(anvil, "2016-10-25T00:10", 1_175, 10)
    pilots(anvil, "2017-08-10T10:00", 2, 1_500)
    pilots(anvil, "2017-08-20T10:00", 3, 700)
    mail = EmailMessage()
    mail["Subject"], mail["To"] = "Slows down other jobs: your jobs", "alice@example.org"
    Maildir(mailbox.FOLDER).add(mail)
    with transaction.atomic():
        flag_job(crisis)
    with override_settings(DEMO=True):
        yield


@pytest.mark.usefixtures("_story")
def test_a_first_visitor_follows_the_tour_and_dismisses_it(visit):
    page = visit("/")
    tour = page.get_by_role("region", name="Tour")

    for title, heading in HEADINGS.items():
        tour.get_by_role("link", name=title).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(heading)
        page.goto("/")
    tour.get_by_role("button", name="Dismiss").click()

    expect(page).to_have_url(re.compile(r"/$"))
    expect(tour).to_have_count(0)
    page.reload()
    expect(tour).to_have_count(0)
