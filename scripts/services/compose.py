"""PostgreSQL and Valkey from docker-compose.yml, on ports of this machine only."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
from urllib.parse import quote

from scripts import production_secrets
from scripts.checkout import CHECKOUT, VAR, run_logged, say
from scripts.services.provider import Provider

PORTS = VAR / "compose.env"
SERVICES = ("db", "valkey")


def provider() -> Provider | None:
    """Return the provider that uses containers; None without an engine."""
    return Provider("docker compose", addresses, start) if works() else None


def works() -> bool:
    """Return whether a container engine and compose are available."""
    if shutil.which("docker") is None:
        return False
    probes = (["docker", "info"], ["docker", "compose", "version"])
    return all(
        subprocess.run(probe, capture_output=True, check=False).returncode == 0 for probe in probes
    )


def addresses() -> dict[str, str]:
    """Return the addresses of the two containers; empty before their first start."""
    if not PORTS.exists():
        return {}
    ports = dict(line.split("=") for line in PORTS.read_text().split())
    password = quote(production_secrets.read("db_password"))
    return {
        "DATABASE_URL": f"postgresql://ioportal:{password}@127.0.0.1:{ports['DB_PORT']}/ioportal",
        "IOPORTAL_BROKER_URL": f"redis://127.0.0.1:{ports['VALKEY_PORT']}/0",
    }


def start() -> None:
    production_secrets.create()
    if not PORTS.exists():
        PORTS.write_text(f"DB_PORT={free_port()}\nVALKEY_PORT={free_port()}\n")
    say("Starting PostgreSQL and Valkey in containers (docker compose)")
    run_logged((*compose(), "up", "--detach", "--wait", *SERVICES), "compose")


def stop() -> None:
    if PORTS.exists() and works():
        say("Stopping the containers of PostgreSQL and Valkey")
        run_logged((*compose(), "stop", *SERVICES), "compose")


def compose() -> tuple[str, ...]:
    # Each checkout is a separate compose project.
    checkout = hashlib.sha256(os.fsencode(CHECKOUT)).hexdigest()[:8]
    files = (
        CHECKOUT / "docker-compose.yml",
        CHECKOUT / "scripts/services/docker-compose.ports.yml",
    )
    return (
        *("docker", "compose", "--project-name", f"ioportal-{checkout}"),
        *("--env-file", str(PORTS)),
        *(argument for file in files for argument in ("--file", str(file))),
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
