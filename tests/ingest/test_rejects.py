"""Rejected lines: all are counted, and the first of each reason are stored."""

import pytest

from ioportal.ingest import loading
from ioportal.ingest.models import Segment
from tests.logs import Run, at, handling, job_stats, rpc, sacct

pytestmark = pytest.mark.usefixtures("site")


def test_all_rejects_are_counted_and_a_thousand_of_each_reason_are_stored(
    logs, ingest, queries, reconcile
):
    lines = [rpc("12:00"), *["Handled RPC"] * 1_500, *[rpc("12:01")[:-20]] * 3]
    account = ingest("rpctrace", logs("t", "\n".join(lines)), server="mds1")

    assert account["rejected"] == 1_503
    counted = Segment.objects.get().rejected_by_reason
    assert sorted(counted.values()) == [3, 1_500]
    stored = queries("SELECT count(*), min(line), max(line) FROM ingest_reject GROUP BY reason")
    assert sorted(stored) == [(3, 1_502, 1_504), (1_000, 2, 1_001)]
    assert reconcile()


def test_the_limit_of_stored_rejects_applies_across_parts(logs, ingest, queries):
    bad, blank = ["77|cut"] * 600, [""] * 10_000  # a part has ten thousand lines
    text = "\n".join([sacct(Run("77")), *bad, *blank, *bad, *blank, *bad])

    account = ingest("sacct", logs("jobs", text), cluster="anvil")

    assert account["rejected"] == 1_800
    assert queries("SELECT count(*), max(line) FROM ingest_reject") == [(1_000, 11_003)]


def test_a_reject_has_a_line_number_a_text_and_a_reason(logs, ingest, queries):
    bad = rpc("12:01")[:120] + "\x00\xff" * 3_000
    ingest("rpctrace", logs("t", rpc("12:00"), bad.encode("latin-1")), server="mds1")

    [(line, text, reason)] = queries("SELECT line, text, reason FROM ingest_reject")
    assert line == 2
    assert text.startswith(bad[:120])
    assert len(text) == 1_000
    assert reason


def test_the_number_of_distinct_reasons_is_limited(logs, ingest, queries, reconcile):
    entry = {f"unknown_{number}": 1 for number in range(loading.REASONS_STORED + 50)}
    text = job_stats("lake-MDT0000", {"77": {"open": 1} | entry})

    account = ingest("job_stats", logs("dump", text), at=at("12:00").isoformat())

    assert account["rejected"] == loading.REASONS_STORED + 50
    counted = Segment.objects.get().rejected_by_reason
    assert len(counted) == loading.REASONS_STORED + 1
    assert counted["other reasons"] == 50
    assert queries("SELECT count(*) FROM ingest_reject") == [(loading.REASONS_STORED,)]
    assert reconcile()


def test_the_summary_names_reasons_and_files(logs, call):
    path = logs("t", rpc("12:00"), "Handled RPC")

    output = call("ingest", "rpctrace", path, "--server=mds1")

    assert "2  = 1 accepted + 1 rejected + 0 irrelevant" in output
    assert "1  no debug-log header: expected the output of lctl dk" in output
    assert f"({path}, first in line 2)" in output


def test_a_file_that_is_already_loaded_is_reported(logs, call):
    path = logs("t", rpc("12:00"))
    call("ingest", "rpctrace", path, "--server=mds1")

    output = call("ingest", "rpctrace", path, "--server=mds1")

    assert f"{path}: already loaded on " in output
    assert "no change" in output


def test_only_the_truncated_line_is_rejected(tmp_path, ingest):
    path = tmp_path / "cut.log"
    path.write_text(rpc("12:00") + "\n" + rpc("12:01")[:-30])

    account = ingest("rpctrace", path, server="mds1")

    assert (account["accepted"], account["rejected"]) == (1, 1)


def test_a_job_that_ends_before_it_starts_is_rejected(logs, ingest, queries):
    path = logs("jobs", sacct(Run("77", start="12:00", end="11:00"), Run("78")))

    account = ingest("sacct", path, cluster="anvil")

    assert (account["accepted"], account["rejected"]) == (1, 1)
    assert queries("SELECT line, reason FROM ingest_reject") == [
        (2, "the job ends at 2017-07-05T11:00:00Z, before it starts at 2017-07-05T12:00:00Z")
    ]
    assert queries("SELECT batch_id FROM jobs_job") == [("78",)]


def test_lines_of_other_subsystems_are_irrelevant(logs, ingest):
    account = ingest("rpctrace", logs("t", rpc("12:00") + "\n" + handling("12:01")), server="mds1")

    assert (account["lines"], account["irrelevant"]) == (2, 1)
