"""Prepare an empty database like an administrator: ``python -m chaos.prepare SITE TOKENS``.

Migrates it, registers the site of the file SITE, and writes a token for each source into the folder
TOKENS.
"""

from __future__ import annotations

import io
import os
import sys
import tomllib
from pathlib import Path

import django
from django.core.management import call_command


def main(site: Path, tokens: Path) -> None:
    """Do it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ioportal.settings")
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("register", str(site), stdout=io.StringIO())
    for source in tomllib.loads(site.read_text())["source"]:
        secret = io.StringIO()
        options = ("--source", source["name"])
        call_command("token", "create", "ingest", *options, stdout=secret, stderr=io.StringIO())
        token = tokens / f"{source['name']}.token"
        token.touch(mode=0o600)
        token.write_text(secret.getvalue())


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
