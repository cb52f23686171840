from datetime import UTC, datetime

import pytest

from collectors import tables
from collectors.batch import sge, states
from collectors.parsed import Account


def utc(text):
    return datetime.fromisoformat(f"2024-05-02T{text}").replace(tzinfo=UTC)


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(*lines):
        return whole(sge.parse(source(*lines)))

    return run


@pytest.fixture
def accounting(parse, fixture_text):
    return parse(fixture_text("sge_accounting", "accounting"))


@pytest.fixture
def record(fixture_text):
    """The first record of the fixture."""
    return fixture_text("sge_accounting", "accounting").decode("latin-1").splitlines()[2]


def test_a_job_is_read_in_full(accounting):
    assert accounting.table.schema == tables.JOBS.columns
    assert accounting.table.to_dicts()[0] == {
        "line": 3,
        "cluster": "",
        "batch_id": "901",
        "array_index": "",
        "launch": "",
        "name": "relax",
        "user": "alice",
        "project": "phy12",
        "queue": "all.q",
        "state": states.COMPLETED,
        "exit_status": 0,
        "exit_signal": 0,
        "submitted_at": utc("07:00:00"),
        "started_at": utc("07:10:00"),
        "ended_at": utc("08:10:00"),
        "node_count": 1,
        "core_count": 1,
        "cpu_s": 103,
        "time_limit_s": 7_200,
        "nodes": "n1",
    }


def test_an_array_task_that_exceeds_its_time_limit(accounting):
    task = accounting.table.to_dicts()[1]

    assert (task["batch_id"], task["array_index"], task["project"]) == ("902", "3", "bio03")
    assert (task["state"], task["exit_status"], task["exit_signal"]) == (states.TIMEOUT, 0, 9)
    assert task["cpu_s"] == 103


def test_a_parallel_task_is_a_launch_on_its_host(accounting):
    task, job = accounting.table.to_dicts()[2:4]

    assert (task["batch_id"], task["launch"], task["nodes"]) == ("903", "1.n3", "n3")
    assert (job["batch_id"], job["launch"], job["nodes"]) == ("903", "", "n2")
    assert job["time_limit_s"] == 7_200


def test_names_and_categories_may_hold_colons(accounting):
    job = accounting.table.to_dicts()[4]

    assert (job["name"], job["time_limit_s"], job["state"]) == ("a:b:c", 60, states.FAILED)


def test_a_job_that_never_ran_has_no_start(accounting):
    failed, cancelled = accounting.table.to_dicts()[5:7]

    assert (failed["state"], failed["started_at"], failed["nodes"]) == (states.FAILED, None, "")
    assert (cancelled["state"], cancelled["started_at"]) == (states.CANCELLED, None)


def test_jobs_end_in_these_states(accounting):
    assert accounting.table.select("batch_id", "state", "exit_signal", "ended_at").rows()[7:] == [
        ("907", states.REQUEUED, 0, utc("07:11:40")),
        ("908", states.COMPLETED, 0, utc("08:10:00")),  # in milliseconds
        ("909", states.FAILED, 11, utc("08:10:00")),
        ("913", states.COMPLETED, 0, utc("08:10:00")),
    ]


def test_comments_are_irrelevant_and_damaged_records_are_rejected(accounting):
    assert accounting.account == Account(lines=18, accepted=11, rejected=4, irrelevant=3)
    assert accounting.table["name"].to_list()[-1] == "M\ufffdller"
    assert accounting.rejects.select("line", "reason").rows() == [
        (14, "the job ends at 2024-05-02T07:08:20Z, before it starts at 2024-05-02T07:10:00Z"),
        (15, "the record has 38 fields and is cut"),
        (16, "not a record: queue:host:group:owner:name:number:..."),
        (17, "'[n1]' is not a host name"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (":1714633200:", ":0:", "submission_time is 0"),
        (":103.0:", ":much:", "cpu 'much' is not a number"),
        (":100.5:", ":-1:", "ru_utime '-1' is not a number"),
        (":NONE:1:0:", ":NONE:many:0:", "slots 'many' is not a whole number"),
        ("h_rt=7200", "h_rt=::", "h_rt '::' is not a duration"),
        (":1714633800:", ":17:", "17 is not the time of a job in epoch seconds"),
    ],
)
def test_a_bad_value_rejects_its_record(parse, record, old, new, reason):
    assert parse(record.replace(old, new, 1)).rejects["reason"].to_list() == [reason]


@pytest.mark.parametrize("prefix", ["accounting:", "accounting.1:", "/var/sge/log:"])
def test_a_line_with_the_name_of_a_file_is_rejected(parse, record, prefix):
    parsed = parse(prefix + record)

    assert parsed.table.is_empty()
    assert parsed.rejects["reason"].to_list() == [
        "the line begins with the name of a file: grep -h omits it"
    ]
