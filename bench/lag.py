"""Lag: from the line that is written to the overview that shows it, beside the whole portal."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from time import sleep, time
from typing import TYPE_CHECKING, NamedTuple

import httpx
import numpy as np
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from bench import inputs, portal
from bench.figures import Figure, say
from bench.load import Load, Written
from ioportal.web.overview.query import REFRESH_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RATE, SECONDS = 100_000, 300  # of RPCs
_NIDS = 2_000
_GOAL_S = 20.0
_KEPT_PACE = 0.99  # of the rate asked for, else lags tell of less than they say
_ASKED_EVERY_S = 1.0
_WARM_UP_S = 10
_BIN_S = 60  # of a range of an hour
_PATIENCE_S = 120
_SAID_EVERY_S = 20
_AGENT = """
[portal]
url = "{url}"

[agent]
state = "{folder}/agent"

[[source]]
name = "{source}"
format = "rpctrace"
file = "{folder}/trace.log"
token_file = "token"
"""


class Seen(NamedTuple):
    """How many RPCs the overview shows at a moment, in all."""

    at: float  # epoch seconds
    rpcs: int


def measure(rate: int, seconds: int) -> Iterator[Figure]:
    """Write at a rate for a while, and look at the overview meanwhile."""
    portal.run_jobs_now()
    portal.settle()
    with ExitStack() as entered:
        folder = Path(entered.enter_context(tempfile.TemporaryDirectory(dir=inputs.VAR)))
        load = Load(entered.enter_context(inputs.rpctrace(rate, _NIDS)))
        url = entered.enter_context(portal.served_whole())
        entered.enter_context(_agent(url, folder))
        overview = _Overview(url)
        say("warming up")
        _watched(load, folder / "trace.log", _WARM_UP_S, overview)
        say(f"writing {rate:,} RPCs a second")
        written, seen = _watched(load, folder / "trace.log", seconds, overview)
    lags_s = _lags_s(written, seen)
    of = f"Lag at {rate:,} RPC/s for {seconds} s"
    yield Figure(
        "lag_rate", f"{of}: rate written", _rate(written), "RPC/s", at_least=_KEPT_PACE * rate
    )
    # A page is refreshed at its own beat: what it shows is up to an interval older.
    pages_s = (lags_s[:, None] + np.arange(0, REFRESH_S, 0.1)).ravel()
    for way, what, values, goal in (
        ("data", "written to data of the overview", lags_s, None),
        ("page", "written to page of the overview", pages_s, _GOAL_S),
    ):
        for percent in (50, 95):
            yield Figure(
                f"lag_{way}_p{percent}",
                f"{of}: {what}, p{percent}",
                float(np.percentile(values, percent)),
                "s",
                at_most=goal if percent == 95 else None,  # noqa: PLR2004
            )


def _watched(
    load: Load, log: Path, seconds: int, overview: _Overview
) -> tuple[list[Written], list[Seen]]:
    """Write, and ask until all that was written is seen."""
    sleep(-time() % _BIN_S)  # nothing that was written before is in the bins that are added up
    written: list[Written] = []
    seen: list[Seen] = []
    overview.begin()
    stop = Event()
    writer = Thread(target=load.write, args=(log, seconds, written, stop))
    writer.start()
    deadline = time() + seconds + _PATIENCE_S
    try:
        while not written or writer.is_alive() or seen[-1].rpcs < written[-1].lines:
            if time() > deadline:
                raise TimeoutError(f"the overview shows {seen[-1].rpcs:,} RPCs: not all")
            sleep(_ASKED_EVERY_S)
            seen.append(overview.seen())
            if len(seen) % _SAID_EVERY_S == 0:
                say(f"the overview shows {seen[-1].rpcs:,} RPCs")
    finally:
        stop.set()
        writer.join()
    return written, seen


def _rate(written: list[Written]) -> float:
    """Return how many lines came in a second, between the first part and the last."""
    first, last = written[0], written[-1]
    return (last.lines - first.lines) / (last.at - first.at)


def _lags_s(written: list[Written], seen: list[Seen]) -> NDArray[np.float64]:
    """Return how long each part that was written was not seen."""
    shown = np.maximum.accumulate([one.rpcs for one in seen])
    first = np.searchsorted(shown, [part.lines for part in written])
    seen_s = np.array([one.at for one in seen], dtype=np.float64)
    written_s = np.array([part.at for part in written], dtype=np.float64)
    lags_s: NDArray[np.float64] = seen_s[first] - written_s
    return lags_s


class _Overview:
    """The overview's data, as somebody gets them who is logged in."""

    def __init__(self, url: str) -> None:
        user = User.objects.create_superuser("watcher")
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        self._client = httpx.Client(
            base_url=url, cookies={name: client.cookies[name].value}, timeout=60
        )

    def begin(self) -> None:
        """Look at what comes from now on."""
        now = datetime.now(UTC)
        hour = {"start": now, "end": now + timedelta(hours=1)}
        self._asked = {name: moment.isoformat() for name, moment in hour.items()}

    def seen(self) -> Seen:
        """Ask, and add up what is told: of the first, its rate and share."""
        answer = self._client.get("/overview/rpcs/", params={"format": "json", **self._asked})
        answer.raise_for_status()
        told = answer.json()
        rpcs = 0
        if told["top"] and told["observed_s"]:
            first = told["top"][0]
            rpcs = round(first["mean_per_second"] * told["observed_s"] / first["share"])
        return Seen(time(), rpcs)


@contextmanager
def _agent(url: str, folder: Path) -> Iterator[None]:
    """Run an agent that reads a growing trace."""
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text(portal.token())
    config = folder / "agent.toml"
    config.write_text(_AGENT.format(url=url, folder=folder, source=portal.SOURCE))
    with (
        (folder / "agent.log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "collectors", "run", "--config", str(config)],
            cwd=settings.BASE_DIR,
            stdout=log,
            stderr=log,
        ) as agent,
    ):
        try:
            yield
        finally:
            agent.terminate()
