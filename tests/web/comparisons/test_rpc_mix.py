"""The mix of RPCs by kind on comparison pages, counted in the lines of the trace."""

from urllib.parse import urlencode

import pytest
from django.core.cache import cache

from ioportal.jobs import statistics
from ioportal.telemetry import rollups
from ioportal.telemetry.stage_runs import drain
from tests.logs import CLOSE, OPEN, Run, rpc, sacct
from tests.web.reading import csv_of, words_of

QUERY = urlencode({"arm": ["user=alice", "user=bob"]}, doseq=True)


@pytest.fixture
def _traced(site, ingest, logs):
    """Ingest jobs of alice and bob, and a trace of one job of each."""
    runs = [
        Run("1", "12:00", "12:30", "n1"),
        Run("2", "14:00", "14:30", "n1"),
        Run("3", "12:00", "12:30", "n2", user="bob"),
    ]
    ingest("sacct", logs("sacct", sacct(*runs)), cluster="anvil")
    trace = [
        rpc(f"12:05:{second:02}", f"{node}@gni", opcode)
        for second, (node, opcode) in enumerate(
            [(1, OPEN), (1, OPEN), (1, OPEN), (1, CLOSE), (2, OPEN), (2, CLOSE), (2, CLOSE),
             (2, CLOSE), (9, OPEN)]
        )
    ]  # fmt: skip
    ingest("rpctrace", logs("trace", *trace), server="mds1")
    drain(statistics.refresh_statistics)


@pytest.mark.usefixtures("_traced")
def test_shares_of_rpc_kinds_are_those_of_the_trace(as_staff):
    expected = [
        ["LDLM_ENQUEUE", "0.75", "0.25", "3", "1"],
        ["MDS_CLOSE", "0.25", "0.75", "1", "3"],
    ]
    for _ in ("windows", "roll-ups"):
        rows = csv_of(as_staff.get(f"/compare/charts/rpcs/?{QUERY}&format=csv"))
        assert [list(row.values()) for row in rows] == expected
        drain(rollups.roll_up)
        cache.clear()
    words = words_of(as_staff.get(f"/compare/?{QUERY}"))

    assert "Batch jobs with traces: 1 of 2 in “user: alice”, 1 of 1 in “user: bob”." in words
    assert "LDLM_ENQUEUE 75.0 % 25.0 % \N{MINUS SIGN}50.0" in words
