"""PanDA job records: jobs, rejects and irrelevant elements."""

import io
import json
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collectors import json_stream
from collectors.panda import jobs
from collectors.parsed import Account
from collectors.source import Source
from tests.collectors.batch.test_hostile_input import DAMAGE, PACKED, damaged
from tests.properties import examples

RECORD = {"pandaid": 3_558_462_700, "jobstatus": "finished"}

# In the order of BigPanDA: timegetjob, timestagein, timepayload, timestageout, timetotal_setup.
TIMES = ("get_job_s", "stage_in_s", "payload_s", "stage_out_s", "setup_s")
MEASURED = ("event_count", "max_pss_bytes", "max_swap_bytes", "transfer_type")

FLAW = json_stream.FLAW.format(json_stream.LONGEST)


def day(clock):
    return datetime.fromisoformat(f"2017-07-05T{clock}").replace(tzinfo=UTC)


@pytest.fixture(scope="session")
def parse(whole):
    """Parse a whole input."""
    return lambda text: whole(jobs.parse(Source(io.BytesIO(text), "a text")))


@pytest.fixture(scope="session")
def fixture(parse, fixture_text):
    return lambda name: parse(fixture_text("panda", name))


def test_a_list_of_jobs_is_parsed_and_other_members_are_irrelevant(fixture):
    parsed = fixture("jobs.json")

    assert parsed.account == Account(lines=8, accepted=5, irrelevant=3)
    assert parsed.table["line"].to_list() == [2, 3, 4, 5, 6]
    finished, failed, activated, *_ = parsed.table.to_dicts()
    assert finished == {
        "line": 2,
        "panda_id": 3_558_462_700,
        "task_id": 10_995_522,
        "attempt": 1,
        "reported_batch_id": "3141592",
        "batch_id": "3141592",
        "array_index": "",
        "site": "ORNL_Titan_MCORE",
        "host": "nid00042",
        "state": "finished",
        "error": "",
        "user": "Alice Example",
        "transformation": "Sim_tf.py",
        "created_at": day("10:00:00"),
        "started_at": day("12:01:00"),
        "ended_at": day("12:51:00"),
        "modified_at": day("12:53:00"),
        "core_count": 16,
        "cpu_s": 43_200,
        "setup_s": 40,
        "get_job_s": 2,
        "stage_in_s": 14,
        "payload_s": 2_900,
        "stage_out_s": 1,
        "event_count": 100,
        "max_pss_bytes": 12_083_200_000,
        "max_swap_bytes": 0,
        "transfer_type": "direct",
    }
    # Numbers as texts, times without an offset, a slot on a node, fewer cores than requested.
    assert (failed["task_id"], failed["cpu_s"], failed["core_count"]) == (10_995_522, 1_140, 8)
    assert (failed["started_at"], failed["host"]) == (day("12:01:10"), "nid00043")
    assert failed["error"] == 'pilot 1201: killed by signal {"15"}; transformation 137'
    # Missing parts of the times, PanDA's default of events, memory that was not measured.
    times = [failed[name] for name in TIMES]
    assert times == [0, None, 120, 0, None]
    assert [failed[name] for name in MEASURED] == [None] * 4
    assert (activated["batch_id"], activated["started_at"], activated["cpu_s"]) == ("", None, None)


def test_batch_ids_of_several_systems(fixture):
    table = fixture("jobs.json").table

    assert table.select("reported_batch_id", "batch_id", "array_index").rows() == [
        ("3141592", "3141592", ""),
        ("3141592.sdb", "3141592", ""),
        ("", "", ""),
        ("12405832[7].ce.dom", "12405832", "7"),
        ("schedd#123.0", "123", "0"),
    ]
    assert table["ended_at"][-1] == day("12:02:00")


def test_a_job_page_has_one_job_and_its_files_are_irrelevant(fixture):
    parsed = fixture("job.json")

    assert parsed.account == Account(lines=3, accepted=1, irrelevant=2)
    assert parsed.table.select("line", "panda_id", "batch_id").rows() == [
        (3, 3558462700, "3141592")
    ]


