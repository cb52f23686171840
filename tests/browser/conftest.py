"""A browser, and a served portal with the job of `stories.heavy_job`."""

import os
import shutil
from urllib.parse import urlsplit

import pytest
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, override_settings
from playwright.sync_api import sync_playwright
from pytest_django.live_server_helper import LiveServer

from tests import contents
from tests.web import stories

PASSWORD = "password of sam"  # noqa: S105  (a user of the tests)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="package")
def browser():
    """Start Debian's Chromium with Playwright."""
    # Playwright's event loop runs in this thread, so Django would reject database calls.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "yes"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        yield started
        started.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture(scope="module")
def heavy_job(browser, django_db_setup, django_db_blocker, tmp_path_factory):
    """The job of `stories.heavy_job`, ingested once for all tests of a module."""
    with django_db_blocker.unblock():
        yield stories.heavy_job(tmp_path_factory.mktemp("logs"))
        contents.remove()
        connection.close()  # after Playwright's event loop, this thread opens another one


@pytest.fixture
def db(heavy_job):
    """Data of tests is committed for the server, and removed after the last test of the module."""


@pytest.fixture(autouse=True)
def _test_database(db):
    """Name `db`: without it pytest-django leaves the database of the settings in use."""


@pytest.fixture(scope="module")
def sam(heavy_job):
    """She is staff."""
    return User.objects.create_superuser("sam", password=PASSWORD)


@pytest.fixture(scope="module")
def portal(sam):
    """Serve the portal, with static files that are not collected; return its address."""
    storages = {
        **django_settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    with override_settings(STORAGES=storages):
        server = LiveServer("localhost")
        yield server.url
        server.stop()


@pytest.fixture
def complaints():
    """Collect console errors, uncaught exceptions, responses from 400 on and external requests."""
    return []


@pytest.fixture
def visit(browser, portal, sam, complaints):
    """Open a page as staff; the test fails if the browser reported errors."""
    contexts = []

    def watch(page):
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", lambda r: r.status >= 400 and complaints.append(f"{r.status} {r.url}"))
        page.on("request", lambda r: is_away(r.url) and complaints.append(f"away: {r.url}"))

    def is_away(url):
        return urlsplit(url).scheme not in {"data", "blob"} and not url.startswith(portal)

    def open_page(path="/", **options):
        context = browser.new_context(base_url=portal, **options)
        contexts.append(context)
        session = Client()
        session.force_login(sam)
        cookie = session.cookies[django_settings.SESSION_COOKIE_NAME]
        context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": portal}])
        page = context.new_page()
        watch(page)
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()

    assert complaints == []
