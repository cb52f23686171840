"""What becomes of a batch, by what the portal answers."""

import json
import time

import httpx
import pytest

from collectors.agent.delivery.batches import batches
from collectors.agent.delivery.shipper import Shipper
from collectors.agent.delivery.spool import Spool
from collectors.agent.files.tail import LogTail
from collectors.agent.files.traces import TraceReader
from collectors.agent.health import LASTING_S, SAID_AGAIN_S, WAITED_S, Health
from collectors.agent.read_loop import ReadLoop
from collectors.lustre import rpc_trace
from collectors.source import Source
from collectors.tables import RPC_WINDOWS
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
        yield Shipper(spool, client, tmp_path / "token", health)


@pytest.fixture
def commit(spool, tmp_path):
    def put(*numbers):
        (tmp_path / "log").write_text(trace(numbers))
        parts = rpc_trace.parse(Source.open(tmp_path / "log"))
        spool.commit(batches(RPC_WINDOWS, parts), {})

    return put


def test_the_portal_is_told_how_much_waits(commit, shipper, portal, spool):
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
def test_a_batch_waits_while_the_portal_cannot_take_it(
    commit, shipper, portal, spool, health, status
):
    commit(1)
    portal.answers.append((status, {}, {"code": "later"}))
    first, troubles = shipper.step(), dict(health.troubles)

    assert 1 / 2 <= first <= 1
    assert troubles["delivery"].startswith(str(status))

    assert shipper.step() == 0
    assert health.troubles == {}
    assert (spool.depth().batches, len(portal.batches)) == (0, 1)


def test_a_portal_that_starts_again_is_no_error_but_one_that_stays_away_is(caplog, monkeypatch):
    health = Health("mds1")
    times = iter((0, 1, 10, LASTING_S, LASTING_S + 100, LASTING_S + SAID_AGAIN_S))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    for _ in range(6):
        health.trouble("delivery", "Connection refused")

    assert [record.levelname for record in caplog.records] == ["WARNING", "ERROR", "ERROR"]


def test_what_does_not_exist_yet_is_said_once_and_a_warning_only_after_a_while(
    caplog, monkeypatch, tmp_path, spool, health, never
):
    caplog.set_level("INFO")
    times = iter((0, 1, WAITED_S - 1, WAITED_S, WAITED_S, WAITED_S + 1))
    monkeypatch.setattr(time, "monotonic", lambda: next(times))
    log = tmp_path / "missing" / "rpctrace.log"
    keeper = ReadLoop(TraceReader(LogTail(str(log))), spool, 1, health)

    def levels():
        return [(record.levelname, record.message) for record in caplog.records]

    for _ in range(3):
        keeper.step(never)

    assert levels() == [("INFO", "reading_waiting")]
    assert caplog.records[0].fields["reason"] == f"{log}: no such file"
    assert health.troubles == {}

    keeper.step(never)

    assert levels()[1:] == [("WARNING", "reading_in_trouble")]

    log.parent.mkdir()
    log.write_text(trace([1]))
    keeper.step(never)
    keeper.close()

    assert levels()[2:] == [("INFO", "reading_well")]
    assert spool.depth().batches == 1


def test_pauses_grow_and_respect_what_the_portal_asks_for(commit, shipper, portal):
    commit(1)
    portal.answers += [(503, {}, {})] * 9 + [(429, {"Retry-After": "30"}, {})]
    pauses = [shipper.step() for _ in range(10)]

    assert pauses[3] >= 4
    assert 60 <= pauses[8] <= 120
    assert 90 <= pauses[9] <= 150


@pytest.mark.parametrize("status", [409, 413, 415, 422])
def test_a_batch_that_is_refused_is_kept_aside_and_the_next_one_goes(
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
    assert "column x" in record.fields["answer"]


def test_what_is_moved_back_is_delivered(commit, shipper, portal, spool):
    commit(1)
    portal.answers.append((422, {}, {}))
    shipper.step()
    [refused] = (spool.folder / "refused").iterdir()
    refused.rename(spool.folder / "batches" / refused.name)
    shipper.step()

    assert len(portal.batches) == 1


def test_a_token_that_others_can_read_is_not_sent_until_it_is_private(
    commit, shipper, portal, health, tmp_path
):
    commit(1)
    (tmp_path / "token").chmod(0o640)
    shipper.step()
    trouble = health.troubles["delivery"]

    assert trouble.endswith(f"mode 0640 lets other users read it: chmod 600 {tmp_path}/token")
    assert portal.deliveries == []

    (tmp_path / "token").chmod(0o600)
    shipper.step()

    assert len(portal.batches) == 1


def test_nobody_at_home_is_waited_for(commit, shipper, portal, spool):
    commit(1)
    portal.close()

    assert shipper.step() > 0
    assert spool.depth().batches == 1


def test_the_state_is_plain_to_see(commit, spool):
    commit(1)
    state = json.loads((spool.folder / "state.json").read_text())

    assert state == {"stream": spool.stream, "sequence": 2, "place": {}}
