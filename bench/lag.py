"""Lag from a written line to the overview that shows it, with a complete portal."""

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
from ioportal.telemetry.models import RpcWindow
from ioportal.web.overview.query import REFRESH_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

RATE, SECONDS = 100_000, 300  # of RPCs
_NIDS = 2_000
_GOAL_S = 20.0
_PACE_SHARE = 0.99  # of the requested rate; below it, the measured lags are too small
_QUERY_EVERY_S = 1.0
_WARM_UP_S = 10
_BIN_S = 60  # of a range of an hour
_PATIENCE_S = 120
_REPORT_EVERY_S = 20
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


class Observation(NamedTuple):
    """Number of RPCs in the overview at a time."""

    at: float  # epoch seconds
    rpcs: int


def measure(rate: int, seconds: int) -> Iterator[Figure]:
    """Write at a rate, and observe the overview meanwhile."""
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
        written, observations = _watched(load, folder / "trace.log", seconds, overview)
    lags_s = _lags_s(written, observations)
    prefix = f"Lag at {rate:,} RPC/s for {seconds} s"
    yield Figure(
        "lag_rate", f"{prefix}: rate written", _rate(written), "RPC/s", at_least=_PACE_SHARE * rate
    )
    # A page is refreshed at its own interval, so its data is up to an interval older.
    pages_s = (lags_s[:, None] + np.arange(0, REFRESH_S, 0.1)).ravel()
    for way, what, values, goal in (
        ("data", "written to data of the overview", lags_s, None),
        ("page", "written to page of the overview", pages_s, _GOAL_S),
    ):
        for percent in (50, 95):
            yield Figure(
                f"lag_{way}_p{percent}",
                f"{prefix}: {what}, p{percent}",
                float(np.percentile(values, percent)),
                "s",
                at_most=goal if percent == 95 else None,  # noqa: PLR2004
            )
    yield Figure(
        "lag_rows", f"{prefix}: rows stored / windows needed", _rows_by_window(), "x", at_most=1.1
    )


def _rows_by_window() -> float:
    """Return the rows of raw windows, per window of a NID, job id, service and opcode."""
    keys = ("server_id", "start", "nid_id", "source_job_id", "service_id", "opcode")
    windows: int = RpcWindow.objects.values(*keys).distinct().count()
    return RpcWindow.objects.count() / windows


def _watched(
    load: Load, log: Path, seconds: int, overview: _Overview
) -> tuple[list[Written], list[Observation]]:
    """Write, and query the overview until it shows everything."""
    sleep(-time() % _BIN_S)  # the summed bins contain no earlier lines
    written: list[Written] = []
    observations: list[Observation] = []
    overview.begin()
    stop = Event()
    writer = Thread(target=load.write, args=(log, seconds, written, stop))
    writer.start()
    deadline = time() + seconds + _PATIENCE_S
    try:
        while not written or writer.is_alive() or observations[-1].rpcs < written[-1].lines:
            if time() > deadline:
                raise TimeoutError(f"the overview shows {observations[-1].rpcs:,} RPCs: not all")
            sleep(_QUERY_EVERY_S)
            observations.append(overview.observe())
            if len(observations) % _REPORT_EVERY_S == 0:
                say(f"the overview shows {observations[-1].rpcs:,} RPCs")
    finally:
        stop.set()
        writer.join()
    return written, observations


def _rate(written: list[Written]) -> float:
    """Return the written lines per second, between the first part and the last."""
    first, last = written[0], written[-1]
    return (last.lines - first.lines) / (last.at - first.at)


def _lags_s(written: list[Written], observations: list[Observation]) -> NDArray[np.float64]:
    """Return the time from writing each part to its first observation."""
    counts = np.maximum.accumulate([each.rpcs for each in observations])
    first = np.searchsorted(counts, [part.lines for part in written])
    observed_s = np.array([each.at for each in observations], dtype=np.float64)
    written_s = np.array([part.at for part in written], dtype=np.float64)
    lags_s: NDArray[np.float64] = observed_s[first] - written_s
    return lags_s


class _Overview:
    """The overview's data for a logged-in user."""

    def __init__(self, url: str) -> None:
        user = User.objects.create_superuser("watcher")
        client = Client()
        client.force_login(user)
        name = settings.SESSION_COOKIE_NAME
        self._client = httpx.Client(
            base_url=url, cookies={name: client.cookies[name].value}, timeout=60
        )

    def begin(self) -> None:
        """Restrict the data to the time from now on."""
        now = datetime.now(UTC)
        hour = {"start": now, "end": now + timedelta(hours=1)}
        self._range = {name: moment.isoformat() for name, moment in hour.items()}

    def observe(self) -> Observation:
        """Query the overview, and compute the total from the first row's rate and share."""
        answer = self._client.get("/overview/rpcs/", params={"format": "json", **self._range})
        answer.raise_for_status()
        data = answer.json()
        rpcs = 0
        if data["top"] and data["observed_s"]:
            first = data["top"][0]
            rpcs = round(first["mean_per_second"] * data["observed_s"] / first["share"])
        return Observation(time(), rpcs)


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
