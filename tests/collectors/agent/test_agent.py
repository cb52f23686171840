"""The agent as a process, from a growing log to the portal."""

import random
import signal
import threading
import time

import pytest

from tests.collectors.agent.traces import trace


def rpctrace(log, name="mds1"):
    return (
        f'[[source]]\nname = "{name}"\nformat = "rpctrace"\ntoken_file = "token"\nfile = "{log}"\n'
        'every = "50ms"\nsettled = "100ms"\n'
    )


def test_a_growing_trace_reaches_the_portal_as_windows(agent, portal, eventually):
    log = agent.folder / "rpctrace.log"
    log.write_text(trace(range(1_000)))
    agent.configure(rpctrace(log))

    with agent.running():
        eventually(lambda: portal.account() == 1_000)
        with log.open("a") as growing:
            growing.write(trace(range(1_000, 2_500)))
        eventually(lambda: portal.account() == 2_500)

    assert portal.table()["count"].sum() == 2_500
    assert portal.account("accepted") == 2_500
    assert [batch["coverage"] for _, batch in portal.deliveries] == [
        [
            {
                "target": "",
                "start": "2015-09-01T08:30:00+00:00",
                "end": "2015-09-01T08:30:00.999000+00:00",
            }
        ],
        [
            {
                "target": "",
                "start": "2015-09-01T08:30:00.999000+00:00",
                "end": "2015-09-01T08:30:02.499000+00:00",
            }
        ],
    ]


@pytest.mark.long
def test_kills_at_random_times_neither_lose_nor_repeat_records(agent, portal, eventually):
    """A writer appends, rotates and repeats records while the agent is killed repeatedly."""
    random_ = random.Random(4)  # noqa: S311  (reproducible)
    log = agent.folder / "rpctrace.log"
    log.write_text(trace(range(100)))
    agent.configure(rpctrace(log))
    with agent.running():
        eventually(portal.account)
    written, stop = 100, threading.Event()

    def write():
        nonlocal written
        while not stop.wait(0.02):
            repeated = range(max(0, written - 40), written)  # dumped twice
            with log.open("a") as growing:
                growing.write(trace(repeated) + trace(range(written, written + 100)))
            written += 100
            if random_.random() < 0.02:
                log.rename(log.with_name(f"rpctrace.log.{written}"))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for starts in range(2, 6):
            process = agent.start()
            eventually(lambda starts=starts: agent.log.read_text().count("agent_started") == starts)
            time.sleep(random_.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            process.wait()
    finally:
        stop.set()
        writer.join()
    with agent.running():
        eventually(lambda: portal.account("accepted") >= written, seconds=20)

    assert portal.account("accepted") == written
    assert portal.table()["count"].sum() == written
    assert written > 1_000


def test_a_state_folder_that_others_can_write_to_is_refused(agent):
    agent.configure(rpctrace(agent.folder / "rpctrace.log"))
    agent.state.mkdir()
    agent.state.chmod(0o770)

    assert agent.start().wait(20) == 2
    assert f"other users can write to it: chmod 700 {agent.state}" in agent.log.read_text()


def test_only_one_agent_uses_a_state_folder(agent):
    agent.configure(rpctrace(agent.folder / "rpctrace.log"))

    with agent.running():
        time.sleep(1)
        second = agent.start()

        assert second.wait(20) == 2
    assert "another agent uses this state folder" in agent.log.read_text()
