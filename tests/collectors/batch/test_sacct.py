from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import tables
from collectors.batch import sacct, states
from collectors.batch.values import quoted
from collectors.parsed import Account

PLAIN = (
    "601|601|anvil|batch|normal|phy12|phy|2001|alice|1001|2024-05-03T08:00:00|2024-05-03T08:00:00"
    "|2024-05-03T08:00:10|2024-05-03T08:30:10|00:30:00|0:0|COMPLETED|2|64|64|8000Mn"
    "|cpu=64,mem=62.50G,node=2|billing=64,cpu=64,mem=62.50G,node=2|01:00:00|n[01-02]|plain"
)
CELLS = PLAIN.split("|")
SKIPPED = "columns found: {}, expected: 26; export with a header line (without --noheader), or name"


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def with_cells(**changes):
    """The plain record with other values in some columns."""
    cells = dict(zip(sacct.COLUMNS, CELLS, strict=True)) | changes
    return "|".join(cells.values())


@pytest.fixture(scope="session")
def parse(source, whole, berlin):
    def run(*lines, columns=sacct.COLUMNS, zone=berlin, chunk_bytes=1 << 20):
        return whole(sacct.parse(source(*lines, chunk_bytes=chunk_bytes), zone, columns))

    return run


@pytest.fixture
def header(parse, fixture_text):
    return parse(fixture_text("slurm_sacct", "header.txt"))


def rows_of(parsed, batch_id):
    return parsed.table.filter(pl.col("batch_id") == batch_id).to_dicts()


def test_a_job_is_read_in_full(parse):
    parsed = parse(PLAIN)

    assert parsed.table.schema == tables.JOBS.columns
    assert parsed.table.to_dicts() == [
        {
            "line": 1,
            "cluster": "anvil",
            "batch_id": "601",
            "array_index": "",
            "launch": "",
            "name": "plain",
            "user": "alice",
            "project": "phy12",
            "queue": "batch",
            "state": "completed",
            "exit_status": 0,
            "exit_signal": 0,
            "submitted_at": utc("2024-05-03T06:00:00"),
            "started_at": utc("2024-05-03T06:00:10"),
            "ended_at": utc("2024-05-03T06:30:10"),
            "node_count": 2,
            "core_count": 64,
            "cpu_s": None,
            "time_limit_s": 3_600,
            "nodes": "n[01-02]",
        }
    ]
    assert parsed.account == Account(lines=1, accepted=1)


def test_a_header_names_the_columns_in_any_order_and_case(header, parse):
    shuffled = parse("jobname|STATE|JobIdRaw", "relax|COMPLETED|501")

    assert header.account == Account(lines=16, accepted=15, irrelevant=1)
    assert header.table["cpu_s"][0] == 108_015
    assert shuffled.table.select("name", "state", "batch_id").rows() == [
        ("relax", "completed", "501")
    ]


def test_a_header_applies_to_later_lines(parse):
    parsed = parse("JobID|State", "1|COMPLETED", "State|JobID", "FAILED|2")

    assert parsed.table.select("batch_id", "state").rows() == [("1", "completed"), ("2", "failed")]
    assert parsed.account == Account(lines=4, accepted=2, irrelevant=2)


def test_steps_are_launches_of_their_job(header):
    steps = header.table.filter(pl.col("batch_id") == "501").select("launch", "name", "user")

    assert steps.rows() == [
        ("", "relax", "alice"),
        ("batch", "batch", ""),
        ("extern", "extern", ""),
        ("0", "vasp_std", ""),
    ]


