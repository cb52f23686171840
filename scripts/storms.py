"""Measure in the demo how soon the portal shows data and metadata storms.

usage: python -m scripts.storms [PORTAL [HOW_MANY]]

The lag is the age of the overview's latest data. Onsets of storms come from the simulator's truth.
A job is shown when it leads the overview's data, and when a flag of the rule *impact* names it. All
are requested every second by a logged-in user.
"""

from __future__ import annotations

import json
import math
import sys
import time
from datetime import datetime
from statistics import quantiles
from typing import Any

import httpx

from scripts.checkout import Problem, exit_status, say
from scripts.serve import HOST, LIVE, log_ins

STORM = "metadata storm"
GIVEN_UP_AFTER_S = 120


def logged_in(url: str) -> httpx.Client:
    name, password = log_ins()[0]
    client = httpx.Client(base_url=url, timeout=60)
    page = client.get("/login/")
    if page.is_error:
        raise Problem(f"{url} does not answer as the portal does: {page.status_code}")
    client.post(
        "/login/",
        data={
            "username": name,
            "password": password,
            "csrfmiddlewaretoken": client.cookies["csrftoken"],
        },
    )
    if "sessionid" not in client.cookies:
        raise Problem(f"{url} does not let {name} in")
    return client


def onsets() -> dict[str, float]:
    """Return the onset of each storm that has started, by its job."""
    try:
        events = map(json.loads, (LIVE / "truth.jsonl").read_text().splitlines())
    except FileNotFoundError:
        return {}
    return {
        event["job"]: datetime.fromisoformat(event["onset"]).timestamp()
        for event in events
        if event["kind"] == STORM
    }


def leads_the_overview(client: httpx.Client, job: str) -> bool:
    top = _data(client, "/overview/rpcs/", last="15m")["top"]  # without the storm before
    return bool(top) and job in top[0]["principal"]


def is_flagged(client: httpx.Client, job: str) -> bool:
    cases = _data(client, "/cases/", rule="impact")["rows"]
    flags = (_data(client, f"/cases/{case['id']}/flags/")["rows"] for case in cases)
    return any(flag["job"] == job for of_case in flags for flag in of_case)


def _data(client: httpx.Client, path: str, **query: str) -> dict[str, Any]:
    answer = client.get(path, params={"format": "json", **query})
    answer.raise_for_status()
    data: dict[str, Any] = answer.json()
    return data


SHOWN = {"on top of the overview": leads_the_overview, "flagged": is_flagged}


def lag_s(client: httpx.Client) -> float:
    """Return the age of the overview's latest attributed data; without any, infinity."""
    rows = _data(client, "/overview/rpcs/", last="15m")["rows"]
    ends = (row["end"] for row in rows if row["per_second"] is not None)
    latest = max(map(datetime.fromisoformat, ends), default=None)
    return time.time() - latest.timestamp() if latest else math.inf


def watch(url: str, how_many: int) -> None:
    """Wait for storms, and print how soon they and all data were shown."""
    client = logged_in(url)
    observed = set(onsets())
    missing: dict[tuple[str, str], float] = {}  # jobs and ways in which they are not shown yet
    lags_s: list[float] = []
    say(f"Waiting for {how_many} storms")
    while how_many or missing:
        time.sleep(1)
        lags_s.append(lag_s(client))
        for job, onset in onsets().items():
            if job not in observed:
                observed.add(job)
                how_many -= 1
                missing |= {(job, way): onset for way in SHOWN}
        for (job, way), onset in list(missing.items()):
            since_s = time.time() - onset
            if SHOWN[way](client, job):
                say(f"Job {job} was {way} {since_s:.1f} s after its storm began")
                del missing[job, way]
            elif since_s > GIVEN_UP_AFTER_S:
                raise Problem(f"job {job} is not {way} {since_s:.0f} s after its storm began")
    median_s, p95_s = (quantiles(lags_s, n=20)[place] for place in (9, 18))
    say(f"The latest data was {median_s:.1f} s old (median), {p95_s:.1f} s (p95)")


def main() -> None:
    url, how_many = (*sys.argv[1:], *(f"http://{HOST}:8000", "1")[len(sys.argv) - 1 :])
    watch(url, int(how_many))


if __name__ == "__main__":
    sys.exit(exit_status(main))
