"""Remedies follow the user's own operations."""

from ioportal.jobs.analysis.remedies import ranked


def test_remedies_are_ranked_by_operations():
    counts = {"open": 500, "close": 100, "getattr": 300, "mknod": 50, "unlink": 60}

    remedies = ranked(counts, startup=200, failed_opens=400)

    assert [remedy.operations for remedy in remedies] == [400, 300, 200]
    assert "PYTHONPATH" in remedies[0].text
    assert remedies[0].percent == "40%"


def test_rare_operations_need_no_remedy():
    assert ranked({"open": 1, "readpage": 99}, startup=None, failed_opens=None) == []
    assert ranked({}, startup=None, failed_opens=None) == []


def test_opens_that_fail_are_not_small_files():
    [remedy] = ranked({"open": 100}, startup=0, failed_opens=95)

    assert "search" in remedy.finding
