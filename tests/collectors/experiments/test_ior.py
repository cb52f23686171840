"""IOR: every version and form gives the same kind of rows."""

from zoneinfo import ZoneInfo

import pytest

from collectors.experiments import ior
from collectors.parsed import Account

UTC = ZoneInfo("UTC")
MIB = 1024**2
SAMPLES = {  # rows, nodes, bandwidth of the first row in MiB/s
    "ior-3.1.0_easy_write.txt": (1, 64, 4_012),
    "ior-3.2.0_hard_read.txt": (1, 184, 28_530),
    "ior-3.3.0dev_easy_read.txt": (1, 10, 110_032),
    "ior-3.4.0dev_easy_write.txt": (1, 10, 116_085),
    "ior-4.0.0_csv.csv": (4, None, 4_825.1987),
    "ior-4.0.0_json_2reps.json": (4, 1, 5_178.1531),
    "ior-4.0.0_json_stdout_v.json": (3, 1, 8_928.8004),
    "ior-4.1.0dev_easy_read.txt": (1, 10, 191_020),
}


@pytest.fixture
def read(source, whole, fixture_text):
    return lambda name: whole(ior.parse(source(fixture_text("ior", name)), UTC))


def values(row, kind):
    return {each["name"]: each["value"] for each in row[kind]}


def rows(parsed):
    return [
        (values(row, "labels")["operation"], values(row, "labels")["repetition"])
        for row in parsed.table.rows(named=True)
    ]


def test_each_repetition_and_operation_is_a_run(read):
    parsed = read("version_3.1.txt")

    assert rows(parsed) == [("write", "1"), ("read", "1"), ("write", "2"), ("read", "2")]
    first = parsed.table.row(0, named=True)
    assert (first["scale"], first["started_at"].isoformat()) == (2, "2017-06-05T10:00:01+00:00")
    assert values(first, "labels") | {"tasks": "8", "transfer_size": "1 MiB"} == {
        "api": "POSIX",
        "block_size": "1 GiB",
        "file_access": "file-per-process",
        "ior_version": "3.1.0",
        "operation": "write",
        "ordering": "sequential offsets",
        "ordering_between_files": "no tasks offsets",
        "repetition": "1",
        "tasks": "8",
        "tasks_per_node": "4",
        "transfer_size": "1 MiB",
    }
    assert values(first, "metrics") == pytest.approx(
        {
            "bandwidth_bytes_per_s": 1024 * MIB,
            "bytes": 8 * 1024 * MIB,
            "open_s": 0.01,
            "io_s": 7.9,
            "close_s": 0.09,
            "total_s": 8.0,
        }
    )


def test_results_survive_noise_and_damaged_results_are_rejected(read):
    parsed = read("version_3.4.txt")

    assert rows(parsed) == [("write", "1"), ("write", "2"), ("remove", "2")]
    assert [(line, reason) for line, _, reason in parsed.rejects.rows()] == [
        (41, "the bandwidth is not a finite number"),
        (42, "the result has fewer than 11 columns"),
    ]
    first, second, removal = (values(row, "metrics") for row in parsed.table.rows(named=True))
    # A deadline ended the first write: IOR printed its bytes. For the second, it is rate x time.
    assert (first["bytes"], second["bytes"]) == (68_719_476_736, 32 * 1024 * MIB)
    assert removal == {"total_s": 0.5}


def test_json_need_not_be_valid(read):
    parsed = read("verbose.json")

    assert rows(parsed) == [("write", "1"), ("remove", "1")]
    write = parsed.table.row(0, named=True)
    assert write["scale"] == 2
    assert values(write, "metrics")["bytes"] == 1_100_000 * 3 * 4
    assert values(write, "labels")["ordering"] == "random"
    assert [(line, reason) for line, _, reason in parsed.rejects.rows()] == [
        (47, "the bandwidth is not a finite number"),
        (61, "the result of read is cut"),
    ]


def test_csv_has_no_nodes(read):
    parsed = read("results.csv")

    assert parsed.account == Account(lines=3, accepted=2, rejected=0, irrelevant=1)
    assert parsed.table["scale"].null_count() == 2
    assert values(parsed.table.row(1, named=True), "metrics")["bytes"] == 2_000 * MIB * 2


@pytest.mark.parametrize("name", SAMPLES)
def test_real_output_is_read(source, whole, sample, name):
    text = sample("ior", name).read_bytes()

    parsed = whole(ior.parse(source(text), UTC))

    count, nodes, mib_per_s = SAMPLES[name]
    assert parsed.rejects.is_empty()
    assert parsed.table.height == count
    first = parsed.table.row(0, named=True)
    assert first["scale"] == nodes
    assert values(first, "metrics")["bandwidth_bytes_per_s"] == pytest.approx(mib_per_s * MIB)


def test_version_2_has_results_of_a_single_repetition_only(read, source, whole, fixture_text):
    parsed = read("version_2.10.txt")

    assert rows(parsed) == [("write", "1"), ("read", "1")]
    write = parsed.table.row(0, named=True)
    assert (write["scale"], write["started_at"].isoformat()) == (2, "2024-03-01T12:00:00+00:00")
    assert values(write, "labels")["transfer_size"] == "262144 bytes"
    assert values(write, "metrics") == {
        "bandwidth_bytes_per_s": 125 * MIB,
        "total_s": 0.032,
        "bytes": pytest.approx(4 * MIB),
    }

    text = fixture_text("ior", "version_2.10.txt")
    several = whole(ior.parse(source(text.replace(b"= 1\n", b"= 3\n")), UTC))
    assert several.table.is_empty()
    assert [reason.partition(":")[2] for reason in several.rejects["reason"]] == [
        " run it with -i 1, or use IOR 3"
    ] * 2
