"""Load the logs of a simulated centre: ``manage.py demo_data``."""

from __future__ import annotations

import io
import secrets
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command

from ioportal import commands
from ioportal.ingest import attribution_stage
from ioportal.jobs import statistics
from ioportal.stage_runs import drain
from ioportal.telemetry import rollups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.core.management.base import CommandParser

_VAR = settings.BASE_DIR / "var"
_LOGIN = _VAR / "demo_login"  # "name password"
_PORTAL = "http://127.0.0.1:8000"  # the address of `make serve`, for agents
_ADMINISTRATOR = "admin"
_CLUSTER, _ANALYSIS_CLUSTER, _SERVER = "titan", "rhea", "atlas2-mds1"


class Command(commands.Command):
    """Simulates a centre and loads its logs through the collectors."""

    help = (
        "Write the raw logs of a simulated centre, register it and load the logs through the "
        "collectors. Loaded files are skipped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the arguments."""
        parser.add_argument("--seed", type=int, default=1, help="seed of the simulation (1)")
        parser.add_argument("--logs", type=Path, default=_VAR / "demo", help="folder for the logs")
        parser.add_argument(
            "--live", type=Path, default=_VAR / "live", help="folder for today's logs"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # noqa: ARG002  (Django's signature)
        """Simulate, register, load, compute, and create the log-in."""
        logs: Path = options["logs"]
        start = time.monotonic()

        def report(step: str) -> None:
            self.stdout.write(f"  {time.monotonic() - start:5.0f} s  {step}")

        if not (logs / "site.toml").exists():
            report("simulating a year of a centre")
            _simulator("demo", "--seed", str(options["seed"]), "--out", str(logs))
        report("registering the site")
        call_command("register", logs / "site.toml", stdout=self.stderr)
        for content, arguments in _loads(logs):
            report(f"loading {content}")
            call_command("ingest", *arguments, stdout=self.stderr)
        report("computing job statistics")
        drain(attribution_stage.attribute_pending)
        drain(rollups.roll_up)
        drain(statistics.refresh_statistics)
        report("registering the sources of today's logs")
        _register_live(options["live"])
        name, password = _login()
        report(f"done; log in as {name} with the password {password}")


def _simulator(*arguments: str) -> None:
    """Run the simulator as a separate program: it shares no code with the portal."""
    subprocess.run(  # noqa: S603  (a program of this project)
        [sys.executable, "-m", "simulator", *arguments], cwd=settings.BASE_DIR, check=True
    )


def _loads(logs: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the content and the arguments of each `ingest` command, in order."""
    for content, arguments, pattern in (
        ("launches", ["alps", "--cluster", _CLUSTER], "alps/*"),
        ("jobs", ["pbs", "--cluster", _CLUSTER], "pbs/*"),
        ("jobs on shared nodes", ["sacct", "--cluster", _ANALYSIS_CLUSTER], "sacct/*"),
        ("PanDA jobs", ["panda", "--cluster", _CLUSTER], "panda/*"),
        ("RPC traces", ["rpctrace", "--server", _SERVER], "rpctrace/*"),
        ("counters of the MDT", ["md_stats"], "md_stats/*/*"),
        ("counters by job", ["job_stats"], "job_stats/*/*"),
        ("late accounting", ["pbs", "--cluster", _CLUSTER], "late/pbs-*"),
    ):
        if files := sorted(map(str, logs.glob(pattern))):
            yield f"{content}: {len(files)} files", [*arguments, *files]


def _register_live(folder: Path) -> None:
    """Register the sources of today's logs and write a token file for each."""
    _simulator("feeds", "--portal", _PORTAL, "--out", str(folder))
    call_command("register", folder / "site.toml", stdout=io.StringIO())
    for source in tomllib.loads((folder / "site.toml").read_text())["source"]:
        file = folder / f"{source['name']}.token"
        if not file.exists():
            secret = io.StringIO()
            arguments = ("create", "ingest", "--source", source["name"], "--name", "demo")
            call_command("token", *arguments, stdout=secret, stderr=io.StringIO())
            file.touch(mode=0o600)
            file.write_text(secret.getvalue())


def _login() -> tuple[str, str]:
    """Return the administrator's name and password; they are generated in the first run."""
    if _LOGIN.exists():
        name, password = _LOGIN.read_text().split()
    else:
        name, password = _ADMINISTRATOR, secrets.token_urlsafe(9)
        _LOGIN.touch(mode=0o600)
        _LOGIN.write_text(f"{name} {password}\n")
    user, _ = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    return name, password
