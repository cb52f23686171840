"""RPC traces: every handled RPC is counted once and attributed or pending."""

import subprocess

import pytest

from ioportal.telemetry.models import Method
from tests.logs import CLOSE, GETATTR, OPEN, Run, handling, rpc, sacct

pytestmark = pytest.mark.usefixtures("site")


@pytest.fixture
def trace(logs):
    """Write 15 minutes of a server's log with every kind of line."""
    lines = [
        rpc("12:00:01", "1@gni"),
        rpc("12:00:02", "1@gni", CLOSE, us=(20, 25)),
        handling("12:00:03"),
        rpc("12:00:04", "2@gni", job="77"),
        rpc("12:00:05", "2@gni", job="cp.0"),
        rpc("12:00:31", "3@gni", GETATTR, us=None),
        rpc("12:01:00", "10.9.9.9@tcp"),
        rpc("12:02:00", "0@lo"),
        "00000100:00100000:7.0:1499256000.000001:0:1:0:(x.c:1:f()) Handled RPC of no shape",
        "a line of another subsystem",
        rpc("12:15:00", "1@gni", OPEN),
    ]
    return logs("mds1.log", "\n".join(lines))


def grep(pattern, path):
    completed = subprocess.run(["grep", "-c", pattern, path], capture_output=True, check=False)
    return int(completed.stdout)


def awk(script, path):
    return int(subprocess.run(["awk", script, path], capture_output=True, check=True).stdout)


def test_the_number_of_rpcs_equals_a_count_by_grep(trace, ingest, queries, reconcile):
    account = ingest("rpctrace", trace, server="mds1")

    handled = grep("Handled RPC", trace)
    assert account["accepted"] + account["rejected"] == handled
    assert account["lines"] == grep("", trace)
    assert account["operations"] == account["accepted"] == 8
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(8,)]
    assert queries("SELECT sum(count) FROM telemetry_attributedrpc") == [(8,)]
    assert (
        sum(account["attributed"].values())
        + account["pending"]
        + account["contradicted"]
        + account["ambiguous"]
        + account["unattributed"]
        == account["operations"]
    )
    assert reconcile() == "1 segments reconcile."


def test_the_sum_of_service_times_equals_a_sum_by_awk(trace, ingest, queries):
    ingest("rpctrace", trace, server="mds1")

    script = r"""/Handled RPC .* in [0-9]+us/ {
        match($0, /in [0-9]+us/); s += substr($0, RSTART + 3, RLENGTH - 5) } END { print s }"""
    served_us = awk(script, trace)
    assert queries("SELECT sum(service_us_sum) FROM telemetry_rpcwindow") == [(served_us,)]
    assert queries("SELECT sum(service_us_sum) FROM telemetry_attributedrpc") == [(served_us,)]


def test_without_accounting_no_rpc_is_attributed_to_a_job(trace, ingest):
    account = ingest("rpctrace", trace, server="mds1")

    assert account["attributed"] == {"job": 0, "process": 1, "host": 5}
    assert (account["pending"], account["ambiguous"], account["unattributed"]) == (1, 0, 1)


def test_rpcs_are_attributed_to_jobs_by_id_node_and_process(trace, logs, ingest, queries):
    ingest(
        "sacct", logs("jobs", sacct(Run("77", nodes="n2"), Run("78", nodes="n1"))), cluster="anvil"
    )

    account = ingest("rpctrace", trace, server="mds1")

    assert account["attributed"] == {"job": 5, "process": 0, "host": 2}
    assert account["unattributed"] == 1
    by_method = queries(
        "SELECT j.batch_id, c.method, sum(c.count) FROM telemetry_attributedrpc c "
        "JOIN jobs_job j ON j.id = c.job_id GROUP BY 1, 2 ORDER BY 1, 2"
    )
    assert by_method == [
        ("77", Method.NODE_PROCESS, 1),
        ("77", Method.JOB_ID_NODE, 1),
        ("78", Method.NODE, 3),
    ]


def test_a_trace_stored_in_parts_adds_up(trace, ingest, queries, reconcile, monkeypatch):
    monkeypatch.setattr("ioportal.ingest.loaders.traces._ROWS_TOGETHER", 1)

    account = ingest("rpctrace", trace, server="mds1")

    assert account["operations"] == 8
    assert queries("SELECT sum(count) FROM telemetry_rpcwindow") == [(8,)]
    assert reconcile()


def test_the_node_decides_except_for_unknown_job_ids(logs, ingest, attribution):
    jobs = sacct(Run("77", nodes="n1"), Run("78", nodes="n2"))
    ids = ("78", "99", "bash.1000", "78:of-another-system", "")
    records = [rpc(f"12:1{n}", "1@gni", job=job) for n, job in enumerate(ids)]

    ingest("sacct", logs("jobs", jobs), cluster="anvil")
    ingest("rpctrace", logs("trace", "\n".join(records)), server="mds1")

    assert attribution() == {("pending", "99"): 1, ("job", "anvil 77"): 4}
