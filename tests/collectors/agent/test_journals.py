"""What can be read only once: pipes, and commands that forget what they print."""

import os
import subprocess
import sys
import threading

from collectors.agent.files import journal
from collectors.agent.files.journal import Journal, PipeFeeder
from collectors.agent.health import Health
from tests.collectors.agent.traces import trace


def test_a_pipe_reaches_the_portal_although_the_agent_is_killed(agent, portal, eventually):
    pipe = agent.folder / "pipe"
    os.mkfifo(pipe)
    kept_open = os.open(pipe, os.O_RDWR)  # as systemd does for a pipe that it opens
    agent.configure(
        f'[[source]]\nname = "mds1"\nformat = "rpctrace"\ntoken_file = "token"\npipe = "{pipe}"\n'
        'every = "50ms"\n'
    )
    script = (
        "import sys, time\nfor line in sys.stdin: print(line, end='', flush=True); time.sleep(.001)"
    )
    with pipe.open("w") as end:
        writer = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=end, text=True
        )
    feeding = threading.Thread(target=writer.communicate, args=[trace(range(2_000))])
    feeding.start()
    process = agent.start()
    eventually(portal.account)
    process.kill()
    process.wait()
    with agent.running():
        eventually(lambda: portal.account() >= 2_000)
    feeding.join()
    os.close(kept_open)

    assert portal.account("accepted") == 2_000


def test_a_command_that_forgets_is_run_again_and_again(agent, portal, eventually):
    dumps = agent.folder / "dumps"
    dumps.mkdir()
    for number in range(3):
        (dumps / f"{number}").write_text(trace(range(number * 10, number * 10 + 10)))
    command = f'f=$(ls {dumps} | head -1); [ -z \\"$f\\" ] || {{ cat {dumps}/$f; rm {dumps}/$f; }}'
    agent.configure(
        f'[[source]]\nname = "mds1"\nformat = "rpctrace"\ntoken_file = "token"\nevery = "50ms"\n'
        f'command = ["sh", "-c", "{command}"]\n'
    )

    with agent.running():
        eventually(lambda: portal.account() >= 30)

    assert portal.account("accepted") == 30


def test_a_full_journal_makes_writers_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "ROTATED_BYTES", 100)
    monkeypatch.setattr(journal, "FULL_BYTES", 200)
    reached = None
    kept = Journal(tmp_path / "journal", lambda: reached)
    health = Health("mds1")
    feeder = PipeFeeder(tmp_path / "pipe", kept, health)
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(pipe, b"x" * 299 + b"\n")
    feeder.step()
    os.write(pipe, b"y" * 9 + b"\n")
    feeder.step()

    assert health.troubles == {"journal": "full: writers to the pipe wait"}

    reached = kept.path.stat().st_ino  # the reader has come so far
    feeder.step()
    os.close(pipe)

    assert health.troubles == {}
    assert kept.path.read_bytes() == b"y" * 9 + b"\n"
    assert (tmp_path / "journal.1").stat().st_size == 300
