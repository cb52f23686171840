"""Create, once, the secrets that docker-compose.yml hands to its containers as files."""

from __future__ import annotations

import secrets
import sys

from scripts.checkout import CHECKOUT, exit_status, say

FOLDER = CHECKOUT / "secrets"


def create() -> None:
    if FOLDER.exists():
        say("secrets/ exists already")
        return
    password = secrets.token_urlsafe(32)
    new = CHECKOUT / "secrets.new"
    new.mkdir(mode=0o700, exist_ok=True)  # keeps everybody out, whatever the files' own modes say
    for name, value in {
        "secret_key": secrets.token_urlsafe(50),
        "db_password": password,
        "database_url": f"postgresql://ioportal:{password}@db/ioportal",
    }.items():
        (new / name).write_text(value)
        (new / name).chmod(0o444)  # in the containers other users must read them
    new.rename(FOLDER)
    say("Created secrets/: keep a copy of it where you keep passwords")


def read(name: str) -> str:
    return (FOLDER / name).read_text()


if __name__ == "__main__":
    sys.exit(exit_status(create))
