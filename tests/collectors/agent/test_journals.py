"""Journals of pipes, and of commands that print each record only once."""

import os
import subprocess
import sys
import threading

from collectors.agent.files import journal
from collectors.agent.files.journal import Journal, PipeFeeder
from collectors.agent.health import Health
from tests.collectors.agent.traces import trace


def test_a_kill_loses_no_record_of_a_pipe(agent, portal, eventually):
    pipe = agent.folder / "pipe"
    os.mkfifo(pipe)
    descriptor = os.open(pipe, os.O_RDWR)  # systemd keeps its pipes open in the same way
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
    os.close(descriptor)

    assert portal.account("accepted") == 2_000


def test_the_output_of_repeated_commands_is_shipped(agent, portal, eventually):
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


def test_a_full_journal_blocks_writers(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "ROTATED_BYTES", 100)
    monkeypatch.setattr(journal, "FULL_BYTES", 200)
    reached = None
    full = Journal(tmp_path / "journal", lambda: reached)
    health = Health("mds1")
    feeder = PipeFeeder(tmp_path / "pipe", full, health)
    os.mkfifo(tmp_path / "pipe")
    pipe = os.open(tmp_path / "pipe", os.O_RDWR)
    os.write(pipe, b"x" * 299 + b"\n")
    feeder.step()
    os.write(pipe, b"y" * 9 + b"\n")
    feeder.step()

    assert health.problems == {"journal": "full: writers to the pipe are blocked"}

    reached = full.path.stat().st_ino  # the reader's file
    feeder.step()
    os.close(pipe)

    assert health.problems == {}
    assert full.path.read_bytes() == b"y" * 9 + b"\n"
    assert (tmp_path / "journal.1").stat().st_size == 300
