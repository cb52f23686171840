"""A browser and a logged-in user for the portal."""

import os
import shutil
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import sync_playwright

from tests.web import stories

PASSWORD = "password of sam"  # noqa: S105  (a user of one test)
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


@pytest.fixture(autouse=True)
def _static_files_as_they_are(settings):
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }


@pytest.fixture
def heavy_job(browser, transactional_db, tmp_path):
    """Ingest the job of `stories.heavy_job`."""
    folder = tmp_path / "logs"
    folder.mkdir()
    return stories.heavy_job(folder)


@pytest.fixture
def complaints():
    """Collect console errors, uncaught exceptions, responses from 400 on and external requests."""
    return []


@pytest.fixture
def visit(browser, live_server, heavy_job, complaints):
    """Open a page as staff; the test fails if the browser reported errors."""
    contexts = []
    User.objects.create_superuser("sam", password=PASSWORD)

    def watch(page):
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("response", lambda r: r.status >= 400 and complaints.append(f"{r.status} {r.url}"))
        page.on("request", lambda r: is_away(r.url) and complaints.append(f"away: {r.url}"))

    def is_away(url):
        parts = urlsplit(url)
        return parts.scheme not in {"data", "blob"} and not url.startswith(live_server.url)

    def open_page(path="/", **options):
        context = browser.new_context(base_url=live_server.url, **options)
        contexts.append(context)
        page = context.new_page()
        watch(page)
        page.goto("/login/")
        page.get_by_label("User name").fill("sam")
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.goto(path)
        return page

    yield open_page
    for context in contexts:
        context.close()

    assert complaints == []
