"""Start, stop and describe the services of this checkout, or run a command that uses them."""

from __future__ import annotations

import os
import secrets
import sys

from scripts.checkout import VAR, alone, exit_status, say
from scripts.serve import PORTAL
from scripts.services import compose, daemons
from scripts.services.choice import choose

SECRET_KEY, SECRET_KEY_FILE = "IOPORTAL_SECRET_KEY", "IOPORTAL_SECRET_KEY_FILE"
# A checkout's logs may be of any year, and its demo shows all of one: nothing is dropped.
RAW_RETENTION = "IOPORTAL_RAW_RETENTION"
USAGE = "usage: python -m scripts.services start | stop | env | run COMMAND..."


def start() -> None:
    with alone():
        way = choose()
        say(f"PostgreSQL and Valkey: {way.name}")
        way.start()


def stop() -> None:
    with alone():
        PORTAL.stop()
        daemons.stop()
        compose.stop()
        say("Nothing that this checkout started is running")


def env() -> None:
    for name, value in environment().items():
        print(f"{name}={value}")


def run(command: list[str]) -> None:
    os.execvpe(command[0], command, os.environ | environment())  # noqa: S606 - its very purpose


def environment() -> dict[str, str]:
    """What ioportal/settings.py must be told to work from this checkout."""
    with alone():
        return {
            **choose().addresses(),
            **secret_key(),
            RAW_RETENTION: os.environ.get(RAW_RETENTION, "forever"),
        }


def secret_key() -> dict[str, str]:
    """The key given in the environment, or one of our own, created once."""
    if given := {SECRET_KEY, SECRET_KEY_FILE} & os.environ.keys():
        return {name: os.environ[name] for name in given}
    path = VAR / "secret_key"
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(50))
    return {SECRET_KEY_FILE: str(path)}


def main() -> None:
    match sys.argv[1:]:
        case ["start"]:
            start()
        case ["stop"]:
            stop()
        case ["env"]:
            env()
        case ["run", *command] if command:
            run(command)
        case _:
            sys.exit(USAGE)


if __name__ == "__main__":
    sys.exit(exit_status(main))
