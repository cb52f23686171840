"""Run the portal in the foreground until a signal: web server, Celery workers and Celery beat.

usage: python -m scripts.serve PORT

With the demo, four more programs start when the portal answers: the simulated centre writes logs,
an agent ships them, the past year is loaded, with its progress on the terminal, and a mail server
keeps all mails in var/live/mailbox.

Output goes to var/log/NAME.log. If one program ends, all are stopped, and the end of its log is
shown. Settings come from the environment (``python -m scripts.services run``). If PORT is used, the
next free one is taken.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, STDOUT
from typing import TYPE_CHECKING

from scripts.checkout import (
    CHECKOUT,
    LOGS,
    VAR,
    Problem,
    exit_status,
    failure,
    run_logged,
    say,
)
from scripts.process import OwnProcess

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from pathlib import Path

PORTAL = OwnProcess("the portal", VAR / "portal", "portal.pid", ("python", "python3"))
DEMO_LOGIN = VAR / "demo_login"  # lines of "name password", written by `manage.py demo_today`
LIVE = VAR / "live"  # the demo's logs of today, and the configuration of its agent
PROGRESS = VAR / "demo/progress.json"  # of the past year, written by `manage.py demo_year`
YEAR = "year"  # the program that ends when its work is done
HOST = "127.0.0.1"
SMTP_PORT = 8025
PORTS_TRIED = 100
ASGI = "ioportal.asgi:application"
WORKERS = "2"
HEADERS_WITHIN_MS = "10000"
CONNECTIONS = "4096"  # of each web worker: idle ones must not keep others out
WAITING_CONNECTIONS = "2048"
OPEN_FILES = 8192  # a connection is one
STOP_WITHIN_S = 20
ANSWER_WITHIN_S = 20
POLL_S = 0.2
STATUS_EVERY_S = 60  # if the output is no terminal
CLEAR_LINE = "\r\x1b[K"


def commands(port: int, folder: Path = PORTAL.folder) -> dict[str, list[str]]:
    """Return the portal's programs, by the name of their log."""
    programs = CHECKOUT / ".venv/bin"
    granian = [f"{programs}/granian", "--interface", "asginl", "--host", HOST, "--port", str(port)]
    # Only HTTP/1 has a time limit for headers; negotiation must not replace it.
    limits = ["--http", "1", "--no-ws", "--http1-header-read-timeout", HEADERS_WITHIN_MS]
    limits += ["--backlog", WAITING_CONNECTIONS, "--backpressure", CONNECTIONS]
    celery = [f"{programs}/celery", "--quiet", "--app", "ioportal.celery"]
    # For connections to servers of others, which may be slow.
    outward = ["--queues", "outward", "--concurrency", "1", "--hostname", "outward@%h"]
    return {
        "web": [*granian, "--workers", WORKERS, "--respawn-failed-workers", *limits, ASGI],
        "worker": [*celery, "worker", "--concurrency", WORKERS, "--loglevel", "WARNING"],
        "outward-worker": [*celery, "worker", *outward, "--loglevel", "WARNING"],
        "beat": [*celery, "beat", "--schedule", f"{folder}/beat-schedule", "--loglevel", "WARNING"],
    }


def demo(port: int, smtp_port: int) -> dict[str, list[str]]:
    """Return the programs of the demo, by the name of their log; without a demo, none."""
    if not LIVE.exists():
        return {}
    python = f"{CHECKOUT}/.venv/bin/python"
    portal = f"http://{HOST}:{port}"
    simulator = [python, "-m", "simulator"]
    run_logged([*simulator, "feeds", "--portal", portal, "--out", str(LIVE)], "feeds")
    agent = [python, "-m", "collectors", "run"]
    # The commands of the agent print files, and this one is written last.
    wait = ["sh", "-c", 'until [ -e "$0" ]; do sleep 1; done; exec "$@"', f"{LIVE}/sacct.txt"]
    return {
        "centre": [*simulator, "live", "--out", str(LIVE)],
        "agent": [*wait, *agent, "--config", f"{LIVE}/agent.toml"],
        YEAR: [python, "manage.py", "demo_year"],
        "mailbox": [
            *(python, "-m", "aiosmtpd", "--nosetuid", "--listen", f"{HOST}:{smtp_port}"),
            *("--class", "aiosmtpd.handlers.Mailbox", str(LIVE / "mailbox")),
        ],
    }


async def serve(
    port: int, programs: dict[str, list[str]], followers: dict[str, list[str]] | None = None
) -> None:
    """Return after a signal; raise a problem if a program ends without a signal.

    Args:
        port: port of the web server.
        programs: commands by the name of their log.
        followers: commands that start when the portal answers.
    """
    stop_requested = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop_requested.set)
    say(f"Starting the portal, with logs in {LOGS}")
    children = {name: await start(command, log_of(name)) for name, command in programs.items()}
    stopping = asyncio.create_task(stop_requested.wait())
    ready = asyncio.create_task(portal_answers(port))
    try:
        failed = await first_end(children, stopping, ready)
        if ready.done():
            for name, command in (followers or {}).items():
                children[name] = await start(command, log_of(name))
            announce(port)
            status = asyncio.create_task(show_progress(children.get(YEAR)))
            failed = await first_end(children, stopping)
            status.cancel()
    finally:
        ready.cancel()
        await asyncio.gather(*map(end, children.values()))
    if failed and not stopping.done():
        raise failure(f"{failed} ended unexpectedly, so the others were stopped", log_of(failed))


