"""Create the secrets that docker-compose.yml passes to its containers as files."""

from __future__ import annotations

import secrets
import sys

from scripts.checkout import CHECKOUT, exit_status, say

FOLDER = CHECKOUT / "secrets"
NAMES = ("db_admin_password", "db_password", "secret_key")


def create() -> None:
    """Create the missing secrets; existing ones do not change."""
    # The folder keeps other users out. Users differ inside the containers, so all read the files.
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    missing = [name for name in NAMES if not (FOLDER / name).exists()]
    for name in missing:
        new = FOLDER / f"{name}.new"
        new.write_text(secrets.token_urlsafe(50))
        new.chmod(0o444)
        new.rename(FOLDER / name)
    if missing:
        say(f"Created {', '.join(missing)} in secrets/: store a copy with your passwords")


def read(name: str) -> str:
    return (FOLDER / name).read_text()


if __name__ == "__main__":
    sys.exit(exit_status(create))
