import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.experiments import cmssw_log
from collectors.parsed import Account
from tests.collectors.experiments.test_cmssw_fjr import named

MIB = 2**20
RELEVANT = re.compile(rb"<counter|^(real|user|sys)\t|buffers|performed")


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(text, chunk_bytes=1 << 20):
        return whole(cmssw_log.parse(source(text, chunk_bytes=chunk_bytes)))

    return run


@pytest.fixture(scope="session")
def log(parse, fixture_text):
    def read(name):
        [row] = parse(fixture_text("cmssw_log", name)).table.to_dicts()
        return named(row)

    return read


def test_a_log_with_counters_times_and_markers(log):
    row = log("cern_improved.log")

    assert row["markers"] == [
        "Using my custom readv impl for 1346 buffers",
        "Number of reads performed 506",
    ]
    assert row["counters"]["rfio/read"] == pytest.approx(
        (22_416, 22_416, 805.87 * MIB, 71.7471, 5.12e-6, 0.677673)
    )
    assert row["metrics"] == pytest.approx(
        {
            "wall_s": 713.148,
            "user_s": 605.383,
            "sys_s": 17.628,
            "logged_readv_calls": 1,
            "logged_readv_buffers": 1_346,
            "logged_reads_performed": 506,
            "read_operations": 22_416,
            "read_bytes": 805.87 * MIB,
            "read_s": 71.7471,
        }
    )
    assert row["labels"] == {"protocol": "rfio"}


@pytest.mark.parametrize(
    ("name", "wall_s", "counters"),
    [
        ("cern_original.log", 838.683, 7),
        ("fnal_improved.log", 604.795, 9),
        ("fnal_original.log", 621.438, 8),  # without outer tags
        ("ral_original.log", 725.73, 4),
        ("ral_coalescing.log", 674.95, 7),
        ("ral_lazy_download.log", 664.7, 6),
    ],
)
def test_both_styles_of_time_and_blocks_without_tags(log, name, wall_s, counters):
    row = log(name)

    assert row["metrics"]["wall_s"] == pytest.approx(wall_s)
    assert len(row["counters"]) == counters


def test_other_lines_are_irrelevant(parse, fixture_text):
    text = fixture_text("cmssw_log", "cern_improved.log")
    relevant = re.findall(
        rb"^.*(?:<counter|^(?:real|user|sys)|buffers|performed).*$", text, re.MULTILINE
    )

    account = parse(text).account
    assert account == Account(
        text.count(b"\n"), len(relevant), 0, text.count(b"\n") - len(relevant)
    )


@given(
    noise=st.lists(
        st.tuples(st.integers(0, 20), st.sampled_from([b"real data", b"sys", b"\xff\0"]))
    ),
    chunk_bytes=st.integers(1, 500),
)
def test_interleaved_lines_and_chunks_do_not_matter(parse, fixture_text, noise, chunk_bytes):
    lines = fixture_text("cmssw_log", "cern_improved.log").splitlines()
    expected = parse(b"\n".join(lines))
    for where, other in noise:
        lines.insert(where, other)
    parsed = parse(b"\n".join(lines), chunk_bytes)

    assert parsed.table.drop("line").equals(expected.table.drop("line"))
    assert parsed.account == Account(
        len(lines), expected.account.accepted, 0, len(lines) - expected.account.accepted
    )


def test_events_and_exceptions_are_found(parse):
    row = parse(
        b"TrigReport Events total = 4000 passed = 4000 failed = 0\n"
        b"----- Begin Fatal Exception 13-May-2010 10:00:00 CEST-----------------------\n"
    ).table.to_dicts()[0]

    assert (row["events"], row["state"]) == (4_000, "failed")


def test_a_cut_counter_is_rejected_and_the_run_remains(parse, fixture_text):
    text = fixture_text("cmssw_log", "ral_original.log")
    parsed = parse(text[: text.index(b"read-actual") + 40])

    assert parsed.table.height == 1
    assert parsed.rejects.select("line", "reason").rows() == [(5, "a counter is cut")]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (
            ("ral_original.log", "ral_coalescing.log"),
            "rfio/read repeats: an input describes one run",
        ),
        (("ral_original.log",) * 2, "the time 'real' repeats: an input describes one run"),
    ],
)
def test_a_log_of_several_runs_is_refused(parse, fixture_text, names, reason):
    parsed = parse(b"".join(fixture_text("cmssw_log", name) for name in names))

    assert parsed.table.is_empty()
    assert parsed.account.accepted == 0
    assert reason in parsed.rejects["reason"].to_list()


def test_a_log_without_statistics_has_no_run(parse):
    assert parse(b"Begin processing\nreal life\n").account == Account(lines=2, irrelevant=2)