def test_one_record_per_line_with_the_servers_names(fixture):
    parsed = fixture("server.json")

    assert parsed.account == Account(lines=2, accepted=2)
    assert parsed.table["state"].to_list() == ["finished", "failed"]
    assert parsed.table["started_at"].to_list() == [day("12:01:00"), day("12:01:10.250")]


def test_bad_records_are_rejects_and_their_neighbours_survive(fixture):
    parsed = fixture("damaged.json")

    assert parsed.account == Account(lines=12, accepted=3, rejected=9)
    assert parsed.table["panda_id"].to_list() == [1, 3, 12]
    assert parsed.table["user"][-1] == "?\ufffd<img src=x>"
    assert parsed.rejects.select("line", "reason").rows() == [
        (2, FLAW),
        (4, "pandaid or jobstatus is missing: not a PanDA job"),
        (5, "starttime 'yesterday' is not a time"),
        (6, "the job ends at 2017-07-05T12:00:00Z, before it starts at 2017-07-05T13:00:00Z"),
        (7, "cpuconsumptiontime -5 is negative"),
        (8, "transformation is not a string or number"),
        (9, "jobstatus '<b>' is not a valid state"),
        (10, "pandaid 'ten' is not a whole number"),
        (11, FLAW),
    ]
    assert parsed.rejects["text"][0] == '{"pandaid": 2, "jobstatus": "fini\n'


@pytest.mark.parametrize(
    ("text", "account"),
    [
        pytest.param([RECORD, RECORD], Account(2, 2), id="a bare list"),
        pytest.param({"jobs": []}, Account(), id="no jobs"),
        pytest.param({"jobs": None, "n": [[1, 2], 3]}, Account(4, 0, 1, 3), id="null for a list"),
        pytest.param({"Jobs": [RECORD], "JOB": RECORD}, Account(2, 2), id="names in any case"),
        pytest.param({"a": {"jobs": [RECORD]}}, Account(1, 0, 1), id="too deep inside"),
        pytest.param(3, Account(1, 0, 1), id="a number"),
    ],
)
def test_other_shapes(parse, text, account):
    assert parse(json.dumps(text).encode()).account == account


def test_a_list_truncated_between_records_has_a_reject(parse):
    parsed = parse(b'{"jobs": [{"pandaid": 1, "jobstatus": "finished"},\n')

    assert parsed.account == Account(lines=2, accepted=1, rejected=1)
    assert parsed.rejects["reason"].to_list() == [json_stream.CUT]


@pytest.mark.long
def test_a_long_response_takes_bounded_memory():
    record = json.dumps(RECORD | {"jobparameters": "x" * 2_000})
    files = ", ".join(['{"pandaid": 1, "lfn": "x"}'] * 60_000)
    text = f'{{"files": [{files}], "jobs": [{", ".join([record] * 5_000)}]}}'.encode()
    tracemalloc.start()

    account = sum((part.account for part in jobs.parse(Source(io.BytesIO(text), "t"))), Account())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    # `jobs` is beyond the look-ahead from the start; no record is lost.
    assert account == Account(lines=65_000, accepted=5_000, rejected=60_000)
    assert peak < 60_000_000


def test_an_endless_element_is_one_reject(parse):
    endless = b'{"pandaid": 1, "jobparameters": "' + b"x" * (3 * json_stream.LONGEST)
    parsed = parse(b'[{"pandaid": 2, "jobstatus": "failed"},' + endless + b'"},{"pandaid": 3}]')

    assert parsed.account == Account(lines=3, accepted=1, rejected=2)
    assert len(parsed.rejects["text"][0]) == 1_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
NAMES = ["pandaid", "jobstatus", "batchid", "starttime", "endtime", "corecount", "transexitcode"]
RECORDS = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, JSON)) | st.builds(
    lambda number, extra: {**RECORD, "pandaid": number, **extra},
    st.integers(0, 2**40),
    st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES[2:], st.text(max_size=25))),
)


def assert_sound(parsed):
    account = parsed.account
    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert account.accepted == parsed.table.height
    assert account.rejected == parsed.rejects.height
    for row in parsed.table.to_dicts():
        assert row["panda_id"] >= 0
        assert row["batch_id"].isascii()
        assert "\0" not in "".join(value for value in row.values() if isinstance(value, str))
        if row["started_at"] and row["ended_at"]:
            assert row["started_at"] <= row["ended_at"]