@pytest.mark.parametrize(
    ("job_id", "raw", "expected"),
    [
        pytest.param("123", "123", ("123", "", ""), id="job"),
        pytest.param("123_4", "130", ("130", "4", ""), id="task: its own number"),
        pytest.param("123_4.batch", "130.batch", ("130", "4", "batch"), id="step of a task"),
        pytest.param("123_[1-3,7%2]", "123", ("123", "1-3,7", ""), id="tasks not split yet"),
        pytest.param("123_[0-1,...%4]", "123", ("123", "0-1,...", ""), id="cut list of tasks"),
        pytest.param("123_[%3]", "123", ("123", "", ""), id="list of tasks cut to nothing"),
        pytest.param("123+1", "124", ("124", "", ""), id="component: its own number"),
        pytest.param("123+1.extern", "124.extern", ("124", "", "extern"), id="its step"),
        pytest.param("123.0+1", "123.0+1", ("123", "", "0+1"), id="component of a step"),
        pytest.param("123.TBD", "123.TBD", ("123", "", "TBD"), id="step without a number"),
        pytest.param("123+1", "", ("123+1", "", ""), id="component, own number unknown"),
        pytest.param("123_4", "", ("123", "4", ""), id="task, own number unknown"),
    ],
)
def test_every_form_of_job_id_is_read(parse, job_id, raw, expected):
    parsed = parse("JobID|JobIDRaw", f"{job_id}|{raw}")

    assert parsed.table.select("batch_id", "array_index", "launch").rows() == [expected]


@pytest.mark.parametrize(
    "job_id", ["", "abc", "123_", "123_[1", "123.", "12 3", "-5", "123_x", "1" * 99]
)
def test_a_record_without_a_job_id_is_rejected(parse, job_id):
    parsed = parse("JobID|State", f"{job_id}|COMPLETED")

    assert parsed.rejects["reason"].to_list() == [f"JobID {quoted(job_id)} is not a job id"]


def test_names_may_hold_bars_umlauts_and_newlines(parse, fixture_text):
    parsed = parse(fixture_text("slurm_sacct", "no_header.txt"))

    assert parsed.table.select("line", "batch_id", "name").rows() == [
        (1, "601", "plain"),
        (2, "602", "a|b || c"),
        (3, "603", "Wärme größer 測試"),
        (4, "604", "two\nlines | and a bar"),
        (7, "605", "after"),
    ]


def test_damaged_records_are_rejected(parse, fixture_text):
    parsed = parse(fixture_text("slurm_sacct", "no_header.txt"))

    assert parsed.account == Account(lines=11, accepted=5, rejected=4, irrelevant=2)
    cut, headless, backwards, huge = parsed.rejects.select("line", "reason").rows()
    assert cut[0] == 8
    assert cut[1].startswith(SKIPPED.format(12))
    assert headless[0] == 9
    assert headless[1].startswith(SKIPPED.format(12))
    assert backwards == (
        10,
        "the job ends at 2024-05-03T06:00:00Z, before it starts at 2024-05-03T07:00:00Z",
    )
    assert huge == (11, "the host list names 99999999 hosts, more than 200000")


def test_a_job_name_is_bounded(parse):
    garbage = ["no record at all"] * 100

    parsed = parse(PLAIN, *garbage, PLAIN)

    names = parsed.table["name"].to_list()
    assert len(names[0]) <= sacct.JOB_NAME_CHARACTERS
    assert names[1] == "plain"
    assert parsed.account.accepted == 2
    assert parsed.account.rejected > 30
    assert parsed.account.lines == 102


def test_blank_lines_around_records_are_irrelevant(parse):
    parsed = parse("", PLAIN, "", "", PLAIN, "")

    assert parsed.table["name"].to_list() == ["plain", "plain"]
    assert parsed.account == Account(lines=5, accepted=2, irrelevant=3)


def test_lines_may_end_with_a_bar(parse, fixture_text):
    parsed = parse(fixture_text("slurm_sacct", "closed.txt"))

    assert parsed.table.select("line", "batch_id", "name").rows() == [
        (2, "701", "plain"),
        (3, "702", "two\nlines"),
        (6, "704+1", "part"),
    ]
    [(line, reason)] = parsed.rejects.select("line", "reason").rows()
    assert line == 5
    assert reason == (
        "columns found: 8, expected: 7; if a name holds a '|', export with JobName as the last "
        "column"
    )


