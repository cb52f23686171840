"""Today's centre: growing logs that continue after a pause."""

import json
import re
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

from collectors.agent import config
from simulator import feeds, live, site
from simulator.batch.jobs import Kind
from simulator.live import Live, State
from simulator.today import KNEE_PER_S, Today
from tests.simulator.reading import RPC

pytestmark = pytest.mark.long

NOON = 1_763_812_800  # 2025-11-22
STORM_S = 180  # after the start
HOUR = 3_600


@pytest.fixture
def pass_time(tmp_path, monkeypatch):
    """Start a run at a given time, and write its events for a duration."""

    def run(seconds, step_s=1, begin=None):
        state = State.load(tmp_path, seed=1, pace=1)
        begin = begin or state.until
        monkeypatch.setattr(live, "time", lambda: begin)
        logs = Live(tmp_path, state)
        for now in range(begin + step_s, begin + seconds + 1, step_s):
            monkeypatch.setattr(live, "time", lambda now=now: now)
            logs.write(now)

    return run


@pytest.fixture(autouse=True)
def _opened(tmp_path):
    """A centre that starts at noon, before any output."""
    state = {"seed": 1, "pace": 1, "begun": NOON - 60, "opened": NOON, "until": NOON - 60}
    (tmp_path / "state.json").write_text(json.dumps(state))


def rpcs(folder):
    """Return the trace's records in the order of its lines."""
    logs = sorted(folder.glob("rpctrace.log*"), key=lambda log: (log.suffix == ".log", log))
    matches = [RPC.fullmatch(line) for log in logs for line in log.read_text().splitlines()]
    assert all(matches)
    return matches


def opens(folder, name="md_stats"):
    counters = (folder / f"{name}.txt").read_text()
    return sum(map(int, re.findall(r"^open +(\d+) samples", counters, re.MULTILINE)))


def test_the_trace_of_a_second_is_written_after_the_second(pass_time, tmp_path):
    pass_time(20)

    times = [float(rpc["time"]) for rpc in rpcs(tmp_path)]
    assert times == sorted(times)
    assert times[0] >= NOON - 60
    assert NOON - 41 < times[-1] < NOON - 40


def test_a_storm_is_recorded_leads_the_trace_and_delays_others(pass_time, tmp_path):
    pass_time(60 + STORM_S + 70, step_s=10)

    [storm] = map(json.loads, (tmp_path / "truth.jsonl").read_text().splitlines())
    assert storm["kind"] == "metadata storm"
    assert storm["onset"] == "2025-11-22T12:03:00+00:00"
    minutes = Counter()
    waits_us = defaultdict(list)  # of others
    for rpc in rpcs(tmp_path):
        minute = (int(float(rpc["time"])) - NOON - STORM_S) // 60
        if rpc["job"] == storm["job"]:
            minutes[minute] += 1
        else:
            waits_us[minute].append(int(rpc["total"]))
    assert min(minutes) == 0
    assert minutes[0] > 50 * len(waits_us[0])
    assert np.mean(waits_us[0][-200:]) > 10 * np.mean(waits_us[-2])
    assert f"|{storm['user']}|" in (tmp_path / "squeue.txt").read_text()


def test_operations_of_clients_add_up_to_those_of_the_mdt(pass_time, tmp_path):
    pass_time(20)
    pass_time(20, begin=NOON)

    clients = re.findall(
        r"^mdt\.atlas2-MDT0000\.exports\.(\S+)\.stats=$",
        (tmp_path / "exports.txt").read_text(),
        re.MULTILINE,
    )
    assert len(set(clients)) == len(clients) > 20
    assert any(nid.startswith("10.36.226.1") for nid in clients)  # log-in nodes
    assert opens(tmp_path, "exports") == opens(tmp_path) > 0


def test_after_a_pause_the_same_jobs_run_with_higher_counters(pass_time, tmp_path):
    pass_time(30)
    before = opens(tmp_path)
    pass_time(30, begin=NOON + HOUR)

    times = np.array([float(rpc["time"]) for rpc in rpcs(tmp_path)])
    assert np.diff(times).max() > HOUR  # not traced in the pause
    assert opens(tmp_path) > before + 1_000
    ended = (tmp_path / "sacct.txt").read_text().splitlines()[1:]
    assert any(NOON < int(line.split("|")[9]) < NOON + HOUR for line in ended)
    assert len(list((tmp_path / "panda").iterdir())) > 3


def test_a_pilot_is_recorded_when_it_ends(pass_time, tmp_path):
    jobs = Today(1, NOON - 60, NOON, 1).jobs(NOON, NOON + HOUR)
    pilot = next(job for job in jobs if job.cluster == site.CLUSTER and job.ended < NOON + HOUR)

    pass_time(3, begin=pilot.ended - 1)

    assert (tmp_path / f"panda/{pilot.number}.json").exists()
    records = "".join(file.read_text() for file in (tmp_path / "pbs").iterdir())
    assert f";E;{pilot.number}." in records


def test_storms_differ_and_exceed_the_capacity():
    events = Today(1, NOON, NOON, 1).events(NOON, NOON + 4 * HOUR)
    storms = [event.rates for event in events if event.job.kind is Kind.STORM]

    assert len(set(map(sum, storms))) == len(storms) > 10
    assert all(sum(rates) / len(rates) > 1.1 * 5_500 for rates in storms)
    assert all(max(rates) > KNEE_PER_S for rates in storms)


def test_the_counters_of_osts_are_printed_each_minute(pass_time, tmp_path):
    pass_time(120)

    for oss, osts in site.OSTS_OF_OSS.items():
        text = (tmp_path / f"{oss}.txt").read_text()
        assert re.findall(r"obdfilter\.(\S+)\.job_stats", text) == list(osts)
        assert "read_bytes" in text
        assert "write_bytes" in text


def test_repeated_queries_agree_and_no_node_is_shared():
    def running():
        return [job for job in Today(1, NOON, NOON, 1).jobs(NOON, NOON + 1) if job.started < NOON]

    jobs = running()

    assert [vars(job)["number"] for job in running()] == [job.number for job in jobs]
    assert len(jobs) > 20
    nodes = [{(job.cluster, node) for node in job.nodes.tolist()} for job in jobs]
    assert not any(first & second for first, second in combinations(nodes, 2))


def test_the_agent_accepts_the_written_configuration(tmp_path):
    feeds.write(tmp_path, "http://127.0.0.1:8000")

    understood = config.load(tmp_path / "agent.toml")

    assert understood.url == "http://127.0.0.1:8000"
    assert {source.format.name for source in understood.sources} == {
        *("rpctrace", "job_stats", "md_stats", "exports", "squeue", "sacct", "pbs", "panda")
    }
