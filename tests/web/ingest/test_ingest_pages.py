import re

import pytest

from ioportal.core.formatting import UNKNOWN
from ioportal.ingest.models import DirtyReads, Segment
from ioportal.site.models import Cluster, Filesystem, Target
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from tests.logs import Run, at, job_stats, md_stats, rpc, sacct
from tests.web.reading import csv_of, json_of, text_of, words_of

HOSTILE = "00000100:00100000:7.0:1499256000.0:0:1:0:(x) Handled RPC \x1b[31m<b>no</b> shape"


@pytest.fixture
def trace(module_site, logs, ingest):
    """A trace with a job's, an unregistered client's and an unreadable RPC."""
    lines = [rpc("12:00:01"), rpc("12:00:02", "10.9.9.9@tcp"), HOSTILE, "a line of nothing"]
    ingest("rpctrace", logs("mds1.log", *lines), server="mds1")
    return Segment.objects.get(format="rpctrace")


@pytest.fixture
def read(module_site, logs, ingest):
    """Read an MDT's counters at a time of day."""

    def run(clock, form="job_stats", entries=None):
        texts = {
            "job_stats": job_stats("lake-MDT0000", entries or {"bash.500": {"open": 7}}),
            "md_stats": md_stats("lake-MDT0000", {"open": 9}),
        }
        path = logs(f"{form}-{clock}.txt", texts[form])
        return ingest(form, path, "--at", at(clock).isoformat())

    return run


def names(answer):
    return [row["name"].rsplit("/", 1)[-1] for row in json_of(answer)["rows"]]


def test_filters_select_files(as_staff, trace, read, logs, ingest):
    read("12:00")
    ingest("sacct", logs("jobs.txt", sacct(Run("1"))), cluster="anvil")

    for query, expected in {
        "": {"mds1.log", "job_stats-12:00.txt", "jobs.txt"},
        "kind=rpctrace": {"mds1.log"},
        "server=mds1": {"mds1.log"},
        "target=lake-MDT0000": {"job_stats-12:00.txt"},
        "cluster=anvil": {"jobs.txt"},
        "name=job": {"job_stats-12:00.txt", "jobs.txt"},
        "rejects=on": {"mds1.log"},
        "start=2017-07-05T12:00:01": {"mds1.log", "jobs.txt"},
        "end=2017-07-05T12:00:01": {"job_stats-12:00.txt", "jobs.txt"},
    }.items():
        assert set(names(as_staff.get(f"/ingest/?format=json&{query}"))) == expected, query


def test_the_list_shows_line_counts(as_staff, trace):
    words = words_of(as_staff.get("/ingest/"))

    assert "mds1.log rpctrace mds1" in words
    assert "4 2 1 1 2" in words  # lines, accepted, rejected, irrelevant, RPCs


def test_counter_totals_are_not_operations(as_staff, read):
    read("12:00", "md_stats")
    [row] = csv_of(as_staff.get("/ingest/?format=csv"))

    assert row["rpcs"] == ""
    assert f"0 0 {UNKNOWN} " in words_of(as_staff.get("/ingest/"))  # rejected, irrelevant, RPCs


def test_an_invalid_filter_is_rejected(as_staff, trace):
    assert as_staff.get("/ingest/?kind=evil&format=csv").status_code == 400
    assert "Select a valid choice" in words_of(as_staff.get("/ingest/?kind=evil"))


def test_a_file_shows_attribution(as_staff, trace):
    words = words_of(as_staff.get(f"/ingest/files/{trace.pk}/"))

    assert "Lines 4" in words
    assert "unattributed 1" in words
    assert "host 1" in words


def test_rejected_lines_are_escaped(as_staff, trace):
    html = text_of(as_staff.get(f"/ingest/files/{trace.pk}/"))
    [as_json] = json_of(as_staff.get(f"/ingest/files/{trace.pk}/?format=json"))["rows"]
    [as_csv] = csv_of(as_staff.get(f"/ingest/files/{trace.pk}/?format=csv"))

    assert "\\x1b[31m&lt;b&gt;no&lt;/b&gt; shape" in html
    assert "<b>no</b>" not in html
    assert as_json["text"] == HOSTILE
    assert as_json["line"] == 3
    assert as_csv["text"] == HOSTILE


def test_rejected_lines_are_filtered_by_reason(as_staff, trace):
    reason = trace.rejects.get().reason
    some = as_staff.get(f"/ingest/files/{trace.pk}/", {"reason": reason, "format": "json"})
    none = as_staff.get(f"/ingest/files/{trace.pk}/?reason=other&format=json")

    assert len(json_of(some)["rows"]) == 1
    assert json_of(none)["rows"] == []


