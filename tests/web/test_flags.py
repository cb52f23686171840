"""The triage inbox and the page of a flag: what is seen, by whom, and what staff do about it."""

import pytest

from tests.logs import Run, at, job_stats, sacct
from tests.web.reading import words_of

NAME = "<b>relax</b>\u202e"


@pytest.fixture
def found(site, logs, ingest, judge):
    """The flag of alice's job 77, which did 2,400,000 metadata operations from 12:00 to 12:20."""
    ingest("sacct", logs("jobs", sacct(Run("77", end="12:20", name=NAME))), cluster="anvil")
    for minute in range(21):
        entries = {"9": {"open": 1}, **({"77": {"open": 120_000 * minute}} if minute else {})}
        text = job_stats("lake-MDT0000", entries)
        ingest("job_stats", logs(f"read-{minute}", text), at=at(f"12:{minute:02d}").isoformat())
    flags = judge()
    assert ("metadata-operations", "77") in flags, flags
    return flags["metadata-operations", "77"]


def post(client, path, *flags, **fields):
    """Send the form of triage."""
    return client.post(path, {"flag": [flag.pk for flag in flags], **fields}, follow=True)


def test_the_inbox_says_what_was_found_of_whom(as_staff, found):
    words = words_of(as_staff.get("/flags/"))

    assert "Very many metadata operations" in words
    assert "job 77 <b>relax</b>\\u202e" in words
    assert "2,400,000 operations limit 2,000,000 operations" in words


def test_a_flag_tells_its_numbers_beside_their_limits(as_staff, found):
    words = words_of(as_staff.get(f"/flags/{found.pk}/"))

    assert words


def test_what_solved_it_is_told_to_whoever_meets_it_again(as_staff, found):
    post(as_staff, "/flags/", found, action="resolve", why="moved conda to CVMFS")

    found.refresh_from_db()
    assert (found.state, found.resolved_by) == ("resolved", "sam")
    assert "moved conda to CVMFS" in words_of(as_staff.get(f"/flags/{found.pk}/"))
