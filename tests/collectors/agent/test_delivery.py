"""Deliveries by the portal's response."""

import json
import time

import httpx
import pytest

from collectors.agent.delivery.batches import batches
from collectors.agent.delivery.identity import instance
from collectors.agent.delivery.shipper import RETRY_REFUSED_S, Shipper
from collectors.agent.delivery.spool import Spool
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceReader
from collectors.agent.health import ERROR_AFTER_S, MISSING_AFTER_S, REPEAT_S, Health
from collectors.agent.read_loop import ReadLoop
from collectors.lustre import rpc_trace
from collectors.parsed import Account, Parsed, reject_frame
from collectors.source import Source
from collectors.tables import JOBS, RPC_WINDOWS
from tests.collectors.agent.conftest import TOKEN
from tests.collectors.agent.traces import trace


@pytest.fixture
def health():
    return Health("mds1")


@pytest.fixture
def spool(tmp_path):
    return Spool(tmp_path / "state", 10**6)


@pytest.fixture
def shipper(tmp_path, portal, spool, health):
    (tmp_path / "token").touch(mode=0o600)
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with httpx.Client(base_url=portal.url, trust_env=False) as client:
        yield Shipper(spool, client, tmp_path / "token", health, "an instance")


@pytest.fixture
def commit(spool, tmp_path):
    def put(*numbers):
        (tmp_path / "log").write_text(trace(numbers))
        parts = rpc_trace.parse(Source.open(tmp_path / "log"))
        spool.commit(batches(RPC_WINDOWS, parts), {})

    return put


@pytest.mark.parametrize(
    ("lists", "heights"),
    [
        ([], [0]),
        (["n[1-150000]", "m[1-50000]", "n1,n2"], [2, 1]),
        (["", "n[1-200000]", "n[1-200000]", ""], [2, 2]),
    ],
)
def test_batches_name_a_bounded_number_of_hosts(lists, heights):
    rows = JOBS.frame([dict.fromkeys(JOBS.columns) | {"nodes": nodes} for nodes in lists])
    parts = [Parsed(rows, reject_frame(()), Account(len(lists), len(lists)))]

    split = list(batches(JOBS, parts))

    assert [batch.rows.height for batch in split] == heights
    assert [batch.account.lines for batch in split] == [len(lists), *[0] * (len(heights) - 1)]


def test_a_delivery_reports_the_size_of_the_spool(commit, shipper, portal, spool):
    commit(1, 2)
    commit(3)
    shipper.step()
    [(headers, batch)] = portal.deliveries

    assert headers["Authorization"] == f"Token {TOKEN}"
    assert batch["spool"]["batches"] == 2
    assert batch["sequence"] == 1
    assert batch["account"] == {"lines": 2, "accepted": 2, "rejected": 0, "irrelevant": 0}
    assert spool.depth().batches == 1


@pytest.mark.parametrize("status", [500, 502, 503, 429, 401, 403, 404, 301])
def test_a_batch_is_retried_after_a_temporary_error(commit, shipper, portal, spool, health, status):
    commit(1)
    portal.answers.append((status, {}, {"code": "later"}))
    first, problems = shipper.step(), dict(health.problems)

    assert 1 / 2 <= first <= 1
    assert problems["delivery"].startswith(str(status))

    assert shipper.step() == 0
    assert health.problems == {}
    assert (spool.depth().batches, len(portal.batches)) == (0, 1)


def test_a_lasting_failure_is_logged_as_an_error(caplog, monkeypatch):
    health = Health("mds1")
    times = iter((0, 1, 10, ERROR_AFTER_S, ERROR_AFTER_S + 100, ERROR_AFTER_S + REPEAT_S))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    for _ in range(6):
        health.failing("delivery", "Connection refused")

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "ERROR"]


