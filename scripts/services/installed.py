"""PostgreSQL with TimescaleDB and Valkey or Redis, installed on this machine.

Only the programs are used: the machine's own servers are not changed.
"""

from __future__ import annotations

import pwd
import re
import shutil
import subprocess
from pathlib import Path

from scripts.checkout import is_root
from scripts.services import bubblewrap, daemons
from scripts.services.provider import Provider

# Debian and the PGDG packages for RPM systems keep PostgreSQL's versions outside of PATH.
POSTGRES_FOLDERS = ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")


def provider() -> Provider | None:
    """Return the provider that uses the latest installed PostgreSQL; None without the programs."""
    valkey = shutil.which("valkey-server") or shutil.which("redis-server")
    folders = [folder for folder in postgres_folders() if has_timescaledb(folder)]
    if valkey is None or not folders:
        return None
    newest = max(folders, key=version)

    def programs(home: Path) -> daemons.Programs:
        wrapper: tuple[str, ...] = ()
        if is_root():
            uid = pwd.getpwnam("daemon").pw_uid  # initdb needs a user with a name
            wrapper = bubblewrap.wrapper("--ro-bind", "/", "/", uid=uid, home=home)
        return daemons.Programs(newest, Path(valkey), wrapper, home)

    return Provider(
        "programs installed on this machine",
        daemons.addresses,
        lambda: daemons.start(programs(daemons.HOME)),
        programs=("bwrap",) if is_root() else (),
        servers=programs,
    )


def postgres_folders() -> set[Path]:
    folders = {folder for pattern in POSTGRES_FOLDERS for folder in Path("/").glob(pattern)}
    if on_path := shutil.which("postgres"):
        folders.add(Path(on_path).resolve().parent)
    return {folder for folder in folders if (folder / "pg_config").exists()}


def has_timescaledb(folder: Path) -> bool:
    return Path(pg_config(folder, "--sharedir"), "extension/timescaledb.control").exists()


def version(folder: Path) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", pg_config(folder, "--version")))


def pg_config(folder: Path, option: str) -> str:
    done = subprocess.run(
        [folder / "pg_config", option], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
