from datetime import UTC, datetime

import pytest

from collectors.lustre import service_stats
from collectors.lustre.counters import REPEATED, TOO_BIG
from collectors.parsed import Account
from collectors.tables import REJECTS, SERVICE_COUNTERS
from tests.collectors.lustre.counters import FIXTURES, awk, read, row_sum, samples

FOLDER = FIXTURES / "lustre_service_stats"

NAME = "mds.MDS.mdt_readpage.stats="
TIME = "snapshot_time             1561032000.104501442 secs.nsecs"
WAIT = "req_waittime              57267 samples [usec] 8 6033 4709981 1800908227"
CLOSE = "mds_close                 57000 samples [usecs] 3 411 2428494 688223694"

SUMS = r"""
    /^[A-Za-z][^ =]*=/ {
        relevant = /^(mds\.MDS|ost\.OSS|mgs\.MGS|ldlm\.services)\.[^ ]*\.stats=/; named = 1
        services += relevant; idle += relevant && /=./
    }
    !named && /^snapshot_time / { relevant = 1; services++ }
    !relevant { irrelevant++; next }
    $3 == "samples" { counters++ }
    $1 == "req_waittime" { requests += $2; waited += $7; busy++ }
    END { printf "%d %d %d %.0f %.0f", irrelevant, counters, services - busy, requests, waited }
"""


def parse(*lines):
    return read(service_stats, SERVICE_COUNTERS, "".join(f"{line}\n" for line in lines).encode())


def test_every_counter_of_a_service_becomes_a_row():
    rows, rejects, account = parse(NAME, TIME, WAIT, CLOSE)

    assert rows.row(0, named=True) == {
        "line": 3,
        "service": "mdt_rdpg",  # thread-name base, as in RPC traces
        "snapshot_at": datetime(2019, 6, 20, 12, 0, 0, 104501, tzinfo=UTC),
        "counted_since": None,
        "counter": "req_waittime",
        "unit": "usec",
        "samples": 57267,
        "min": 8,
        "max": 6033,
        "sum": 4709981,
    }
    assert rows["unit"].to_list() == ["usec", "usec"]
    assert dict(rows.schema) == SERVICE_COUNTERS.columns
    assert dict(rejects.schema) == REJECTS.columns
    assert account == Account(lines=4, accepted=4)


def test_a_service_without_counters_is_idle():
    rows, _, account = parse(f"mds.MDS.mdt_io.stats={TIME}")

    assert rows.select("service", "counter", "samples", "sum").rows() == [
        ("mdt_io", "req_waittime", 0, 0)
    ]
    assert account == Account(lines=1, accepted=1)


def test_a_service_whose_only_counter_is_unreadable_has_no_reading():
    rows, rejects, account = parse(NAME, TIME, "req_waittime              57267 samples [usec] 8 6")

    assert rows.is_empty()
    assert rejects["line"].to_list() == [3]
    assert account == Account(lines=3, accepted=2, rejected=1)


@pytest.mark.parametrize(
    "path",
    [
        *(pytest.param(path, id=path.name) for path in sorted(FOLDER.glob("*.txt"))),
        *samples("lustre_stats", "hpe_mds.MDS.mdt.stats"),
        *samples("lustre_get_param"),
    ],
)
def test_totals_of_every_file_agree_with_awk(path):
    irrelevant, counters, idle, requests, waited_us = awk(SUMS, path.read_bytes())

    rows, rejects, account = read(service_stats, SERVICE_COUNTERS, path.read_bytes())
    waits = rows.filter(counter="req_waittime")

    assert rejects.rows() == []
    assert account.irrelevant == irrelevant
    assert rows.height == counters + idle
    assert row_sum(waits, ["samples"]) == requests
    assert row_sum(waits, ["sum"]) == waited_us


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (WAIT, REPEATED),
        (CLOSE[:40], service_stats.NOT_SERVICE_STATS),
        ("open                      39 samples [reqs]", service_stats.NOT_SERVICE_STATS),
        ("mds_sync                  1 samples [furlongs] 1 1 1 1", "unknown unit furlongs"),
        (f"mds_sync                  {2**60} samples [usec] 1 1 1 1", TOO_BIG),
        (f"mds_sync                  1 samples [usec] 1 1 {2**64} 1", TOO_BIG),
    ],
)
def test_only_the_unreadable_line_is_rejected(line, reason):
    rows, rejects, account = parse(NAME, TIME, WAIT, line, CLOSE)

    assert rows["counter"].to_list() == ["req_waittime", "mds_close"]
    assert rejects.select("line", "reason").rows() == [(4, reason)]
    assert account == Account(lines=5, accepted=4, rejected=1)


def test_statistics_of_a_client_are_rejected():
    lines = (TIME, "getattr                   16 samples [usecs] 11 90 412 15330")

    _, rejects, account = parse(*lines)
    _, _, named = parse("mds.MDS.mdt.stats=", *lines)

    assert rejects["reason"].to_list() == [service_stats.OTHER_STATISTICS] * 2
    assert account == Account(lines=2, rejected=2)
    assert named == Account(lines=3, accepted=3)
