"""A complete site with real processes: database, broker, web, worker, beat and two agents."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psycopg

from chaos.units import Program, Unit
from scripts import serve
from scripts.checkout import CHECKOUT, Problem, failure
from scripts.services import daemons
from scripts.services.choice import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FIRST_PORT = 8230
STARTS_WITHIN_S = 60
POLL_S = 0.05
SPOOL_MAX = "100kB"  # of each source: small, so that it fills while the portal is away
CLUSTER, FILESYSTEM = "anvil", "lake"
MDT = "lake-MDT0000"
OSTS = ("lake-OST0000", "lake-OST0001")

_SITE = """
[[cluster]]
name = "anvil"
time_zone = "UTC"
batch = "slurm"
nodes = "n[1-40]"
nid_rule = { network = "gni", node = "n{number}" }
[[filesystem]]
name = "lake"
clusters = ["anvil"]
[[server]]
name = "mds1"
filesystem = "lake"
[[server]]
name = "mds2"
filesystem = "lake"
[[server]]
name = "mds3"
filesystem = "lake"
[[server]]
name = "oss1"
filesystem = "lake"
kind = "oss"
[[target]]
name = "lake-MDT0000"
filesystem = "lake"
server = "mds1"
[[target]]
name = "lake-OST0000"
filesystem = "lake"
server = "oss1"
[[target]]
name = "lake-OST0001"
filesystem = "lake"
server = "oss1"
[[source]]
name = "mds1-trace"
format = "rpctrace"
server = "mds1"
[[source]]
name = "mds2-trace"
format = "rpctrace"
server = "mds2"
[[source]]
name = "mds3-trace"
format = "rpctrace"
server = "mds3"
[[source]]
name = "mds1-jobs"
format = "job_stats"
server = "mds1"
[[source]]
name = "oss1-jobs"
format = "job_stats"
server = "oss1"
[[source]]
name = "anvil-jobs"
format = "sacct"
cluster = "anvil"
"""
_AGENT = """
[portal]
url = "http://{host}:{port}"
[agent]
state = "{state}"
spool_max = "{spool_max}"
"""
# Input of the agents, below the folder of the source.
_SOURCES = {
    "mds-agent": """
[[source]]
name = "mds1-trace"
format = "rpctrace"
file = "{source}/trace.log"
every = "200ms"
settled = "400ms"
token_file = "{tokens}/mds1-trace.token"
[[source]]
name = "mds2-trace"
format = "rpctrace"
folder = "{source}/dumps/*"
every = "300ms"
settled = "300ms"
token_file = "{tokens}/mds2-trace.token"
[[source]]
name = "mds3-trace"
format = "rpctrace"
pipe = "{source}/pipe"
every = "300ms"
settled = "400ms"
token_file = "{tokens}/mds3-trace.token"
[[source]]
name = "mds1-jobs"
format = "job_stats"
command = ["cat", "{source}/mdt"]
every = "1s"
token_file = "{tokens}/mds1-jobs.token"
""",
    "batch-agent": """