def test_lines_without_a_header_may_end_with_a_bar(parse):
    parsed = parse(f"{PLAIN}|", f"{PLAIN}|more|")

    assert parsed.table["name"].to_list() == ["plain", "plain|more"]


def test_columns_can_be_given(parse):
    line = "1|COMPLETED|2024-05-03T08:00:10|a name"

    named = parse(line, columns=["JobID", "State", "Start", "JobName"])
    unnamed = parse(line)

    assert named.table.select("batch_id", "name").rows() == [("1", "a name")]
    assert unnamed.rejects["reason"][0].startswith(SKIPPED.format(4))


def test_a_wrong_list_of_columns_is_reported(parse):
    longer = PLAIN.replace("COMPLETED", "").replace("|n[01-02]", "|n[01-02]|x|y|z")

    [reason] = parse(longer).rejects["reason"].to_list()

    assert reason.startswith(f"state '' is not a word in capitals; {SKIPPED.format(29)}")


def test_columns_without_a_job_id_are_refused_at_once(source, berlin):
    with pytest.raises(ValueError, match="no JobID or JobIDRaw among the columns State, Start"):
        sacct.parse(source(PLAIN), berlin, ["State", "Start"])


def test_epoch_seconds_need_no_zone(parse, fixture_text, new_york):
    ended, waiting = parse(fixture_text("slurm_sacct", "epoch.txt"), zone=new_york).table.to_dicts()

    assert ended["submitted_at"] == datetime.fromtimestamp(1_730_000_000, UTC)
    assert ended["ended_at"] == datetime.fromtimestamp(1_730_003_660, UTC)
    assert ended["cpu_s"] == pytest.approx(3_610.5)
    assert ended["time_limit_s"] == 5_400
    assert (ended["node_count"], ended["core_count"]) == (2, 6)
    assert (waiting["ended_at"], waiting["time_limit_s"]) == (None, None)


def test_an_offset_overrides_the_zone(parse):
    parsed = parse(with_cells(start="2024-05-03T08:00:10-0700", end="2024-05-03T16:00:10Z"))

    assert parsed.table.select("started_at", "ended_at").rows() == [
        (utc("2024-05-03T15:00:10"), utc("2024-05-03T16:00:10"))
    ]


def test_elapsed_decides_in_the_repeated_hour(parse, fixture_text):
    parsed = parse(fixture_text("slurm_sacct", "autumn.txt"))

    runs = parsed.table.select("batch_id", "started_at", "ended_at").rows()
    assert runs[:6] == [
        ("901", utc("2024-10-26T23:30:00"), utc("2024-10-27T00:30:00")),
        ("902", utc("2024-10-26T23:30:00"), utc("2024-10-27T01:30:00")),
        ("903", utc("2024-10-27T01:30:00"), utc("2024-10-27T02:30:00")),
        ("904", utc("2024-10-27T00:30:00"), utc("2024-10-27T02:30:00")),
        ("905", utc("2024-10-27T00:50:00"), utc("2024-10-27T01:10:00")),
        ("906", utc("2024-10-27T00:30:00"), None),
    ]
    assert parsed.table["submitted_at"][5] == utc("2024-10-27T00:15:00")


def test_the_skipped_hour_does_not_lengthen_a_run(parse, fixture_text):
    parsed = parse(fixture_text("slurm_sacct", "autumn.txt"))

    runs = parsed.table.select("batch_id", "started_at", "ended_at").rows()
    assert runs[6:] == [
        ("907", utc("2024-03-31T00:30:00"), utc("2024-03-31T01:30:00")),
        ("908", utc("2024-03-31T01:30:00"), utc("2024-03-31T02:00:00")),
    ]


