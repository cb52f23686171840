from datetime import UTC, datetime

import pytest

from collectors import tables
from collectors.batch import lsf, states
from collectors.parsed import Account

COLUMNS = ("batch_id", "state", "exit_status", "exit_signal", "nodes", "core_count", "cpu_s")


def utc(text):
    return datetime.fromisoformat(f"2024-05-02T{text}").replace(tzinfo=UTC)


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(*lines):
        return whole(lsf.parse(source(*lines)))

    return run


@pytest.fixture
def accounting(parse, fixture_text):
    return parse(fixture_text("lsf_acct", "lsb.acct"))


@pytest.fixture
def record(fixture_text):
    """The first record of the fixture."""
    return fixture_text("lsf_acct", "lsb.acct").decode().splitlines()[0]


def test_a_finished_job_is_read_in_full(accounting):
    assert accounting.table.schema == tables.JOBS.columns
    assert accounting.table.to_dicts()[0] == {
        "line": 1,
        "cluster": "",
        "batch_id": "8001",
        "array_index": "",
        "launch": "",
        "name": "relax",
        "user": "alice",
        "project": "phy12",
        "queue": "regular",
        "state": states.COMPLETED,
        "exit_status": 0,
        "exit_signal": 0,
        "submitted_at": utc("07:00:00"),
        "started_at": utc("07:10:00"),
        "ended_at": utc("09:00:00"),
        "node_count": 2,
        "core_count": 32,
        "cpu_s": 1_020.75,
        "time_limit_s": None,
        "nodes": "c[1-2]",
    }


def test_an_array_element_has_its_index_and_its_quotes(accounting):
    element = accounting.table.to_dicts()[1]

    assert (element["array_index"], element["name"]) == ("4", 'Müller "2"')
    assert (element["node_count"], element["project"]) == (2, "")


def test_jobs_end_in_these_states(accounting):
    assert accounting.table.select(COLUMNS).rows()[1:6] == [
        ("8002", states.FAILED, 1, 0, "c[3-4]", 4, 1_020.75),
        ("8003", states.TIMEOUT, 140, 0, "c5", 1, 1_020.75),
        ("8004", states.CANCELLED, 0, 0, "", 32, None),
        ("8005", states.FAILED, 0, 9, "c6-ib", 1, None),
        ("8006", states.COMPLETED, 0, 0, "c7", 1, 1_020.75),
    ]
    assert accounting.table["started_at"].to_list()[3] is None


def test_other_events_and_continued_lines_are_irrelevant(accounting):
    assert accounting.account == Account(lines=19, accepted=7, rejected=5, irrelevant=7)
    assert accounting.rejects.select("line", "reason").rows() == [
        (13, "field 21 has a quote that is not closed"),
        (16, "field 25 has a quote that is not closed"),
        (17, "the job ends at 2024-05-02T07:00:00Z, before it starts at 2024-05-02T07:10:00Z"),
        (18, "jStatus 1 is neither DONE nor EXIT"),
        (19, 'not a record: "EVENT" "version" time ...'),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (' 0 2 "16*c1" "16*c2"', ' 0 99 "16*c1" "16*c2"', "numExHosts is 99"),
        (' 0 2 "16*c1" "16*c2"', ' -2 2 "16*c1" "16*c2"', "numAskedHosts is -2"),
        ('"16*c1"', '"[c1]"', "'[c1]' is not a host name"),
        ('"16*c1"', '""', "execution host '' is not a host"),
        ('"16*c1"', '"999999999*c1" "999999999*c1" "999999999*c1"', "numExHosts"),
        (" 1000.5 ", " fast ", "ru_utime 'fast' is not a number"),
        (" 8001 ", " none ", "jobId 'none' is not a whole number"),
    ],
)
def test_a_bad_value_rejects_its_record(parse, record, old, new, reason):
    text = record.replace(old, new)
    if reason == "numExHosts":
        text, reason = text.replace(" 0 2 ", " 0 4 "), "has too many slots"

    assert reason in parse(text).rejects["reason"].item()


@pytest.mark.parametrize("characters", [50, 200, 300, 350])
def test_a_cut_record_is_rejected(parse, record, characters):
    assert parse(record[:characters]).account == Account(lines=1, rejected=1)


def test_a_record_is_bounded(parse, record, monkeypatch):
    monkeypatch.setattr(lsf, "RECORD_CHARACTERS", 500)

    parsed = parse(record.replace("#!/bin/sh", f"a\n{'b' * 500}"))

    assert parsed.account == Account(lines=2, rejected=2)


@pytest.mark.parametrize(
    ("host", "index", "gap"),
    [("n1@remote", "-1", " "), ("4*n1@remote", "0", "  "), ("n1", "-1", "   ")],
)
def test_hosts_of_other_clusters_missing_indices_and_doubled_blanks(parse, host, index, gap):
    text = (
        '"JOB_FINISH" "10.1" 1644826628 387 1501 33554450 2 1644826611 0 0 1644826612 "alice" "q" '
        '"" "" "" "sub1" "/t" "" "" "" "1644826611.387" 0 1 "HOST" 64 100.0 "a  name" "/bin/x" 0.1 '
        '0.2 1 0 -1 0 0 2 4 0 9 3 -1 0 0 0 8 2 -1 "" "default" 0 2 "" "" INDEX 1 0 "" "" "" "" 0'
    )
    before, name, after = text.replace("HOST", host).replace("INDEX", index).partition('"a  name"')

    parsed = parse(before.replace(" ", gap) + name + after.replace(" ", gap))

    [row] = parsed.table.to_dicts()
    assert (row["nodes"], row["array_index"], row["name"]) == ("n1", "", "a  name")