[[source]]
name = "oss1-jobs"
format = "job_stats"
command = ["cat", "{source}/osts"]
every = "1300ms"
token_file = "{tokens}/oss1-jobs.token"
[[source]]
name = "anvil-jobs"
format = "sacct"
zone = "UTC"
command = ["cat", "{source}/accounting"]
every = "1s"
token_file = "{tokens}/anvil-jobs.token"
""",
}


class Installation:
    """A portal and its agents in a separate folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = folder / "source"  # input of the agents
        self.tokens = folder / "tokens"
        self.port = serve.free_port(FIRST_PORT)
        self.url = f"http://{serve.HOST}:{self.port}"
        self._sockets = folder / "services" / daemons.SOCKETS.name
        self.database = f"postgresql://{daemons.ROLE}@/{daemons.DATABASE}?host={self._sockets}"
        self._environment = os.environ | {
            "DATABASE_URL": self.database,
            "IOPORTAL_BROKER_URL": f"redis+socket://{self._sockets}/valkey.sock",
            "IOPORTAL_SECRET_KEY": "secret of a temporary installation",
            "IOPORTAL_RAW_RETENTION": "forever",  # traces are of another year
            "IOPORTAL_STAGE_INTERVAL": "1s",
            "POLARS_MAX_THREADS": "1",
            "PYTHONPATH": str(CHECKOUT),
        }
        self.kinds: dict[str, list[Unit]] = {}

    @property
    def units(self) -> list[Unit]:
        """All units, in the order of their start."""
        return [unit for units in self.kinds.values() for unit in units]

    def spool(self, source: str) -> Path:
        """Return the folder of a source's batches in its agent."""
        agent = next(name for name, text in _SOURCES.items() if f'"{source}"' in text)
        return self.folder / agent / "state" / source

    @property
    def spools(self) -> dict[str, Path]:
        """Folders of the agents' batches by source."""
        return {path.stem: self.spool(path.stem) for path in self.tokens.iterdir()}

    def start(self) -> None:
        """Start all units; return when the portal answers."""
        for folder in (self.source / "dumps", self.tokens, self.folder / "log"):
            folder.mkdir(parents=True)
        self._start_services()
        self._prepare()
        for name, command in serve.commands(self.port, self.folder).items():
            self._start(name, self._program(name, command))
        for name, sources in _SOURCES.items():
            self._start("agent", self._agent(name, sources))
        self._wait_until(self._answers, "the portal does not answer")

    def tend(self) -> None:
        """Restart ended units, and run other due actions."""
        for unit in self.units:
            unit.tend()

    def stop(self) -> None:
        """Stop all started units."""
        for unit in reversed(self.units):
            unit.stop()

    def reconcile(self) -> str:
        """Stop the agents; return the output of the reconciliation if it fails."""
        for agent in self.kinds["agent"]:
            agent.stop()
        reconciled = subprocess.run(
            (sys.executable, CHECKOUT / "manage.py", "reconcile"),
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return reconciled.stderr if reconciled.returncode else ""

    def flush_broker(self) -> bool:
        """Flush the broker; return whether it answered."""
        try:
            with socket.socket(socket.AF_UNIX) as broker:
                broker.settimeout(POLL_S)
                broker.connect(str(self._sockets / "valkey.sock"))
                broker.sendall(b"FLUSHALL\r\n")
                return broker.recv(len(b"+OK")) == b"+OK"
        except OSError:
            return False

    def _start_services(self) -> None:
        servers = choose().servers
        if servers is None:
            raise Problem("This command kills the database: unset DATABASE_URL, use local programs")
        programs = servers(self.folder / "services")
        daemons.create_folders(programs)
        for name, server, command, stop_signal in (
            ("database", daemons.POSTGRES, programs.postgres_server(), signal.SIGINT),
            ("broker", daemons.VALKEY, programs.valkey_server(), signal.SIGTERM),
        ):
            program = Program(
                name,
                _ending_with_us(command),
                folder=programs.home / server.folder.name,
                started_in=programs.home,
                environment=daemons.ENVIRONMENT,
                log=self._log(name),
                stop_signal=stop_signal,
            )
            self._start(name, program)
        self._wait_until(self._has_database, "the database does not answer")

    def _prepare(self) -> None:
        site = self.folder / "site.toml"
        site.write_text(_SITE)
        with self._log("prepare").open("wb") as log:
            prepared = subprocess.run(
                (sys.executable, "-m", "chaos.prepare", site, self.tokens),
                cwd=CHECKOUT,
                env=self._environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if prepared.returncode:
            raise failure("The database cannot be prepared", self._log("prepare"))

    def _agent(self, name: str, sources: str) -> Program:
        config = self.folder / f"{name}.toml"
        folder = self.folder / name
        top = _AGENT.format(
            host=serve.HOST, port=self.port, state=folder / "state", spool_max=SPOOL_MAX
        )
        config.write_text(top + sources.format(source=self.source, tokens=self.tokens))
        command = [sys.executable, "-m", "collectors", "run", "--config", str(config)]
        return self._program(name, command)

    def _program(self, name: str, command: Sequence[str]) -> Program:
        folder = self.folder / name
        folder.mkdir()
        return Program(
            name,
            command,
            folder=folder,
            started_in=folder,
            environment=self._environment,
            log=self._log(name),
        )

    def _start(self, kind: str, program: Program) -> None:
        unit = Unit(program)
        self.kinds.setdefault(kind, []).append(unit)
        unit.start()

    def _log(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.log"

    def _has_database(self) -> bool:
        try:
            psycopg.connect(self.database, connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _answers(self) -> bool:
        try:
            socket.create_connection((serve.HOST, self.port)).close()
        except OSError:
            return False
        return True

    def _wait_until(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not condition():
            if time.monotonic() > deadline:
                raise Problem(f"{otherwise}: see {self.folder / 'log'}")
            self.tend()
            time.sleep(POLL_S)


def _ending_with_us(command: Sequence[str]) -> Sequence[str]:
    """Return a server's command that ends with this process, even inside a wrapper."""
    return [command[0], "--die-with-parent", *command[1:]] if command[0] == "bwrap" else command
