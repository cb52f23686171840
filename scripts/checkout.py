"""Shared by the scripts: paths of this checkout, messages and errors."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

CHECKOUT = Path(__file__).resolve().parents[1]
VAR = CHECKOUT / "var"
LOGS = VAR / "log"
LINES_SHOWN = 15
ANNOUNCED_AFTER_S = 2


class Problem(Exception):  # noqa: N818 - it ends a command with advice, it is not a defect
    """A command cannot continue; the message has the reason and the remedy."""


def say(message: str) -> None:
    print(f"==> {message}", file=sys.stderr, flush=True)


def is_root() -> bool:
    return os.geteuid() == 0


@contextmanager
def alone() -> Iterator[None]:
    """Allow one command at a time to change files below var/."""
    LOGS.mkdir(parents=True, exist_ok=True)
    if VAR.stat().st_uid != os.geteuid():
        raise Problem(f"{VAR} belongs to the user {VAR.owner()}: run this as that user")
    with (VAR / "lock").open("w") as lock:
        announcing = Timer(ANNOUNCED_AFTER_S, say, ["Waiting for another command in this checkout"])
        announcing.start()
        fcntl.flock(lock, fcntl.LOCK_EX)
        announcing.cancel()
        yield


def run_logged(
    command: Sequence[str],
    log_name: str,
    *,
    cwd: Path = CHECKOUT,
    env: Mapping[str, str] = os.environ,
    text: str = "",
) -> None:
    """Run `command` with `text` as its input; write its output to var/log, show it on failure."""
    log = LOGS / f"{log_name}.log"
    with log.open("w") as output:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            input=text,
            text=True,
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise failure(f"{Path(command[0]).name} failed", log)


def failure(what: str, log: Path) -> Problem:
    """Return a problem with the end of the log."""
    last_lines = log.read_text(errors="replace").splitlines()[-LINES_SHOWN:]
    return Problem("\n".join([f"{what}, see {log}:", *last_lines]))


def exit_status(action: Callable[[], None]) -> int:
    """Run `action`; a problem is printed and becomes exit status 1."""
    try:
        action()
    except (Problem, OSError) as problem:
        say(str(problem))
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0
