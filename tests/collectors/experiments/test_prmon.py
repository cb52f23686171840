import csv
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import tables
from collectors.experiments import prmon
from collectors.parsed import Account
from tests.collectors.experiments.test_cmssw_fjr import named


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(text, chunk_bytes=1 << 20):
        return whole(prmon.parse(source(text, chunk_bytes=chunk_bytes)))

    return run


@pytest.fixture(scope="session")
def parse_summary(source, whole):
    def run(text):
        return whole(prmon.parse_summary(source(text)))

    return run


def test_samples_are_read_in_bytes_and_seconds(parse, fixture_text):
    parsed = parse(fixture_text("prmon", "prmon.txt"))

    assert parsed.table.schema == tables.PROCESS_SAMPLES.columns
    assert parsed.table.to_dicts()[0] == {
        "line": 2,
        "at": datetime(2018, 5, 30, 8, 37, 58, tzinfo=UTC),
        "elapsed_s": 30,
        "pss_bytes": 300_000 * 1_024,
        "rss_bytes": 310_000 * 1_024,
        "swap_bytes": 0,
        "vmem_bytes": 929_804 * 1_024,
        "nprocs": None,
        "nthreads": None,
        "utime_s": 25,
        "stime_s": 2,
        "rchar_bytes": 21_411_819,
        "wchar_bytes": 1_091_256,
        "read_bytes": 27_222_400,
        "write_bytes": 69_632,
        "rx_bytes": 9_089_738,
        "tx_bytes": 348_583,
    }
    assert parsed.table["stime_s"].to_list() == [2, 4, 6, 5, 10]  # as printed
    assert parsed.account == Account(lines=6, accepted=5, irrelevant=1)


def test_columns_are_found_by_name_and_may_be_missing(parse, fixture_text):
    first, second = parse(fixture_text("prmon", "columns.txt")).table.to_dicts()

    assert (first["rss_bytes"], first["vmem_bytes"], first["rx_bytes"]) == (
        2_048 * 1_024,
        None,
        None,
    )
    assert (second["pss_bytes"], second["nthreads"], second["utime_s"]) == (None, 9, 2)


HEADER = "Time\twtime\trss"
SAMPLE = "1527669478\t30\t5"


@pytest.mark.parametrize(
    ("lines", "line", "reason"),
    [
        ([SAMPLE], 1, "a sample without a header of its own before it"),
        ([HEADER, SAMPLE, HEADER, SAMPLE], 3, "a second header: an input describes one run"),
        ([HEADER + "\trss", SAMPLE], 1, "column 'rss' repeats"),
        ([HEADER, "1527669478\t30"], 2, "2 cells instead of 3"),
        ([HEADER, "1527669478\t30\t-5"], 2, "rss -5 is negative"),
        ([HEADER, "1527669478\t30\t5e400"], 2, "rss '5e400' is not a number"),
        ([HEADER, "15\t30\t5"], 2, "15 is not the time of a job in epoch seconds"),
        ([HEADER, SAMPLE, "1527669477\t31\t5"], 3,
         "Time 1527669477 is before the Time 1527669478 of a sample above"),
        ([HEADER, "1527669478\t3000000000\t5"], 2, "wtime 3000000000 is too large"),
    ],
)  # fmt: skip
def test_a_bad_line_is_rejected_with_a_reason(parse, lines, line, reason):
    parsed = parse("\n".join(lines).encode())

    assert (line, reason) in parsed.rejects.select("line", "reason").rows()
    account = parsed.account
    assert account.lines == account.accepted + account.rejected + account.irrelevant == len(lines)


@given(
    damage=st.lists(st.tuples(st.integers(1, 400), st.integers(0, 40), st.binary(max_size=4))),
    chunk_bytes=st.integers(1, 300),
)
def test_every_line_of_a_damaged_file_is_accounted_for(parse, fixture_text, damage, chunk_bytes):
    text = fixture_text("prmon", "prmon.txt")
    for at, length, other in damage:
        text = text[:at] + other + text[at + length :]
    parsed = parse(text, chunk_bytes)

    account = parsed.account
    assert account.lines == text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    assert account.accepted == parsed.table.height
    assert account.rejected == parsed.rejects.height
    assert account.lines == account.accepted + account.rejected + account.irrelevant


def test_a_summary_gives_totals_and_maxima_but_no_means(parse_summary, fixture_text):
    parsed = parse_summary(fixture_text("prmon", "prmon.json"))
    [row] = map(named, parsed.table.to_dicts())

    assert row["labels"] == {"prmon": "3.3.0", "cpu": "Example CPU 2.4 GHz", "cores": "16"}
    assert row["metrics"] == {
        "max_energy_pkg": 12,
        "max_nprocs": 3,
        "max_nthreads": 4,
        "max_pss_bytes": 71_932 * 1_024,
        "max_rss_bytes": 75_676 * 1_024,
        "max_swap_bytes": 0,
        "max_vmem_bytes": 80_124 * 1_024,
        "process_rchar_bytes": 1_263_384_845,
        "process_wchar_bytes": 629_151_032,
        "process_read_bytes": 1_658_880,
        "process_write_bytes": 629_178_368,
        "process_stime_s": 1,
        "process_utime_s": 6,
        "process_wall_s": 7,
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{}", "Max or its wtime is missing"),
        (b'{"Max": {"wtime": "much"}}', "wtime 'much' is not a number"),
        (b'{"Max": {"wtime": [1]}}', "'wtime' is not a number"),
        (b'{"Max": {"wtime": 5', "not a JSON object"),
        (b"Time\twtime", "not a JSON object"),
    ],
)
def test_another_document_is_refused(parse_summary, text, reason):
    parsed = parse_summary(text)

    assert parsed.table.is_empty()
    assert reason in parsed.rejects["reason"][0]


@pytest.mark.parametrize("name", ["prmon.txt", "prmon3.3.0_units.txt", "prmon_v3_pair.txt"])
def test_the_samples_of_real_systems_are_read(parse, sample, name):
    path = sample("prmon", name)
    with path.open() as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    parsed = parse(path.read_bytes())

    assert parsed.account == Account(lines=len(rows) + 1, accepted=len(rows), irrelevant=1)
    assert parsed.table["rss_bytes"].to_list() == [int(row["rss"]) * 1_024 for row in rows]
    assert parsed.table["read_bytes"].to_list() == [int(row["read_bytes"]) for row in rows]


@pytest.mark.parametrize("name", ["prmon3.3.0_units.json", "prmon_v3_pair.json"])
def test_the_summaries_of_real_systems_are_read(parse_summary, sample, name):
    parsed = parse_summary(sample("prmon", name).read_bytes())
    [row] = map(named, parsed.table.to_dicts())

    assert row["metrics"]["process_wall_s"] == 7
