"""Today's centre: logs that grow as time goes by, and go on after a pause."""

import json
import re
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest

from collectors.agent import config
from simulator import feeds, live
from simulator.live import Live, State
from simulator.today import Today
from tests.simulator.reading import RPC

NOON = 1_763_812_800  # 2025-11-22
STORM_S = 180  # after the doors opened
HOUR = 3_600


@pytest.fixture
def pass_time(tmp_path, monkeypatch):
    """Have a run begin at a moment, and write what happens in a time."""

    def run(seconds, step_s=1, begin=None):
        state = State.of(tmp_path, seed=1, pace=1)
        begin = begin or state.until
        monkeypatch.setattr(live, "time", lambda: begin)
        logs = Live(tmp_path, state)
        for now in range(begin + step_s, begin + seconds + 1, step_s):
            monkeypatch.setattr(live, "time", lambda now=now: now)
            logs.write(now)

    return run


@pytest.fixture(autouse=True)
def _opened(tmp_path):
    """The doors opened at noon, and nothing is written yet."""
    state = {"seed": 1, "pace": 1, "begun": NOON - 60, "opened": NOON, "until": NOON - 60}
    (tmp_path / "state.json").write_text(json.dumps(state))


def rpcs(folder):
    """Return what the trace says, in the order of its lines."""
    logs = sorted(folder.glob("rpctrace.log*"), key=lambda log: (log.suffix == ".log", log))
    found = [RPC.fullmatch(line) for log in logs for line in log.read_text().splitlines()]
    assert all(found)
    return found


def opens(folder):
    counters = (folder / "md_stats.txt").read_text()
    [found] = re.findall(r"^open +(\d+) samples", counters, re.MULTILINE)
    return int(found)


def test_the_trace_of_a_second_is_written_when_the_second_is_over(pass_time, tmp_path):
    pass_time(20)

    times = [float(rpc["time"]) for rpc in rpcs(tmp_path)]
    assert times == sorted(times)
    assert times[0] >= NOON - 60
    assert NOON - 41 < times[-1] < NOON - 40


def test_a_storm_is_told_of_is_on_top_and_makes_others_wait(pass_time, tmp_path):
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


def test_after_a_pause_the_same_jobs_run_and_counters_have_gone_on(pass_time, tmp_path):
    pass_time(30)
    before = opens(tmp_path)
    pass_time(30, begin=NOON + HOUR)

    times = np.array([float(rpc["time"]) for rpc in rpcs(tmp_path)])
    assert np.diff(times).max() > HOUR  # nobody traced
    assert opens(tmp_path) > before + 1_000
    ended = (tmp_path / "sacct.txt").read_text().splitlines()[1:]
    assert any(NOON < int(line.split("|")[9]) < NOON + HOUR for line in ended)
    assert len(list((tmp_path / "panda").iterdir())) > 3


def test_whoever_asks_again_is_told_the_same_and_nobody_shares_a_node():
    def running():
        return [job for job in Today(1, NOON, NOON, 1).jobs(NOON, NOON + 1) if job.started < NOON]

    jobs = running()

    assert [vars(job)["number"] for job in running()] == [job.number for job in jobs]
    assert len(jobs) > 20
    held = [{(job.cluster, node) for node in job.nodes.tolist()} for job in jobs]
    assert not any(one & other for one, other in combinations(held, 2))


def test_an_agent_understands_where_the_logs_are(tmp_path):
    feeds.write(tmp_path, "http://127.0.0.1:8000")

    understood = config.load(tmp_path / "agent.toml")

    assert understood.url == "http://127.0.0.1:8000"
    assert {source.format.name for source in understood.sources} == {
        *("rpctrace", "job_stats", "md_stats", "squeue", "sacct", "pbs", "panda")
    }