def test_coverage_shows_gaps(as_staff, trace, read):
    for clock in ("11:00", "11:10", "12:00", "12:10"):
        read(clock)
    read("12:00", "md_stats")
    words = words_of(as_staff.get("/ingest/coverage/"))
    query = "start=2017-07-05T11:00:00Z&end=2017-07-05T12:10:30Z"
    inside = words_of(as_staff.get(f"/ingest/coverage/?{query}"))
    rows = csv_of(as_staff.get("/ingest/coverage/?format=csv"))

    assert "lake-MDT0000 0.5 2 2 d 22:49:59 2017-07-05 12:10:00" in words
    assert "lake-MDT0000 28.4 1 0:50:00" in inside
    assert [(row["source"], row["start"], row["end"]) for row in rows] == [
        ("rpctrace", "2017-07-05T12:00:01+00:00", "2017-07-05T12:00:02+00:00"),
        ("job_stats", "2017-07-05T11:00:00+00:00", "2017-07-05T11:10:00+00:00"),
        ("job_stats", "2017-07-05T12:00:00+00:00", "2017-07-05T12:10:00+00:00"),
    ]


def test_operations_outside_job_stats_are_shown_by_hour(as_staff, module_site, logs, ingest):
    clocks = [f"{hour}:{minute:02}" for hour in (11, 12, 13) for minute in range(0, 60, 10)]
    for number, clock in enumerate(clocks):
        lost = 3 * max(0, number - 6)  # 3 of 10 operations of each interval from 12:00 on
        counters = {
            "job_stats": job_stats("lake-MDT0000", {"bash.500": {"open": 10 * number - lost}}),
            "md_stats": md_stats("lake-MDT0000", {"open": 10 * number}),
        }
        for form, text in counters.items():
            ingest(form, logs(f"{form}-{clock}", text), "--at", at(clock).isoformat())
        if clock == "12:50":
            drain(rollups.roll_up)
    query = "start=2017-07-05T11:00:00Z&end=2017-07-05T13:30:00Z"

    def rows():
        return csv_of(as_staff.get(f"/ingest/coverage/unexplained/?format=csv&{query}"))

    assert [row["hour"][11:16] for row in rows()] == ["11:00"]  # 12:50 to 13:00 is not rolled up
    drain(rollups.roll_up)
    mdt = Target.objects.get(name="lake-MDT0000")
    read = DirtyReads.objects.create(target=mdt, start=at("12:00"), end=at("12:00"))
    assert rows() == []  # not attributed since the read at 11:50
    read.delete()
    page = words_of(as_staff.get(f"/ingest/coverage/?{query}"))

    assert "lake-MDT0000 120 15.0 1 30.0 2017-07-05 12:00:00" in page
    assert [(row["hour"][11:16], row["md_stats"], row["job_stats"]) for row in rows()] == [
        ("11:00", "60", "60"),
        ("12:00", "60", "42"),
    ]


def test_rotated_logs_have_no_gap(as_staff, trace, logs, ingest):
    ingest("rpctrace", logs("next.log", rpc("12:00:02.5"), rpc("12:00:09")), server="mds1")
    query = "start=2017-07-05T12:00:00Z&end=2017-07-05T12:00:10Z"

    assert f"mds1 75.0 0 {UNKNOWN}" in words_of(as_staff.get(f"/ingest/coverage/?{query}"))


def test_coverage_is_clipped_to_the_range(as_staff, read):
    read("11:00")
    read("11:10")
    query = "start=2017-07-05T11:05:00Z&end=2017-07-05T11:10:00Z"
    [row] = csv_of(as_staff.get(f"/ingest/coverage/?format=csv&{query}"))

    assert row["start"] == "2017-07-05T11:05:00+00:00"
    assert "lake-MDT0000 100.0 0" in words_of(as_staff.get(f"/ingest/coverage/?{query}"))


def test_an_invalid_range_of_coverage_is_rejected(as_staff, read):
    read("11:00")
    read("11:10")

    assert "'x' is not a time" in words_of(as_staff.get("/ingest/coverage/?start=x"))
    assert as_staff.get("/ingest/coverage/?start=x&format=csv").status_code == 400


def test_a_single_later_read_does_not_hide_coverage(as_staff, read, logs, ingest):
    read("11:00")
    read("11:10")
    ingest("job_stats", logs("copied.txt", job_stats("lake-MDT0000", {"1": {"open": 7}})))

    words = words_of(as_staff.get("/ingest/coverage/"))
    assert re.search(r"lake-MDT0000 0\.2 1 2 d 23:49:59 2017-07-05 11:10:00", words)


def test_a_single_read_has_no_coverage(as_staff, read):
    read("11:00")

    assert "two reads of counters" in words_of(as_staff.get("/ingest/coverage/"))