@given(records=st.lists(RECORDS, max_size=5), files=st.lists(JSON, max_size=3))
@settings(max_examples=examples(100))
def test_the_account_covers_every_record(parse, records, files):
    assume(not any(isinstance(file, list) for file in files))
    text = json.dumps({"files": files, "jobs": records, "count": 5})

    parsed = parse(text.encode())

    assert_sound(parsed)
    assert parsed.account.irrelevant == len(files) + 1
    assert parsed.account.lines == len(records) + len(files) + 1


@given(text=st.binary(max_size=300) | st.text('{}[]",: \\pandaidjobs01').map(str.encode))
@settings(max_examples=examples(100))
def test_random_bytes_never_raise(parse, text):
    assume(not text.startswith(PACKED))

    assert_sound(parse(text))


@given(damage=DAMAGE, block_bytes=st.integers(1, 200), longest=st.integers(400, 2_000))
@settings(max_examples=examples(50))
def test_block_boundaries_do_not_matter(parse, fixture_text, damage, block_bytes, longest):
    text = damaged(fixture_text("panda", "jobs.json"), damage)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_stream, "LONGEST", longest)
        unsplit = parse(text)
        patch.setattr("collectors.source.BLOCK_BYTES", block_bytes)
        in_blocks = parse(text)

    assert_sound(unsplit)
    assert in_blocks.table.equals(unsplit.table)
    assert in_blocks.rejects.equals(unsplit.rejects)
    assert in_blocks.account == unsplit.account


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"[" * 200_000, id="lists without end"),
        pytest.param(b'{"a":' * 100_000, id="objects without end"),
        pytest.param(b'[{"a":[' * 50_000, id="both"),
        pytest.param(b"\n" * 3_000_000, id="newlines"),
        pytest.param(b'{"' * 100_000, id="names without end"),
        pytest.param(b"9" * 1_000_000, id="a number without end"),
        pytest.param(b"\x7fELF\x02\x01\x01\0" * 50_000, id="binary"),
    ],
)
def test_a_nonsensical_input_is_parsed_in_time(parse, text):
    assert_sound(parse(text))


@given(st.lists(st.integers(0, 10**9 - 1) | st.none(), min_size=1, max_size=7))
@settings(max_examples=examples(50))
def test_five_times_of_a_pilot_are_read_by_position(parse, seconds):
    timing = "|".join("" if part is None else str(part) for part in seconds)

    [row] = parse(json.dumps(RECORD | {"pilottiming": timing}).encode()).table.to_dicts()

    assert [row[name] for name in TIMES] == (seconds if len(seconds) == 5 else [None] * 5)


@pytest.mark.parametrize("timing", ["0|35|2900|1|-40", "a|b|c|d|e", "9999999999||||", None, " "])
def test_other_texts_are_no_times(parse, timing):
    [row] = parse(json.dumps(RECORD | {"pilottiming": timing}).encode()).table.to_dicts()

    assert [row[name] for name in TIMES] == [None] * 5


def test_a_size_beyond_64_bits_is_a_reject(parse):
    parsed = parse(json.dumps([RECORD | {"maxpss": 2**60}, RECORD]).encode())

    assert parsed.account == Account(lines=2, accepted=1, rejected=1)
    assert "maxpss" in parsed.rejects["reason"][0]


def test_a_real_record_is_parsed(sample, whole):
    path = sample("panda", "bigpanda_job_2014_fax.json")

    parsed = whole(jobs.parse(Source.open(path)))

    assert parsed.account == Account(lines=path.read_text().count('"pandaid"'), accepted=1)
    [row] = parsed.table.to_dicts()
    assert (row["panda_id"], row["task_id"], row["state"]) == (2_230_748_170, 4_002_606, "finished")
    assert (row["ended_at"] - row["started_at"]).total_seconds() == 21 * 60 + 42  # its duration
    assert (row["cpu_s"], row["reported_batch_id"], row["core_count"]) == (1_140, "", None)
    assert [row[name] for name in (*TIMES, *MEASURED)] == [None] * 9  # not in the record
