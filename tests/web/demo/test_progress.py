"""The progress of the simulated year on the pages and on the terminal."""

import os
import time

import pytest

from ioportal.demo import progress
from ioportal.demo.progress import Progress
from tests.web.reading import words_of


@pytest.fixture
def loading(tmp_path, monkeypatch):
    """Load the simulated year for 120 s, until a third is done."""
    monkeypatch.setattr(progress, "FILE", tmp_path / "progress.json")
    work = Progress("Simulating a year before loading it")
    assert work.text() == "Simulating a year before loading it."
    begun = time.monotonic()
    clock = [begun]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    work.begin("Loading the simulated year", total=300_000_000)
    for _ in range(12):
        assert ("left" in work.text()) == (clock[0] >= begun + 60)
        clock[0] += 10
        work.done += 100_000_000 // 12
        work.mark()
    with work:
        while not progress.FILE.exists():
            time.sleep(0.01)
        yield work
    assert not progress.FILE.exists()


def test_staff_see_the_progress_on_all_pages(loading, as_staff, client):
    text = "Loading the simulated year: 33 %, about 4 minutes left."

    assert text in words_of(as_staff.get("/"))
    assert text in words_of(as_staff.get("/rules/"))
    as_staff.logout()
    assert text not in words_of(client.get("/login/"))


def test_the_terminal_shows_the_rate(loading):
    assert loading.status() == ("Loading the simulated year: 33 %, 0.8 MB/s, about 4 minutes left")


def test_the_rate_is_that_of_the_latest_minutes(loading, monkeypatch):
    later = time.monotonic() + 180
    monkeypatch.setattr(progress.time, "monotonic", lambda: later)
    while '"text": "Loading the simulated year: 33 %."' not in progress.FILE.read_text():
        time.sleep(0.01)

    assert loading.status() == "Loading the simulated year: 33 %, 0.0 MB/s"


def test_the_progress_of_a_killed_process_is_not_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "FILE", tmp_path / "progress.json")
    progress.FILE.write_text('{"text": "Loading", "status": "Loading"}')
    assert progress.current_text() == "Loading"

    an_hour_ago = time.time() - 3_600
    os.utime(progress.FILE, (an_hour_ago, an_hour_ago))

    assert progress.current_text() == ""


@pytest.mark.parametrize(
    ("total", "left"),
    [(6_000, "98 minutes"), (10_000, "3 hours"), (75_000, "21 hours"), (800_000, "9 days")],
)
def test_long_times_are_in_hours_and_days(monkeypatch, total, left):
    clock = [time.monotonic()]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    work = Progress("Loading", total=total)
    for _ in range(9):
        clock[0] += 10
        work.done += 10
        work.mark()

    assert work.text().endswith(f", about {left} left.")


def test_a_rate_that_varies_has_no_estimate(monkeypatch):
    clock = [time.monotonic()]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    work = Progress("Loading", total=10_000)
    for second in range(100):
        clock[0] += 1
        work.done += 1 if second < 50 else 3
        work.mark()

    assert work.text() == "Loading: 2 %."
