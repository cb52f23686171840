"""The crisis in the RPC trace: its lines, its account, and waiting that increases with load."""

import subprocess
from datetime import datetime

import numpy as np
import pytest
from scipy.stats import spearmanr

from tests.simulator.reading import AWK, RPC, alps_lines, gunzip, unfold

pytestmark = pytest.mark.long

CRISIS_START = "2017-07-06T13:52:55+00:00"

# Per 10 s: handled requests of the main service, their service time and their waiting time (us).
LOAD = r"""
    /Handled RPC.* mdt0[01]_.* Request/ {
        split($0, part, ":")
        match($0, /procesed in [0-9]+us \([0-9]+us/)
        split(substr($0, RSTART + 12, RLENGTH - 14), times, "us [(]")
        bin = int(part[4] / 10)
        count[bin]++; service[bin] += times[1]; wait[bin] += times[2] - times[1]
    }
    END { for (bin in count) print bin, count[bin], service[bin], wait[bin] }
"""


@pytest.fixture(scope="module")
def dumps(centre):
    return {path.name: gunzip(path) for path in sorted((centre / "rpctrace").glob("*.gz"))}


@pytest.fixture(scope="module")
def load(dumps):
    """Return (requests per second, busy threads, mean wait in us) of each 10 s."""
    done = subprocess.run(
        [AWK, LOAD], input="".join(dumps.values()), check=True, capture_output=True, text=True
    )
    rows = sorted(tuple(map(float, line.split())) for line in done.stdout.splitlines())
    _, count, service, wait = np.array(rows).T
    return count / 10, service / 10e6, wait / count


def test_lines_have_the_format_of_lustre_2_8(dumps):
    for text in dumps.values():
        lines = text.splitlines()
        sample = [line for line in lines[::97] if "pname:cluuid" in line]
        records = [RPC.fullmatch(line) for line in sample]

        assert len(sample) > 3_000
        assert all(records)
        assert all(
            (line["service"] is None) == (line["kind"] == "Handling")
            and (line["service"] is None or int(line["service"]) <= int(line["total"]))
            for line in records
        )
        assert "F:14993" in text


def test_the_account_in_the_truth_equals_grep(dumps, truth):
    for name, text in dumps.items():
        account = truth["faults"]["dumps"][name]
        handled = [line for line in text.splitlines() if "Handled RPC" in line]
        whole = [line for line in handled if " rc " in line]

        assert account["lines"] == len(text.splitlines())
        assert account["handled"] == len(whole)
        assert account["torn"] == len(handled) - len(whole)
        assert account["dumped_twice"] == len(whole) - len(set(whole))
        assert account["handling"] == text.count("Handling RPC")


def test_both_dumps_together_have_every_request_once(truth):
    dumps = truth["faults"]["dumps"].values()
    once = sum(dump["handled"] + dump["torn"] - dump["dumped_twice"] for dump in dumps)

    assert once == sum(truth["trace"]["handled_of_opcode"].values())
    assert 300_000 < once < 1_500_000


def test_other_records_exist_and_some_continue_without_a_header(dumps):
    lines = [line for text in dumps.values() for line in text.splitlines()]

    other_lines = [line for line in lines if "ptlrpc_server_handle_request" not in line]
    assert sum(line.startswith("  set ") for line in other_lines) > 100
    assert sum("ldlm_lock.c" in line for line in other_lines) > 100
    assert other_lines[-1] == f"Debug log: {other_lines[-1].split()[2]} lines, " + ", ".join(
        (f"{other_lines[-1].split()[2]} kept", "0 dropped", "0 bad.")
    )


def test_a_thread_serves_one_request_at_a_time(dumps):
    busiest = list(dumps.values())[-1].splitlines()[:120_000]
    records = [RPC.fullmatch(line) for line in busiest]
    spans = sorted(
        (line["thread"], round(float(line["time"]) * 1e6), int(line["service"]))
        for line in records
        if line and line["kind"] == "Handled"
    )

    thread = np.array([thread for thread, _, _ in spans])
    end, service = np.array([(end, service) for _, end, service in spans]).T
    same = thread[1:] == thread[:-1]
    assert ((end - service)[1:] >= end[:-1])[same].all()


def test_waiting_increases_with_load(load):
    _, busy, wait = load

    assert spearmanr(busy, wait).statistic > 0.8


def test_waiting_has_a_knee_at_full_threads(load, truth):
    rate, busy, wait = load
    threads = truth["knees"][0]["threads"]
    (crisis,) = truth["trace"]["incidents"]

    assert busy.max() <= threads * 1.05
    assert wait[busy < 0.3 * threads].max() < 100
    assert wait[busy > 0.95 * threads].min() > 5_000
    # Below capacity, because they wait for locks.
    assert rate.max() < 1.3 * threads / (crisis["main_mean_service_us"] / 1e6)
    assert rate.max() < 0.2 * truth["knees"][0]["requests_per_s"]


def test_a_pilot_starts_with_a_spike(centre, dumps, truth):
    crisis = next(j for j in truth["jobs"] if j["started"] == CRISIS_START)
    (launch,) = (
        line
        for line in alps_lines(centre / "alps")
        if line["event"] == "Starting" and line["id"] == crisis["batch_id"]
    )
    nids = {f"{node}@gni" for node in unfold(launch["nodes"])}
    records = [RPC.fullmatch(line) for text in dumps.values() for line in text.splitlines()[::20]]
    start = datetime.fromisoformat(CRISIS_START).timestamp()
    moments = np.array(
        [float(line["time"]) - start for line in records if line and line["nid"] in nids]
    )

    rate = np.histogram(moments, [0, 60, 240, 420])[0] / [60, 180, 180]
    assert rate[0] > 1.4 * rate[1:].max()


def test_the_crisis_job_leads_the_trace(truth):
    crisis = next(j for j in truth["jobs"] if j["started"] == CRISIS_START)
    counts = truth["trace"]["handled_of_job"]

    assert counts[crisis["batch_id"]] > 200_000
    assert sum(counts.values()) <= sum(truth["trace"]["handled_of_opcode"].values())
