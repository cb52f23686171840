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
# Logs in a checkout may be of any year, and its demo covers a year: nothing is dropped.
RAW_RETENTION = "IOPORTAL_RAW_RETENTION"
USAGE = "usage: python -m scripts.services start | stop | env | run COMMAND..."


def start() -> None:
    with alone():
        provider = choose()
        say(f"PostgreSQL and Valkey: {provider.name}")
        provider.start()


def stop() -> None:
    with alone():
        PORTAL.stop()
        daemons.stop()
        compose.stop()
        say("No services of this checkout are running")


def env() -> None:
    for name, value in environment().items():
        print(f"{name}={value}")


def run(command: list[str]) -> None:
    os.execvpe(command[0], command, os.environ | environment())  # noqa: S606 - runs the user's command


def environment() -> dict[str, str]:
    """Return the settings for ioportal/settings.py in this checkout."""
    with alone():
        return {
            **choose().addresses(),
            **secret_key(),
            RAW_RETENTION: os.environ.get(RAW_RETENTION, "forever"),
        }


def secret_key() -> dict[str, str]:
    """Return the key in the environment, or this checkout's own key."""
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
