"""PostgreSQL and Valkey as processes of this checkout, with programs of any origin.

They write only below ``var/services`` and listen only on unix sockets in its folder ``run``, which
only its owner can enter: checkouts cannot collide, and other users cannot connect. All paths are
relative, because the servers may see that folder under another name (`debian_root`) and because
paths of sockets must be short.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from scripts.checkout import LOGS, VAR, failure, run_logged, say
from scripts.process import OwnProcess, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

HOME = VAR / "services"
SOCKETS = HOME / "run"
POSTGRES = OwnProcess("PostgreSQL", HOME / "postgres", "postmaster.pid", ("postgres",))
VALKEY = OwnProcess("Valkey", HOME / "valkey", "valkey.pid", ("valkey-server", "redis-server"))

ROLE = DATABASE = "ioportal"
ADMINISTRATOR = "postgres"  # the only superuser; the portal does not know it
# The role owns its database, where it may create trusted extensions, and the databases of tests. It
# reads the location of the data folder, whose free space is watched.
CREATE = f"""\
CREATE ROLE {ROLE} LOGIN CREATEDB
GRANT pg_read_all_settings TO {ROLE}
CREATE DATABASE {DATABASE} OWNER {ROLE}
"""
CONFIGURATION = Path(__file__).with_name("postgresql.conf")
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": os.environ.get("PATH", os.defpath)}
# sockaddr_un has 107 bytes and a zero; the longest name in the folder is PostgreSQL's.
LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432")


@dataclass(frozen=True)
class Programs:
    """Location of the two servers, and the words before them for an unprivileged run."""

    postgres_folder: Path  # contains initdb and postgres
    valkey: Path
    wrapper: tuple[str, ...]
    home: Path  # the only writable folder

    def initdb(self, folder: Path) -> tuple[str, ...]:
        # "trust" is safe here: only its owner can enter the folder of the socket.
        options = (
            f"--username={ADMINISTRATOR}",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        )
        return (*self.wrapper, f"{self.postgres_folder}/initdb", "-D", folder.name, *options)

    def postgres(self, *arguments: str) -> tuple[str, ...]:
        return (*self.wrapper, f"{self.postgres_folder}/postgres", *arguments)

    def postgres_server(self) -> tuple[str, ...]:
        return self.postgres("-D", POSTGRES.folder.name, "-k", f"../{SOCKETS.name}")

    def valkey_server(self) -> tuple[str, ...]:
        return (
            *(*self.wrapper, str(self.valkey)),
            *("--dir", VALKEY.folder.name, "--pidfile", VALKEY.pid_file.name),
            *("--port", "0", "--unixsocket", "../run/valkey.sock", "--unixsocketperm", "700"),
            *("--save", ""),  # only wake-ups: their loss costs seconds
        )


def start(programs: Programs) -> None:
    create_folders(programs)
    start_server(POSTGRES, programs.postgres_server(), postgres_is_ready)
    start_server(VALKEY, programs.valkey_server(), valkey_is_ready)


def stop() -> None:
    VALKEY.stop()
    POSTGRES.stop()


def create_folders(programs: Programs) -> None:
    """Create the folders that the servers need at their start."""
    (programs.home / SOCKETS.name).mkdir(parents=True, exist_ok=True)
    (programs.home / VALKEY.folder.name).mkdir(exist_ok=True)
    programs.home.chmod(0o700)
    cluster = programs.home / POSTGRES.folder.name
    create_cluster(programs, cluster)
    shutil.copyfile(CONFIGURATION, cluster / "postgresql.conf")


def create_cluster(programs: Programs, cluster: Path) -> None:
    """Create the database cluster and database once; an interrupted attempt leaves no files."""
    if cluster.exists():
        return
    say("Creating the database")
    new = cluster.with_name("postgres.new")
    shutil.rmtree(new, ignore_errors=True)
    run_logged(programs.initdb(new), "initdb", cwd=programs.home, env=ENVIRONMENT)
    single_user = programs.postgres("--single", "-D", new.name, "postgres")
    run_logged(single_user, "createdb", cwd=programs.home, env=ENVIRONMENT, text=CREATE)
    new.rename(cluster)


def start_server(process: OwnProcess, command: Sequence[str], is_ready: Callable[[], bool]) -> None:
    log = LOGS / f"{process.name.lower()}.log"
    not_ready = f"{process.name} does not answer, see {log}"
    if process.pid():
        say(f"{process.name} is running already")
        wait_until(is_ready, otherwise=not_ready)
        return
    process.wait_after_crash()
    say(f"Starting {process.name}")
    with log.open("ab") as output:
        started = subprocess.Popen(
            command,
            cwd=HOME,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # it outlives this command and its terminal
        )
    wait_until(lambda: started.poll() is not None or is_ready(), otherwise=not_ready)
    if started.poll() is not None:
        raise failure(f"{process.name} ended during its start", log)


def postgres_is_ready() -> bool:
    """Return whether the last line of PostgreSQL's pid file reports readiness, like pg_ctl."""
    return POSTGRES.pid() is not None and POSTGRES.pid_file.read_text().rstrip().endswith("\nready")


def valkey_is_ready() -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(f"{reachable_sockets()}/valkey.sock")
        except OSError:
            return False
        client.sendall(b"PING\r\n")
        return client.recv(len("+PONG")) == b"+PONG"


def addresses() -> dict[str, str]:
    """Return the addresses of both servers, for libpq and for Celery."""
    sockets = quote(str(reachable_sockets()))
    return {
        "DATABASE_URL": f"postgresql://{ROLE}@/{DATABASE}?host={sockets}",
        "IOPORTAL_BROKER_URL": f"redis+socket://{sockets}/valkey.sock",
        # The path on this side: the server may see it under another name.
        "IOPORTAL_DATABASE_FOLDERS": str(POSTGRES.folder),
    }


def reachable_sockets() -> Path:
    """Return `SOCKETS`, or a link to it in a short private folder if its path is too long."""
    if len(os.fsencode(SOCKETS)) <= LONGEST_SOCKET_FOLDER:
        return SOCKETS
    record = VAR / "short_socket_folder"
    link = Path(record.read_text()) if record.exists() else None
    if link is None or not link.is_symlink() or link.readlink() != SOCKETS:
        link = Path(tempfile.mkdtemp(prefix="ioportal-", dir="/tmp"), "run")
        link.symlink_to(SOCKETS)
        record.write_text(str(link))
    return link
