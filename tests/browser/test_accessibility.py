"""Every page, light and dark, against the rules of axe-core; the size of the job page."""

import re

import pytest
from axe_playwright_python.sync_playwright import Axe
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from playwright.sync_api import expect

from tests.web import rows, stories
from tests.web.test_routes import TABLE

pytestmark = [
    pytest.mark.long,
    # Static files are served by their finders, not collected.
    pytest.mark.filterwarnings("ignore:No directory at:UserWarning"),
]

NOT_PAGES = {  # answers with files, parts of pages, redirects, and pages that need no session
    "load/",
    "now/",
    "observed/",
    "cases/<int:pk>/flags/",
    "cases/<int:pk>/weeks/",
    "compare/charts/<slug:name>/",
    "compare/jobs/<slug:name>/",
    "compare/presets/<slug:name>/",
    "experiments/uploads/<uuid:pk>/complete/",
    "experiments/uploads/<uuid:pk>/files/<int:file>/parts/<int:number>/",
    "experiments/shared/<str:key>/",
    "experiments/<slug:slug>/exports/<slug:section>/<slug:name>/",
    "experiments/<slug:slug>/runs/<int:pk>/attach/",
    "experiments/<slug:slug>/runs/<int:pk>/attachments/<int:attachment>/",
    "flags/<int:pk>/history/",
    "flags/<int:pk>/similar-jobs/",
    "incidents/impact/<str:server>/times/",
    "ingest/coverage/unexplained/",
    "jobs/<int:pk>/rpcs/",
    "jobs/<int:pk>/similar-jobs/",
    "jobs/<int:pk>/panda/",
    "jobs/<int:pk>/timelines/<slug:name>/",
    "jobs/<slug:cluster>/<str:batch_id>/",
    "load-ramp/bins/",
    "load-ramp/over-time/",
    "mails/<int:pk>/html/",
    "mails/preview/html/",
    "overview/<slug:name>/",
    "populations/histograms/<slug:metric>/",
    "servers/<str:name>/clients/",
    "servers/<str:name>/capacity/charts/<slug:chart>/",
    "servers/<str:name>/charts/<slug:chart>/",
    "trends/<slug:name>/",
}
PAGES = [
    address
    for route, address, methods in TABLE
    if "GET" in methods
    and route not in NOT_PAGES
    and not route.startswith(("api/", "palette", "login"))
]
MORE_PAGES = [
    "/nothing/",
    "/api/v1/docs/",
    "/jobs/?user=nobody",
    "/populations/?unit=panda&compare=others",
    "/ranking/?of=job",
    "/search/?q=alice",
    "/admin/",
    "/admin/site/useraccount/",
    "/admin/site/useraccount/add/",
    "/admin/site/project/add/",
    "/admin/site/nid/add/",
]
ELEMENTS = "document.querySelectorAll('*').length"
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_THEME = ["color-contrast", "link-in-text-block"]  # rules about colours
FINISH = "document.getAnimations().forEach((each) => each.finish())"  # transitions of the admin
OPEN_ALL = "document.querySelectorAll('details').forEach((each) => { each.open = true; })"


@pytest.fixture(scope="module")
def page_names(heavy_job):
    """Names and keys of one row of each kind that has a page."""
    stories.read_services()
    with transaction.atomic():
        return rows.page_names(heavy_job, User.objects.create(username="alice"))


@pytest.fixture(scope="module")
def page(browser, portal, sam, page_names):
    """A page in the browser as staff, without animations."""
    with browser.new_context(base_url=portal, reduced_motion="reduce") as context:
        session = Client()
        session.force_login(sam)
        cookie = session.cookies[settings.SESSION_COOKIE_NAME]
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": portal}])
        context.add_init_script(Axe().axe_script)
        yield context.new_page()


def violations(page, **only):
    """Return the violated rules, each with its elements and what to do."""
    options = {"resultTypes": ["violations"], "runOnly": only}
    result = page.evaluate("options => axe.run(options)", options)
    return [
        (rule["id"], node["target"], node["failureSummary"])
        for rule in result["violations"]
        for node in rule["nodes"]
    ]


@pytest.mark.parametrize("address", [*PAGES, *MORE_PAGES])
def test_pages_follow_the_rules_of_accessibility(page, page_names, address):
    page.emulate_media(color_scheme="light")
    page.goto(address.format_map(page_names))
    page.evaluate(OPEN_ALL)

    assert violations(page, type="tag", values=LEVELS) == []
    page.emulate_media(color_scheme="dark")
    page.evaluate(FINISH)
    assert violations(page, type="rule", values=OF_THEME) == []


def test_tables_of_the_job_page_become_elements_when_they_are_opened(page, page_names):
    page.goto(f"/jobs/{page_names['job']}/")
    assert page.evaluate(ELEMENTS) <= 1_500

    page.get_by_role("link", name="Start-up").click()
    expect(page).to_have_url(re.compile("start="))
    page.wait_for_load_state("networkidle")
    before = page.evaluate(ELEMENTS)
    assert before <= 1_500

    page.get_by_text("Table", exact=True).first.click()
    expect(page.get_by_role("group", name="Opens and closes, table")).to_be_visible()
    assert page.evaluate(ELEMENTS) > before
