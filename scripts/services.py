"""Start, stop and describe this checkout's own PostgreSQL and Valkey.

Both live in a private Debian root below ``var/`` and run there unprivileged with bubblewrap, so that
neither root rights nor anything installed on the machine is needed, and checkouts never meet: each
has its own data and its own unix sockets, and no port.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHECKOUT = Path(__file__).resolve().parents[1]
VAR = CHECKOUT / "var"
ROOT = VAR / "root"
HOME = VAR / "services"  # what the services may write
SOCKETS = HOME / "run"
LOGS = VAR / "log"
SECRET_KEY = VAR / "secret_key"

DEBIAN = "trixie"
PACKAGES = ("postgresql-17-timescaledb", "valkey-server", "dash")
ROLE = DATABASE = "ioportal"
READY_WITHIN_S = 60
STOP_WITHIN_S = 60
POLL_S = 0.1
# sockaddr_un holds 108 bytes; the longest name put behind the folder is "/.s.PGSQL.5432.lock".
LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432.lock")


class ServiceError(Exception):
    """A service cannot be prepared, started or stopped; the message says what to do."""


def say(message: str) -> None:
    print(f"==> {message}", file=sys.stderr, flush=True)


# -- the private Debian root ------------------------------------------------------------------


def build_root() -> None:
    """Unpack Debian's own PostgreSQL, TimescaleDB and Valkey below var/; nothing in it is run yet."""
    if ROOT.exists():
        return
    say(f"Unpacking PostgreSQL, TimescaleDB and Valkey of Debian {DEBIAN} into var/root (a minute)")
    unfinished = ROOT.with_name("root.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    log = LOGS / "mmdebstrap.log"
    # Without root, "chrootless" is the mode whose files belong to the user, in private folders too.
    mode = "root" if os.geteuid() == 0 else "chrootless"
    command = ["mmdebstrap", f"--mode={mode}", "--variant=extract"]
    command += [f"--include={','.join(PACKAGES)}", DEBIAN, str(unfinished)]
    with log.open("wb") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise ServiceError(f"mmdebstrap failed, see {log}")
    passwd = f"{ROLE}:x:1000:1000::/services:/usr/sbin/nologin\n"
    (unfinished / "etc/passwd").write_text(passwd)
    (unfinished / "etc/group").write_text(f"{ROLE}:x:1000:\n")
    unfinished.rename(ROOT)


def inside(*command: str) -> list[str]:
    """`command`, to be run unprivileged inside the private root, in the services' folder."""
    bubblewrap = ["bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000"]
    bubblewrap += ["--ro-bind", f"{ROOT}/usr", "/usr", "--ro-bind", f"{ROOT}/etc", "/etc"]
    for name in ("bin", "sbin", "lib", "lib64"):
        bubblewrap += ["--symlink", f"usr/{name}", f"/{name}"]
    bubblewrap += ["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    bubblewrap += ["--bind", str(HOME), "/services", "--chdir", "/services"]
    bubblewrap += ["--clearenv", "--setenv", "LANG", "C.UTF-8", "--setenv", "PATH", "/usr/bin"]
    return [*bubblewrap, "--", *command]


# -- the services -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Service:
    """A daemon with its folder, which is also its working directory: that is how it is recognised."""

    name: str
    folder: Path
    pid_file: Path
    command: tuple[str, ...]
    prepare: Callable[[], None]
    answers: Callable[[], bool]

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name}.log"

    def pid(self) -> int | None:
        """Process id of this checkout's own running daemon; a stale pid file means nothing."""
        try:
            pid = int(self.pid_file.read_text().split(maxsplit=1)[0])
            ours = Path(f"/proc/{pid}/cwd").samefile(self.folder)
        except (OSError, ValueError, IndexError):
            return None
        return pid if ours else None

    def start(self) -> None:
        if self.pid():
            say(f"{self.name} is already running")
            return
        self.prepare()
        say(f"Starting {self.name}")
        with self.log.open("ab") as output:
            daemon = subprocess.Popen(
                inside(*self.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # it outlives make, and a Ctrl-C meant for somebody else
            )
        deadline = time.monotonic() + READY_WITHIN_S
        while not self.answers():
            if daemon.poll() is not None or time.monotonic() > deadline:
                raise ServiceError(f"{self.name} did not start, see {self.log}")
            time.sleep(POLL_S)

    def stop(self) -> None:
        pid = self.pid()
        if pid is None:
            say(f"{self.name} is not running")
            return
        say(f"Stopping {self.name}")
        os.kill(pid, signal.SIGINT)  # PostgreSQL's fast shutdown: it ends sessions and checkpoints
        deadline = time.monotonic() + STOP_WITHIN_S
        while self.pid() == pid:
            if time.monotonic() > deadline:
                raise ServiceError(f"{self.name} (process {pid}) does not stop, see {self.log}")
            time.sleep(POLL_S)


def prepare_postgres() -> None:
    data = POSTGRES.folder
    if not (data / "PG_VERSION").exists():
        say("Creating the database cluster")
        shutil.rmtree(data, ignore_errors=True)
        # "trust" is right here: the socket is in a folder that only its owner can enter.
        options = ["--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]
        run_inside(f"{bindir()}/initdb", "-D", data.name, f"--username={ROLE}", *options)
    shutil.copyfile(CHECKOUT / "scripts/postgresql.conf", data / "postgresql.conf")


def postgres_answers() -> bool:
    """Whether the server accepts connections; creates the database the first time it does."""
    connect = ["-h", "/services/run", "-U", ROLE]
    ready = subprocess.run(inside(f"{bindir()}/pg_isready", "-q", *connect), check=False)
    if ready.returncode != 0:
        return False
    query = f"SELECT 1 FROM pg_database WHERE datname = '{DATABASE}'"
    found = run_inside(f"{bindir()}/psql", "-Atc", query, *connect, "-d", "postgres")
    if not found.strip():
        run_inside(f"{bindir()}/createdb", *connect, DATABASE)
    return True


def prepare_valkey() -> None:
    VALKEY.folder.mkdir(exist_ok=True)


def valkey_answers() -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(reachable(SOCKETS) / "valkey.sock"))
            client.sendall(b"PING\r\n")
            return client.recv(64).startswith(b"+PONG")
        except OSError:
            return False


def run_inside(*command: str) -> str:
    done = subprocess.run(inside(*command), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ServiceError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout


def bindir() -> str:
    return "/usr/lib/postgresql/17/bin"


POSTGRES = Service(
    name="postgres",
    folder=HOME / "postgres",
    pid_file=HOME / "postgres/postmaster.pid",
    command=(f"{bindir()}/postgres", "-D", "postgres", "-k", "/services/run"),
    prepare=prepare_postgres,
    answers=postgres_answers,
)
VALKEY = Service(
    name="valkey",
    folder=HOME / "valkey",
    pid_file=HOME / "valkey/valkey.pid",
    command=(
        *("/usr/bin/valkey-server", "--dir", "valkey", "--pidfile", "valkey.pid"),
        *("--port", "0", "--unixsocket", "../run/valkey.sock", "--unixsocketperm", "700"),
        *("--save", ""),  # it carries wake-ups only: losing them costs seconds
    ),
    prepare=prepare_valkey,
    answers=valkey_answers,
)
SERVICES = (POSTGRES, VALKEY)


# -- what the rest of the project is told -----------------------------------------------------


def reachable(folder: Path) -> Path:
    """`folder`, or a short link to it where its own path is too long for a unix socket."""
    if len(os.fsencode(folder)) <= LONGEST_SOCKET_FOLDER:
        return folder
    remembered = VAR / "short_socket_folder"
    if remembered.exists():
        link = Path(remembered.read_text())
        if link.is_symlink() and link.lstat().st_uid == os.geteuid() and link.samefile(folder):
            return link
    link = Path(tempfile.mkdtemp(prefix="ioportal-", dir="/tmp")) / "run"  # noqa: S108 - private
    link.symlink_to(folder)
    remembered.write_text(str(link))
    return link


def secret_key_file() -> Path:
    if not SECRET_KEY.exists():
        with os.fdopen(os.open(SECRET_KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as f:
            f.write(secrets.token_urlsafe(50))
    return SECRET_KEY


def environment() -> dict[str, str]:
    sockets = reachable(SOCKETS)
    return {
        "DATABASE_URL": f"postgresql://{ROLE}@/{DATABASE}?host={sockets}",
        "IOPORTAL_BROKER_URL": f"redis+socket://{sockets}/valkey.sock",
        "IOPORTAL_SECRET_KEY_FILE": str(secret_key_file()),
    }


@contextmanager
def alone() -> Iterator[None]:
    """Let one process at a time start and stop things in this checkout."""
    for folder in (LOGS, HOME, SOCKETS):
        folder.mkdir(parents=True, exist_ok=True)
    HOME.chmod(0o700)
    with (VAR / "services.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("start", "stop", "env"))
    action = parser.parse_args().action
    try:
        with alone():
            if action == "start":
                build_root()
                for service in SERVICES:
                    service.start()
            elif action == "stop":
                for service in reversed(SERVICES):
                    service.stop()
            else:
                for name, value in environment().items():
                    print(f"{name}={value}")
    except ServiceError as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