def test_clock_changes_depend_on_the_zone(parse, new_york):
    parsed = parse(
        with_cells(start="2024-11-03T00:30:00", end="2024-11-03T01:30:00", elapsed="02:00:00"),
        zone=new_york,
    )

    assert parsed.table["ended_at"][0] == utc("2024-11-03T06:30:00")


@pytest.mark.parametrize("state", ["RUNNING", "PENDING", "SUSPENDED", "CONFIGURING", "COMPLETING"])
@pytest.mark.parametrize(
    "end", ["Unknown", "None", "", "2024-05-03T08:00:10", "2030-01-01T00:00:00"]
)
def test_an_unfinished_job_has_no_end(parse, state, end):
    parsed = parse(with_cells(state=state, end=end))

    assert parsed.table["ended_at"].to_list() == [None]


def test_a_running_job_has_nodes_and_no_cpu_time(header):
    [running] = rows_of(header, "531")

    assert running["nodes"] == "n[07-08]"
    assert running["cpu_s"] is None
    assert running["started_at"] == utc("2024-05-02T08:31:00")


def test_a_job_cancelled_while_pending_has_no_start(header):
    [cancelled] = rows_of(header, "530")

    assert cancelled["state"] == states.CANCELLED
    assert cancelled["started_at"] is None
    assert cancelled["ended_at"] == utc("2024-05-02T08:30:00")
    assert (cancelled["nodes"], cancelled["time_limit_s"]) == ("", None)


def test_elapsed_excludes_suspension(header):
    [paused] = rows_of(header, "532")

    assert (paused["ended_at"] - paused["started_at"]).total_seconds() == 3_600
    assert paused["nodes"] == "rack[1-2]_blade[0-1]"


def test_every_run_of_a_requeued_job_is_a_row(header):
    runs = rows_of(header, "533")

    assert [(run["state"], run["nodes"]) for run in runs] == [
        (states.OUT_OF_MEMORY, "n09"),
        (states.NODE_FAIL, "n10"),
    ]
    assert [(run["exit_status"], run["exit_signal"]) for run in runs] == [(0, 125), (1, 0)]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("state", "done", "state 'done' is not a word in capitals"),
        ("submit", "yesterday", "submit 'yesterday' is not a time"),
        ("start", "7164", "7164 is not the time of a job in epoch seconds"),
        ("elapsed", "half an hour", "elapsed 'half an hour' is not a duration"),
        ("exitcode", "x:0", "ExitCode 'x' is not a whole number"),
        ("nnodes", "4X", "nnodes '4X' is not a whole number"),
        ("ncpus", "99999999999", "ncpus 99999999999 is too large"),
        ("timelimit", "soon", "timelimit 'soon' is not a duration"),
        ("nodelist", "@all", "'@all' is not a host list"),
        ("jobidraw", "x", "JobIDRaw 'x' is not a whole number"),
    ],
)
def test_a_bad_value_rejects_only_its_line(parse, column, value, reason):
    bad = with_cells(**{column: value})

    parsed = parse(PLAIN, bad, PLAIN)

    assert parsed.rejects.rows() == [(2, bad, reason)]
    assert parsed.table["line"].to_list() == [1, 3]


@pytest.mark.parametrize("name", ["key_value.csv", "jobcomp.txt"])
def test_other_formats_are_refused_with_the_remedy(parse, fixture_text, name):
    parsed = parse(fixture_text("slurm_sacct/not_sacct", name))

    assert parsed.table.is_empty()
    assert parsed.account.rejected == parsed.account.lines
    assert parsed.rejects["reason"].unique().to_list() == [
        "columns found: 1, expected: 26; this is not the output of sacct --parsable2"
    ]


def test_a_record_across_chunks_is_joined(parse, fixture_text):
    text = fixture_text("slurm_sacct", "no_header.txt")

    at_once = parse(text)
    bytewise = parse(text, chunk_bytes=1)

    assert bytewise.table.equals(at_once.table)
    assert bytewise.rejects.equals(at_once.rejects)
    assert bytewise.account == at_once.account


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\n\0"), max_size=40)


