"""Create the secrets that docker-compose.yml passes to its containers as files."""

from __future__ import annotations

import secrets
import shutil
import sys

from scripts.checkout import CHECKOUT, exit_status, say

FOLDER = CHECKOUT / "secrets"
NAMES = ("db_password", "secret_key")


def create() -> None:
    if FOLDER.exists():
        return
    new = CHECKOUT / "secrets.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)  # keeps other users out; users differ inside the containers,
    for name in NAMES:
        (new / name).write_text(secrets.token_urlsafe(50))
        (new / name).chmod(0o444)  # and all of them must read the file
    new.rename(FOLDER)
    say("Created secrets/: store a copy with your passwords")


def read(name: str) -> str:
    return (FOLDER / name).read_text()


if __name__ == "__main__":
    sys.exit(exit_status(create))
