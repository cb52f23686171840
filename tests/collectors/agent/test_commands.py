"""The commands status and parse."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from collectors.__main__ import main
from tests.collectors.agent.traces import trace


@pytest.fixture
def log(agent):
    path = agent.folder / "rpctrace.log"
    path.write_text(trace(range(20)))
    agent.configure(
        f'metrics = "{agent.folder}/agent.prom"\n'
        f'[[source]]\nname = "mds1"\nformat = "rpctrace"\ntoken_file = "token"\nfile = "{path}"\n'
        'every = "50ms"\n'
    )
    return path


def test_status_and_metrics_of_a_healthy_agent(agent, portal, log, eventually, capsys):
    with agent.running():
        eventually(lambda: portal.account() == 20)

    assert main(["status", "--json", "--config", str(agent.config)]) == 0
    status = json.loads(capsys.readouterr().out)
    assert status["summary"] == []
    assert status["sources"]["mds1"]["lines"] == 20
    assert status["sources"]["mds1"]["spool_batches"] == 0

    assert main(["status", "--config", str(agent.config)]) == 0
    assert "0 of 20" in capsys.readouterr().out

    metrics = (agent.folder / "agent.prom").read_text().splitlines()
    assert 'ioportal_agent_lines_total{source="mds1"} 20' in metrics
    assert "# TYPE ioportal_agent_spool_bytes gauge" in metrics


def test_status_lists_problems(agent, portal, log, eventually, capsys):
    portal.answers += [(422, {}, {"code": "no"})]
    with agent.running():
        eventually(lambda: portal.deliveries)
    path = agent.state / "status.json"
    status = json.loads(path.read_text())
    status["at"] = (datetime.now(UTC) - timedelta(minutes=10)).isoformat()
    path.write_text(json.dumps(status))

    assert main(["status", "--config", str(agent.config)]) == 1
    output = capsys.readouterr().out
    assert "! agent not running: last status 10 min ago" in output
    assert "! mds1: the portal refused 1 batches" in output


def test_status_without_a_status_file_is_an_error(agent, log, capsys):
    assert main(["status", "--config", str(agent.config)]) == 1
    assert "has not run yet" in capsys.readouterr().err


def test_parse_prints_a_table_or_ndjson(log, capsys):
    assert main(["parse", "rpctrace", str(log)]) == 0
    output = capsys.readouterr()
    assert "service_us_sum" in output.out
    assert "7 rows from 20 lines: 20 accepted, 0 rejected, 0 irrelevant" in output.err

    assert main(["parse", "rpctrace", str(log), "--ndjson"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert sum(row["count"] for row in rows) == 20


def test_escape_sequences_of_a_file_are_replaced(tmp_path, capsys):
    path = tmp_path / "log"
    path.write_text(trace([1]).replace("1@gni", "1\x1b[2J@gni") + "x: Handled RPC \x1b[2J\n")
    main(["parse", "rpctrace", str(path)])
    output = capsys.readouterr()

    assert "\x1b" not in output.out + output.err


def test_a_missing_file_is_an_error_message(capsys):
    assert main(["parse", "rpctrace", "/nothing"]) == 2
    assert "cannot be opened" in capsys.readouterr().err
