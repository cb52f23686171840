"""The simulated centre: its logs, its registration, and the dates of its year."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tomllib
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.management import call_command

from ioportal.alerts.decide import Mode
from ioportal.alerts.models import MailPolicy

if TYPE_CHECKING:
    from pathlib import Path

CLUSTER, ANALYSIS_CLUSTER, MDS, NFS = "titan", "rhea", "atlas2-mds1", "titan-nfs1"
YEAR: Path = settings.BASE_DIR / "var/demo"  # logs of the past year
TODAY: Path = settings.BASE_DIR / "var/live"  # logs of today, and the configuration of its agent
PAST = TODAY / "past"
PILOTS = {"user": "hepprod", "name": "atlas_pilot"}  # the campaign's jobs, as filters
_ZONE = ZoneInfo("America/New_York")
_STORY_ENDS = date(2017, 10, 30)
_PEOPLE: Path = settings.BASE_DIR / "ioportal/demo/people.toml"
_PORTAL = "http://127.0.0.1:8000"  # the address of `make serve`, for agents
_MAILS_WAIT = timedelta(minutes=1)
_PAST_LASTS = timedelta(hours=6, minutes=30)  # as `simulator.past` writes it


@dataclass(frozen=True)
class Dates:
    """Dates of the past year; chosen once, so that repeated commands give the same logs.

    Args:
        ends: last day of the simulator's story.
        until: end of the logs, and start of today's logs.
    """

    ends: str
    until: str

    @classmethod
    def stored(cls) -> Dates:
        """Return the stored dates; the first call stores dates of a year that ends yesterday."""
        path = YEAR / "dates.json"
        if not path.exists():
            now = datetime.now(UTC)
            yesterday = (now - timedelta(days=1)).date()
            dates = cls(f"{yesterday}", (now - _PAST_LASTS).isoformat(timespec="seconds"))
            YEAR.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(asdict(dates)))
        return cls(**json.loads(path.read_text()))


def shifted(moment: datetime) -> datetime:
    """Return a local time of the story, shifted by whole days like the simulator's."""
    shift = date.fromisoformat(Dates.stored().ends) - _STORY_ENDS
    return (moment + shift).replace(tzinfo=_ZONE)


def simulate(*arguments: str) -> None:
    """Run the simulator as a separate program: it shares no code with the portal."""
    subprocess.run(  # noqa: S603  (a program of this project)
        # It ends with this process.
        ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "simulator", *arguments],  # noqa: S607
        cwd=settings.BASE_DIR,
        check=True,
    )


def write_year(seed: int) -> None:
    """Write the logs of the past year, unless they are complete."""
    dates = Dates.stored()
    if not (YEAR / "truth.json").exists():  # the last file
        span = ("--ends", dates.ends, "--until", dates.until, "--stop")
        simulate("demo", *span, "--seed", str(seed), "--out", str(YEAR))


def register() -> None:
    """Register the centre and the sources of today's logs; write a token file for each source."""
    YEAR.mkdir(parents=True, exist_ok=True)
    simulate("site", "--ends", Dates.stored().ends, "--out", str(YEAR / "site.toml"))
    simulate("feeds", "--portal", _PORTAL, "--out", str(TODAY))
    for file in (YEAR / "site.toml", TODAY / "site.toml", _PEOPLE):
        call_command("register", file, stdout=io.StringIO())
    for source in tomllib.loads((TODAY / "site.toml").read_text())["source"]:
        file = TODAY / f"{source['name']}.token"
        if not file.exists():
            secret = io.StringIO()
            arguments = ("create", "ingest", "--source", source["name"], "--name", "demo")
            call_command("token", *arguments, stdout=secret, stderr=io.StringIO())
            file.touch(mode=0o600)
            file.write_text(secret.getvalue())


def send_mails_at_once() -> None:
    """Set a policy that sends mails without approval: the demo has its own mailbox."""
    if not MailPolicy.objects.exists():
        MailPolicy.objects.create(
            default_mode=Mode.AUTOMATIC,
            wait=_MAILS_WAIT,
            interval=_MAILS_WAIT,
            repeat=timedelta(days=7),
            daily_cap=20,
            hourly_brake=20,
            reason="Mails of the demo stay in its mailbox.",
            set_by="demo",
        )


def remove_past() -> None:
    """Remove the logs of the hours before now, which are loaded."""
    shutil.rmtree(PAST)


def is_year_loaded() -> bool:
    """Return whether all files of the past year were loaded."""
    return (YEAR / "loaded").exists()


def mark_year_loaded() -> None:
    """Record that all files of the past year were loaded."""
    (YEAR / "loaded").touch()