@given(
    names=st.lists(NAMES, min_size=1, max_size=5),
    closed=st.booleans(),
    chunk_bytes=st.integers(1, 200),
)
def test_names_in_the_last_column_are_read_unchanged(parse, names, closed, chunk_bytes):
    bar = "|" if closed else ""
    lines = [f"{job}|COMPLETED|{name}{bar}" for job, name in enumerate(names)]

    parsed = parse(f"JobID|State|JobName{bar}", *lines, "", chunk_bytes=chunk_bytes)

    assert parsed.table["name"].to_list() == [name.removesuffix("\r").strip() for name in names]


@pytest.mark.parametrize(
    ("changes", "node_count", "core_count"),
    [
        ({"nnodes": "2K", "ncpus": "1M"}, 2048, 2**20),
        ({"nnodes": "2.05K"}, 2, 64),  # rounded: the nodes are counted
        ({"ncpus": "1.5K", "alloctres": "cpu=2K,node=2"}, 2, 2048),
    ],
)
def test_counts_may_have_units(parse, changes, node_count, core_count):
    [row] = parse(with_cells(**changes)).table.to_dicts()

    assert (row["node_count"], row["core_count"]) == (node_count, core_count)


@pytest.mark.parametrize(
    "message",
    [
        "sacct: error: slurm_persist_conn_open: failed",
        "slurm_load_jobs error: Unable to contact slurm controller",
    ],
)
def test_a_message_after_a_record_is_no_part_of_its_name(parse, message):
    parsed = parse(PLAIN, message, "")

    assert parsed.table["name"].to_list() == ["plain"]
    assert parsed.rejects["line"].to_list() == [2]


TEXTS = "JobID|SubmitLine|State|Submit|Start|End|NodeList|User"
REST = "COMPLETED|2024-06-01T10:00:00|2024-06-01T10:05:00|2024-06-01T10:06:00|n1|u"


@pytest.mark.parametrize("chunk_bytes", [16, 1 << 20])
def test_a_text_in_the_middle_may_hold_bars_and_newlines(parse, chunk_bytes):
    parsed = parse(
        TEXTS,
        "7|cat a | wc|" + REST,
        "8|echo hello &&",
        "",
        "12 | more|" + REST,
        "9|echo hello &&",
        "echo goodbye|" + REST,
        "10|srun a",
        "n1|u",
        "11|srun b|" + REST,
        chunk_bytes=chunk_bytes,
    )

    assert parsed.table.select("batch_id", "nodes").rows() == [
        ("7", "n1"),
        ("9", "n1"),
        ("11", "n1"),
    ]
    assert parsed.rejects["line"].to_list() == [3, 5, 8, 9]
    assert parsed.account == Account(lines=10, accepted=3, rejected=4, irrelevant=3)


def test_several_texts_with_bars_are_in_doubt(parse):
    parsed = parse(TEXTS.replace("User", "Comment"), "7|cat a | wc|" + REST)

    [reason] = parsed.rejects["reason"]
    assert reason.startswith("columns found: 9, expected: 8")


def test_a_job_does_not_start_before_its_submission_in_the_repeated_hour(parse):
    parsed = parse(
        "JobID|State|Submit|Start|End|Elapsed",
        "1|COMPLETED|2024-11-03T01:10:00|2024-11-03T01:05:00|2024-11-03T01:08:00|00:03:00",
        "2|COMPLETED|2024-11-03T01:10:00|2024-11-03T01:15:00|2024-11-03T01:18:00|00:03:00",
        zone=ZoneInfo("America/Chicago"),
    )

    assert parsed.table["submitted_at"].to_list() == [utc("2024-11-03T06:10:00")] * 2
    starts = [utc("2024-11-03T07:05:00"), utc("2024-11-03T06:15:00")]
    assert parsed.table["started_at"].to_list() == starts
