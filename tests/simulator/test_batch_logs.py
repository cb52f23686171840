"""Accounting and launches: complete records, true times, no node with two jobs."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests.simulator.reading import alps_lines, pbs_records, unfold

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def records(centre):
    return [record for path in sorted((centre / "pbs").iterdir()) for record in pbs_records(path)]


@pytest.fixture(scope="module")
def launches(centre):
    return list(alps_lines(centre / "alps"))


def by_label(truth, label):
    return [job for job in on_machine(truth) if job["label"] == label]


def on_machine(truth):
    return [job for job in truth["jobs"] if job["cluster"] == "titan"]


def test_header_times_are_the_local_form_of_the_epoch_keys(records):
    key_of = {"S": "start", "E": "end"}

    for stamp, kind, _, values in records:
        if kind in key_of:
            assert stamp.timestamp() == int(values[key_of[kind]])


def test_a_record_is_in_the_file_of_its_local_month(centre):
    for path in (centre / "pbs").iterdir():
        for stamp, *_ in pbs_records(path):
            assert (stamp - timedelta(hours=4)).strftime("%Y%m") == path.name


def test_accounting_names_the_batch_host_and_not_the_nodes(records):
    hosts = Counter(values["exec_host"] for _, kind, _, values in records if kind == "E")

    assert set(hosts) == {f"titan-batch{n}/0" for n in (1, 2, 3, 4)}


def test_accounting_equals_the_truth(records, truth):
    ended = {job: values for _, kind, job, values in records if kind == "E"}

    late = truth["faults"]["late_job"]
    assert ended.keys() == {
        job["batch_id"] for job in on_machine(truth) if job["ended"] and job["batch_id"] != late
    }
    for job in on_machine(truth):
        if job["batch_id"] in ended:
            values = ended[job["batch_id"]]
            assert int(values["start"]) == datetime.fromisoformat(job["started"]).timestamp()
            assert int(values["Resource_List.nodect"]) == job["node_count"]


def test_a_job_has_late_accounting(centre, records, truth):
    late = truth["faults"]["late_job"]

    (path,) = (centre / "late").iterdir()
    assert [(kind, job) for _, kind, job, _ in pbs_records(path)] == [
        ("Q", late),
        ("S", late),
        ("E", late),
    ]
    assert late not in {job for _, _, job, _ in records}


def test_no_node_runs_two_jobs_at_the_same_time(launches):
    ends = {
        line["apid"]: datetime.fromisoformat(line["time"]).timestamp()
        for line in launches
        if line["event"] == "Finishing"
    }
    parts = []
    for line in launches:
        if line["event"] == "Starting":
            nodes = unfold(line["nodes"])
            assert len(nodes) == int(line["count"])
            start = datetime.fromisoformat(line["time"]).timestamp()
            end = ends.get(line["apid"], float("inf"))
            parts.append(np.column_stack([nodes, *([x] * len(nodes) for x in (start, end))]))
    node, start, end = np.concatenate(parts).T
    order = np.lexsort((start, node))
    node, start, end = node[order], start[order], end[order]

    same_node = node[1:] == node[:-1]
    assert len(node) > 100_000
    assert (start[1:] >= end[:-1])[same_node].all()


def test_apids_increase_and_include_the_listed_launches(launches, truth):
    starts = [line for line in launches if line["event"] == "Starting"]
    apids = [int(line["apid"]) for line in starts]

    assert apids == sorted(set(apids))
    for apid, nodes in (("9205593", 300), ("9205355", 62)):
        (line,) = (line for line in starts if line["apid"] == apid)
        assert line["id"] == truth["golden"][apid]["batch_id"]
        assert int(line["count"]) == nodes


def test_the_reported_jobs_run_at_their_times(truth):
    def ran(label, start, end):
        return [
            job
            for job in by_label(truth, label)
            if (job["started"], job["ended"], job["node_count"]) == (start, end, 300)
        ]

    (crisis,) = ran("panda, wide stripes", "2017-07-06T13:52:55+00:00", "2017-07-06T19:57:31+00:00")
    assert crisis["metadata_operations"] > 2_000_000
    assert ran("panda, one stripe", "2017-07-07T03:26:16+00:00", "2017-07-07T04:03:47+00:00")


def test_the_campaign_does_not_exceed_its_slots(truth):
    pilots = [job for job in truth["jobs"] if job["label"].startswith("panda") and job["started"]]

    def running(*at):
        moment = datetime(2017, 7, *at, tzinfo=UTC).isoformat()
        return sum(j["started"] <= moment < (j["ended"] or "9999") for j in pilots)

    assert running(5, 12) in range(15, 21)
    assert running(6, 18) in range(15, 22)  # with the reported job, which started separately
    assert running(7, 0) == 1
    assert running(7, 12) in range(4, 6)


def test_a_centre_has_failures_and_unfinished_jobs(records, truth):
    exits = Counter(values["Exit_status"] for _, kind, _, values in records if kind == "E")
    running = [job for job in truth["jobs"] if job["started"] and not job["ended"]]

    assert exits["0"] > 0.7 * exits.total()
    assert {"1", "139", "271"} <= exits.keys()
    assert running
