from datetime import UTC, datetime

import pytest

from collectors.lustre import export_stats
from collectors.parsed import Account
from collectors.tables import EXPORT_COUNTERS, METADATA_OPERATIONS, TIMES
from tests.collectors.lustre.counters import FIXTURES, awk, read, row_sum, samples

SUMS = r"""
    /^[A-Za-z][^ =]*=/ { relevant = /^mdt\.[^ ]*\.exports\.[^ ]*\.stats=/; rows += relevant }
    !relevant { next }
    $1 ~ /(samedir|crossdir|parallel|trylocks)/ { next }
    $3 == "samples" && !/bytes|connect|ping/ && $1 !~ /^(read|write|punch)$/ { operations += $2 }
    $3 == "samples" && $4 ~ /usec/ { times += $7 }
    END { printf "%d %.0f %.0f", rows, operations, times }
"""

NAME = "mdt.atlas-MDT0000.exports.10.1.2.3@o2ib1.stats="
TIME = "snapshot_time             1561032000.104501442 secs.nsecs"
OPEN = "open                      39 samples [reqs]"
CLOSE = "close                     38 samples [usecs] 6 4052 2613428 116956972"


def parse(*lines):
    text = "".join(line + "\n" for line in lines).encode()
    return read(export_stats, EXPORT_COUNTERS, text)


def test_a_client_becomes_a_row():
    rows, rejects, account = parse(NAME, TIME, OPEN, CLOSE, "ping     7 samples [reqs]")

    [row] = rows.rows(named=True)
    assert {name: value for name, value in row.items() if value is not None} == {
        "line": 1,
        "target": "atlas-MDT0000",
        "nid": "10.1.2.3@o2ib1",
        "snapshot_at": datetime(2019, 6, 20, 12, 0, 0, 104501, tzinfo=UTC),
        "open": 39,
        "close": 38,
        "close_us": 2613428,
    }
    assert rejects.rows() == []
    assert account == Account(lines=5, accepted=4, irrelevant=1)


@pytest.mark.parametrize(
    "nid", ["0@lo", "4217@gni", "2001:db8::10@tcp", "10.1.2.3@o2ib", "nid.exports.x@tcp1"]
)
def test_the_nid_follows_the_target(nid):
    rows, _, _ = parse(f"mdt.a.b-MDT0001.exports.{nid}.stats=", TIME, OPEN)

    assert rows.select("target", "nid").rows() == [("a.b-MDT0001", nid)]


def test_other_parameters_are_irrelevant():
    others = [
        "mdt.atlas-MDT0000.exports.10.1.2.3@o2ib1.uuid=0212161f",
        "obdfilter.atlas-OST0000.exports.10.1.2.3@o2ib1.stats=",
        TIME,
        "create                    4 samples [usecs] 3 1058 1459 1227857",
        "mdt.atlas-MDT0000.md_stats=",
        TIME,
        OPEN,
    ]
    rows, rejects, account = parse(*others)

    assert rows.is_empty()
    assert rejects.is_empty()
    assert account == Account(lines=7, irrelevant=7)


def test_bad_lines_are_rejected_with_the_reason():
    _, rejects, _ = parse(NAME, TIME, "open  39 sam", "warp  3 samples [reqs]", NAME, TIME, OPEN)

    assert rejects.select("line", "reason").rows() == [
        (3, export_stats.NOT_EXPORT_STATS),
        (4, "unknown counter warp"),
        (6, export_stats.SECOND_BLOCK),
        (7, export_stats.SECOND_BLOCK),
    ]


def test_statistics_without_names_are_rejected():
    rows, rejects, _ = parse(TIME, OPEN)

    assert rows.is_empty()
    assert set(rejects["reason"]) == {export_stats.NOT_NAMED}


@pytest.mark.parametrize(
    "path",
    [*sorted((FIXTURES / "lustre_export_stats").glob("*.txt")), *samples("lustre_get_param")],
)
def test_totals_agree_with_awk(path):
    clients, operations, times = awk(SUMS, path.read_bytes())

    rows, rejects, _ = read(export_stats, EXPORT_COUNTERS, path.read_bytes())

    assert rejects.rows() == []
    assert rows.height == clients
    assert row_sum(rows, METADATA_OPERATIONS) == operations
    assert row_sum(rows, [time for time, n in TIMES.items() if n in METADATA_OPERATIONS]) == times