def test_a_range_without_coverage_links_to_the_latest(as_staff, read):
    read("11:00")
    read("11:10")
    query = "start=2016-01-01T00:00:00Z&end=2016-01-02T00:00:00Z"

    assert "No coverage in this range" in words_of(as_staff.get(f"/ingest/coverage/?{query}"))


def test_nids_without_a_node_are_listed(as_staff, trace):
    words = words_of(as_staff.get("/ingest/nids/"))
    narrowed = words_of(as_staff.get("/ingest/nids/?q=@o2ib"))
    rows = csv_of(as_staff.get("/ingest/nids/?format=csv"))

    assert "Unregistered NIDs 1" in words
    assert "10.9.9.9@tcp" in words
    assert "10.9.9.9@tcp" not in narrowed
    assert [row["nid"] for row in rows] == ["10.9.9.9@tcp"]


def test_pending_job_ids_are_listed_until_accounting_arrives(as_staff, read, logs, ingest):
    read("12:00", entries={"77": {"open": 1}})
    read("12:10", entries={"77": {"open": 5}, "cp.0": {"open": 2}})
    pending = words_of(as_staff.get("/ingest/pending/"))
    [as_json] = json_of(as_staff.get("/ingest/pending/?format=json"))["rows"]
    [as_csv] = csv_of(as_staff.get("/ingest/pending/?format=csv"))
    narrowed = csv_of(as_staff.get("/ingest/pending/?format=csv&q=88"))
    ingest("sacct", logs("jobs.txt", sacct(Run("77"))), cluster="anvil")

    assert as_json == {
        "id": "77",
        "batch_id": "77",
        "array_index": "",
        "launch": "",
        "filesystem": "lake",
        "simulated": False,
        "first_counted": "2017-07-05T12:00:00+00:00",
        "last_counted": "2017-07-05T12:10:00+00:00",
        "opens": 5,
    }
    assert as_csv == {name: str(value) for name, value in as_json.items()}
    assert narrowed == []
    assert "77 job 77 lake 2017-07-05 12:00:00 2017-07-05 12:10:00 5" in pending
    assert "cp.0" not in pending
    assert "No pending job ids" in words_of(as_staff.get("/ingest/pending/"))


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/ingest/", "No files yet"),
        ("/ingest/?kind=pbs", "No files match these filters"),
        ("/ingest/coverage/", "No coverage yet"),
        ("/ingest/nids/", "No unregistered NIDs"),
        ("/ingest/pending/", "No pending job ids"),
    ],
)
def test_empty_pages_show_the_next_step(as_staff, path, words):
    assert words in words_of(as_staff.get(path))


def test_simulated_files_are_marked(as_staff, trace):
    real = words_of(as_staff.get("/ingest/"))
    filesystem = trace.server.filesystem
    filesystem.simulated = True
    filesystem.save()

    assert "Simulated data" not in real
    segment = f"/ingest/files/{trace.pk}/"
    for path in ("/ingest/", segment, "/ingest/coverage/", "/ingest/nids/"):
        assert "Simulated data" in words_of(as_staff.get(path))
    for path in (segment, "/ingest/nids/"):
        assert json_of(as_staff.get(f"{path}?format=json"))["simulated"] is True
    for path in ("/ingest/", "/ingest/coverage/"):
        rows = json_of(as_staff.get(f"{path}?format=json"))["rows"]
        assert [row["simulated"] for row in rows] == [True]
    assert "Simulated data: this file." in words_of(as_staff.get(segment))
    assert "Simulated data: all rows." in words_of(as_staff.get("/ingest/"))


def test_simulated_files_among_others_are_marked(as_staff, trace, logs, ingest):
    ingest("sacct", logs("jobs.txt", sacct(Run("1"))), cluster="anvil")
    Filesystem.objects.update(simulated=True)
    words = words_of(as_staff.get("/ingest/"))

    assert "Simulated data: rows marked “simulated”." in words
    assert "mds1.log simulated rpctrace" in words
    assert "jobs.txt sacct" in words


@pytest.mark.parametrize("kind", ["cluster", "filesystem", "server", "target", "node", "nid"])
def test_registration_marks_simulated_entries(as_staff, trace, kind):
    real = text_of(as_staff.get(f"/admin/site/{kind}/"))
    for things in (Cluster, Filesystem):
        things.objects.update(simulated=True)
    made_up = text_of(as_staff.get(f"/admin/site/{kind}/"))

    assert '<td class="field-data">real</td>' in real
    assert '<td class="field-data">simulated</td>' in made_up


def test_the_number_of_queries_does_not_grow_with_the_files(
    as_staff, read, django_assert_num_queries
):
    read("11:00")
    as_staff.get("/ingest/")
    with django_assert_num_queries(9):
        as_staff.get("/ingest/")
    for minute in range(5):
        read(f"11:1{minute}")
    with django_assert_num_queries(9):
        as_staff.get("/ingest/")
