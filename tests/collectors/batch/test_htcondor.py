from datetime import UTC, datetime

import pytest

from collectors import tables
from collectors.batch import htcondor, states
from collectors.parsed import Account

AD = ("ClusterId = 4711", "ProcId = 0", "QDate = 1714633200", "JobStatus = 4")


def utc(text):
    return datetime.fromisoformat(f"2024-05-02T{text}").replace(tzinfo=UTC)


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(*lines):
        return whole(htcondor.parse(source(*lines)))

    return run


@pytest.fixture
def history(parse, fixture_text):
    return parse(fixture_text("htcondor_history", "history"))


def test_a_completed_job_is_read_in_full(history):
    assert history.table.schema == tables.JOBS.columns
    assert history.table.to_dicts()[0] == {
        "line": 1,
        "cluster": "",
        "batch_id": "4711",
        "array_index": "0",
        "launch": "",
        "name": "relax.sh",
        "user": "alice",
        "project": "group_atlas.prod",
        "queue": "",
        "state": states.COMPLETED,
        "exit_status": 0,
        "exit_signal": 0,
        "submitted_at": utc("07:00:00"),
        "started_at": utc("07:10:00"),
        "ended_at": utc("08:10:00"),
        "node_count": 1,
        "core_count": 4,
        "cpu_s": 12_400,
        "time_limit_s": 7_200,
        "nodes": "wn01.example.org",
    }


def test_an_evicted_job_has_its_last_run(history):
    evicted = history.table.to_dicts()[1]

    assert (evicted["started_at"], evicted["ended_at"]) == (utc("09:00:00"), utc("09:30:00"))
    assert (evicted["name"], evicted["project"]) == ("relax \\ 2024", "group_atlas.prod")
    assert (evicted["nodes"], evicted["core_count"]) == ("wn02.example.org", 8)
    assert (evicted["state"], evicted["exit_status"], evicted["exit_signal"]) == ("failed", 0, 9)


def test_a_removed_job_ends_with_its_run(history):
    ran, waited = history.table.to_dicts()[2:]

    assert (ran["state"], ran["ended_at"]) == (states.CANCELLED, utc("07:20:00"))
    assert (waited["state"], waited["started_at"], waited["ended_at"]) == (
        states.CANCELLED,
        None,
        utc("07:05:00"),
    )
    assert (waited["nodes"], waited["cpu_s"]) == ("", None)


def test_damaged_ads_are_rejected(history):
    assert history.account == Account(lines=105, accepted=4, rejected=5, irrelevant=96)
    assert history.rejects.select("line", "reason").rows() == [
        (84, "no ClusterId and ProcId: not the ad of a job"),
        (88, "not a line of the form Attribute = value"),
        (89, "JobStatus 9 is not a status of a job"),
        (94, "ClusterId or ProcId changes inside the ad: a banner or blank line is missing"),
        (102, "the ad ends without a banner: the file is cut"),
    ]


def test_blank_lines_separate_the_ads_of_condor_history(parse, fixture_text):
    parsed = parse(fixture_text("htcondor_history", "long.txt"))

    assert parsed.account == Account(lines=34, accepted=3, irrelevant=31)
    assert parsed.table.select(
        "state", "ended_at", "nodes", "node_count", "time_limit_s"
    ).rows() == [
        (states.RUNNING, None, "wn03.example.org", 1, None),
        (states.PENDING, None, "", None, None),
        (states.RUNNING, None, "wn[04-05].example.org", 2, 7_200),
    ]


def test_json_counts_ads(parse, fixture_text):
    parsed = parse(fixture_text("htcondor_history", "history.json"))

    assert parsed.account == Account(lines=4, accepted=2, rejected=2)
    assert parsed.table.select("line", "state", "exit_status", "core_count", "cpu_s").rows() == [
        (1, states.FAILED, 3, 4, 12_400),
        (4, states.PENDING, None, None, None),
    ]
    assert parsed.rejects["reason"].to_list() == [
        "ClusterId '4711' is not a number",
        "no ClusterId and ProcId: not the ad of a job",
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("QDate = 0", "no QDate: the submit time distinguishes jobs with the same id"),
        ('QDate = "today"', "QDate 'today' is not a number"),
        ("ClusterId = undefined", "no ClusterId and ProcId: not the ad of a job"),
        ("JobStatus = 7 * 6", "JobStatus None is not a status of a job"),
        ("RequestCpus = 99999999999", "RequestCpus 99999999999 is too large"),
        ("CompletionDate = 7", "7 is not the time of a job in epoch seconds"),
    ],
)
def test_a_bad_value_rejects_its_ad(parse, line, reason):
    parsed = parse(*AD, line)

    assert parsed.account == Account(lines=5, rejected=1, irrelevant=4)
    assert parsed.rejects["reason"].to_list() == [reason]


def test_an_ad_is_bounded(parse, monkeypatch):
    monkeypatch.setattr(htcondor, "AD_CHARACTERS", 100)

    parsed = parse(*AD, f'Env = "{"x" * 100}"')

    assert parsed.account == Account(lines=5, accepted=1, rejected=1, irrelevant=3)


def test_unknown_cpu_time_is_not_zero(parse):
    run = ("JobCurrentStartDate = 1714633800", "CompletionDate = 1714637400", "RemoteUserCpu = -1")

    assert parse(*AD, *run).table["cpu_s"].to_list() == [None]
    assert parse(*AD, *run, "RemoteSysCpu = 1").table["cpu_s"].to_list() == [None]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ce1.example.org#4711.3#1714633200", ("4711", "3")),
        ("ce1.example.org#4711.3", ("4711", "3")),
        ("4711.3", ("4711", "3")),
        ("ce1.example.org#4711", ("4711", "")),
        ("4711", None),
        ("4711.sdb", None),
        ("4711[3].sdb", None),
    ],
)
def test_job_ids_of_htcondor_are_recognised(text, expected):
    assert htcondor.batch_id(text) == expected


@pytest.mark.parametrize("host", ["[2001:db8::10]", "2001:db8::10"])
def test_the_node_of_an_ipv6_address_is_unknown(parse, host):
    [row] = parse(
        *AD, "JobStartDate = 1714633300", f'LastRemoteHost = "slot1@{host}"'
    ).table.to_dicts()

    assert (row["nodes"], row["node_count"]) == ("", 1)
