"""Lines that cannot be read are counted, all of them; the first of each reason are kept."""

import pytest

from ioportal.ingest import loading
from ioportal.ingest.models import Segment
from tests.logs import Run, at, job_stats, rpc, sacct

pytestmark = pytest.mark.usefixtures("site")


def test_all_rejects_are_counted_and_the_first_thousand_of_a_reason_are_kept(
    logs, ingest, queries, reconcile
):
    lines = [rpc("12:00"), *["Handled RPC"] * 1_500, *[rpc("12:01")[:-20]] * 3]
    account = ingest("rpctrace", logs("t", "\n".join(lines)), server="mds1")

    assert account["rejected"] == 1_503
    counted = Segment.objects.get().rejected_by_reason
    assert sorted(counted.values()) == [3, 1_500]
    kept = queries("SELECT count(*), min(line), max(line) FROM ingest_reject GROUP BY reason")
    assert sorted(kept) == [(3, 1_502, 1_504), (1_000, 2, 1_001)]
    assert reconcile()


def test_the_first_thousand_of_a_reason_are_kept_across_parts(logs, ingest, queries):
    bad, blank = ["77|cut"] * 600, [""] * 10_000  # a part has ten thousand lines
    text = "\n".join([sacct(Run("77")), *bad, *blank, *bad, *blank, *bad])

    account = ingest("sacct", logs("jobs", text), cluster="anvil")

    assert account["rejected"] == 1_800
    assert queries("SELECT count(*), max(line) FROM ingest_reject") == [(1_000, 11_003)]


def test_a_reject_keeps_its_line_its_text_and_its_reason(logs, ingest, queries):
    bad = rpc("12:01")[:120] + "\x00\xff" * 3_000
    ingest("rpctrace", logs("t", rpc("12:00"), bad.encode("latin-1")), server="mds1")

    [(line, text, reason)] = queries("SELECT line, text, reason FROM ingest_reject")
    assert line == 2
    assert text.startswith(bad[:120])
    assert len(text) == 1_000
    assert reason


def test_so_many_reasons_are_told_apart_and_no_more(logs, ingest, queries, reconcile):
    entry = {f"unheard_of_{number}": 1 for number in range(loading.REASONS_STORED + 50)}
    text = job_stats("lake-MDT0000", {"77": {"open": 1} | entry})

    account = ingest("job_stats", logs("dump", text), at=at("12:00").isoformat())

    assert account["rejected"] == loading.REASONS_STORED + 50
    counted = Segment.objects.get().rejected_by_reason
    assert len(counted) == loading.REASONS_STORED + 1
    assert counted["other reasons"] == 50
    assert queries("SELECT count(*) FROM ingest_reject") == [(loading.REASONS_STORED,)]
    assert reconcile()


def test_the_account_in_words_names_reasons_and_files(logs, call):
    path = logs("t", rpc("12:00"), "Handled RPC")

    said = call("ingest", "rpctrace", path, "--server=mds1")

    assert "2  = 1 accepted + 1 rejected + 0 irrelevant" in said
    assert "1  no debug-log header: expected the output of lctl dk" in said
    assert f"({path}, first in line 2)" in said


def test_what_was_loaded_before_is_said_to_be(logs, call):
    path = logs("t", rpc("12:00"))
    call("ingest", "rpctrace", path, "--server=mds1")

    said = call("ingest", "rpctrace", path, "--server=mds1")

    assert f"{path}: already loaded on " in said
    assert "no change" in said