def test_a_missing_log_is_logged_once_and_later_as_a_warning(
    caplog, monkeypatch, tmp_path, spool, health, never
):
    caplog.set_level("INFO")
    times = iter((0, 1, MISSING_AFTER_S - 1, MISSING_AFTER_S, MISSING_AFTER_S, MISSING_AFTER_S + 1))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    log = tmp_path / "missing" / "rpctrace.log"
    loop = ReadLoop(TraceReader(LogTail(str(log))), spool, 1, health)

    def levels():
        return [(record.levelname, record.message) for record in caplog.records]

    for _ in range(3):
        loop.step(never)

    assert levels() == [("INFO", "reading_waiting")]
    assert caplog.records[0].fields["reason"] == f"{log}: no such file"
    assert health.problems == {}

    loop.step(never)

    assert levels()[1:] == [("WARNING", "reading_failing")]

    log.parent.mkdir()
    log.write_text(trace([1]))
    loop.step(never)
    loop.close()

    assert levels()[2:] == [("INFO", "reading_recovered")]
    assert spool.depth().batches == 1


def test_pauses_grow_and_respect_retry_after(commit, shipper, portal):
    commit(1)
    portal.answers += [(503, {}, {})] * 9 + [(429, {"Retry-After": "30"}, {})]
    pauses = [shipper.step() for _ in range(10)]

    assert pauses[3] >= 4
    assert 60 <= pauses[8] <= 120
    assert 90 <= pauses[9] <= 150


@pytest.mark.parametrize("status", [409, 413, 415, 422])
def test_a_refused_batch_does_not_block_the_next_one(
    commit, shipper, portal, spool, caplog, status
):
    commit(1)
    commit(2)
    portal.answers.append((status, {}, {"code": "no", "message": "column x"}))
    shipper.step()
    shipper.step()

    assert [batch["sequence"] for batch, _ in portal.batches.values()] == [2]
    assert spool.depth().refused == 1
    [record] = [r for r in caplog.records if r.message == "batch_refused"]
    assert "column x" in record.fields["reason"]


def test_a_refused_batch_can_be_moved_back(commit, shipper, portal, spool):
    commit(1)
    portal.answers.append((422, {}, {}))
    shipper.step()
    [refused] = (spool.folder / "refused").iterdir()
    refused.rename(spool.folder / "batches" / refused.name)
    shipper.step()

    assert len(portal.batches) == 1


def test_a_refused_batch_is_sent_again_if_its_cause_may_be_fixed(
    commit, shipper, portal, spool, monkeypatch
):
    clock = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    for _ in range(3):
        commit(1)
    may_be_fixed = (422, {}, {"retry": True})
    portal.answers += [may_be_fixed, (422, {}, {}), may_be_fixed, may_be_fixed]
    for _ in range(4):
        shipper.step()
    assert (spool.depth().refused, portal.batches) == (3, {})

    clock += RETRY_REFUSED_S
    for _ in range(4):
        shipper.step()
        clock += RETRY_REFUSED_S

    assert sorted(batch["sequence"] for batch, _ in portal.batches.values()) == [1, 3]
    assert spool.depth().refused == 1
    assert portal.deliveries[-1][1]["spool"]["refused"] == 2
    assert portal.deliveries[-1][1]["agent"]["instance"] == "an instance"


def test_an_agent_keeps_its_identity(tmp_path):
    (tmp_path / "new").mkdir()
    first = instance(tmp_path / "new")

    assert instance(tmp_path / "new") == first
    (tmp_path / "new" / "instance").write_text("damaged")
    assert len({first, instance(tmp_path / "new"), instance(tmp_path)}) == 3


def test_a_token_that_other_users_can_read_is_not_sent(commit, shipper, portal, health, tmp_path):
    commit(1)
    (tmp_path / "token").chmod(0o640)
    shipper.step()
    problem = health.problems["delivery"]

    assert problem.endswith(f"mode 0640 lets other users read it: chmod 600 {tmp_path}/token")
    assert portal.deliveries == []

    (tmp_path / "token").chmod(0o600)
    shipper.step()

    assert len(portal.batches) == 1


def test_a_batch_is_retried_while_the_portal_is_down(commit, shipper, portal, spool):
    commit(1)
    portal.close()

    assert shipper.step() > 0
    assert spool.depth().batches == 1


def test_the_state_file_is_readable_json(commit, spool):
    commit(1)
    state = json.loads((spool.folder / "state.json").read_text())

    assert state == {"stream": spool.stream, "sequence": 2, "checkpoint": {}}