async def first_end(children: dict[str, Process], *others: asyncio.Task[object]) -> str | None:
    """Return the name of the first program that ends, or None if another task is done first."""
    ends = {
        asyncio.create_task(child.wait(), name=name)
        for name, child in children.items()
        if name != YEAR
    }
    done, _ = await asyncio.wait({*ends, *others}, return_when=asyncio.FIRST_COMPLETED)
    for task in ends - done:
        task.cancel()
    return next((task.get_name() for task in done & ends), None)


def log_of(name: str) -> Path:
    return LOGS / f"{name}.log"


async def start(command: list[str], log: Path) -> Process:
    with log.open("wb") as output:
        return await asyncio.create_subprocess_exec(
            # The program ends with this process, even if that is killed.
            *("setpriv", "--pdeathsig", "TERM"),
            *command,
            cwd=CHECKOUT,
            stdin=DEVNULL,
            stdout=output,
            stderr=STDOUT,
            start_new_session=True,  # Ctrl-C reaches only this process, which stops each program
        )


async def portal_answers(port: int) -> None:
    """Return once the portal answers."""
    while not await answers(port):  # noqa: ASYNC110 - readiness can only be polled
        await asyncio.sleep(POLL_S)


def announce(port: int) -> None:
    """Print the portal's address and the log-in."""
    say(f"The portal is at http://{HOST}:{port}/ (Ctrl-C or `make stop` ends it)")
    for name, password in log_ins():
        say(f"Log in as {name} with the password {password}")


def log_ins() -> list[list[str]]:
    """Return name and password of the demo's users, the administrator first."""
    lines = DEMO_LOGIN.read_text().splitlines() if DEMO_LOGIN.exists() else []
    return [line.split() for line in lines]


async def show_progress(year: Process | None) -> None:
    """Show the progress of the past year: one line, rewritten on a terminal."""
    if year is None:
        return
    is_terminal, has_shown = sys.stderr.isatty(), False
    ending = asyncio.create_task(year.wait())
    try:
        while not ending.done():
            await asyncio.wait({ending}, timeout=1 if is_terminal else STATUS_EVERY_S)
            if status := progress():
                has_shown = True
                print(
                    f"{CLEAR_LINE}==> {status}" if is_terminal else f"==> {status}",
                    end="" if is_terminal else "\n",
                    file=sys.stderr,
                    flush=True,
                )
    finally:
        if is_terminal:
            print(end=CLEAR_LINE, file=sys.stderr, flush=True)
    if year.returncode:
        say(f"The simulated year was not loaded, see {log_of(YEAR)}. `make serve` continues.")
    elif has_shown:
        say("The simulated year is loaded")


def progress() -> str:
    """Return the progress of the past year; "": nothing is loaded."""
    try:
        return str(json.loads(PROGRESS.read_text())["status"])
    except (OSError, ValueError, KeyError, TypeError):  # none, or a damaged one
        return ""


async def answers(port: int) -> bool:
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(f"GET / HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
            answer = await reader.read(len(b"HTTP"))
            writer.close()
    except OSError:  # TimeoutError is one
        return False
    return answer == b"HTTP"


async def end(child: Process) -> None:
    if child.returncode is None:
        child.terminate()
    try:
        await asyncio.wait_for(child.wait(), STOP_WITHIN_S)
    except TimeoutError:
        os.killpg(child.pid, signal.SIGKILL)


def empty(folder: Path) -> Path:
    """Create an empty folder: counts of earlier web processes must not remain."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def free_port(first: int) -> int:
    for port in range(first, first + PORTS_TRIED):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return port
    raise Problem(f"No free port from {first} to {first + PORTS_TRIED - 1}: make serve PORT=...")


def main() -> None:
    if PORTAL.pid():
        raise Problem("The portal is running already: `make stop` stops it")
    PORTAL.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(PORTAL.folder)  # identifies this process
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES, most), most))
    PORTAL.pid_file.write_text(str(os.getpid()))
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(empty(PORTAL.folder / "metrics"))
    os.environ["IOPORTAL_DEMO"] = str(int(LIVE.exists()))  # the pages have a tour
    port, smtp_port = free_port(int(sys.argv[1])), free_port(SMTP_PORT)
    if LIVE.exists():  # mails of the demo stay on this machine
        os.environ["IOPORTAL_SMTP_URL"] = f"smtp://{HOST}:{smtp_port}"
        os.environ["IOPORTAL_URL"] = f"http://{HOST}:{port}"
        os.environ.setdefault("IOPORTAL_CENTRE", "Simulated Computing Centre")
        os.environ.setdefault("IOPORTAL_CENTRE_CONTACT", "help@centre.example")
    asyncio.run(serve(port, commands(port), demo(port, smtp_port)))


if __name__ == "__main__":
    sys.exit(exit_status(main))
