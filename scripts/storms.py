"""Measure in the demo the time from the onset of a metadata storm until its job leads the overview.

usage: python -m scripts.storms [PORTAL [HOW_MANY]]

Onsets come from the simulator's truth. The leading job comes from the overview's data, requested
every second by a logged-in user.
"""

from __future__ import annotations

import json
import sys
import time
from datetime import datetime

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


def on_top(client: httpx.Client) -> str:
    answer = client.get("/overview/rpcs/", params={"format": "json", "last": "1h"})
    answer.raise_for_status()
    top = answer.json()["top"]
    return top[0]["principal"] if top else ""


def watch(url: str, how_many: int) -> None:
    client = logged_in(url)
    observed = set(onsets())
    say(f"Waiting for {how_many} storms")
    while how_many:
        time.sleep(1)
        for job, onset in onsets().items():
            if job not in observed:
                observed.add(job)
                how_many -= 1
                waited_s = seconds_until_top(client, job, onset)
                say(f"Job {job} was on top {waited_s:.1f} s after its storm began")


def seconds_until_top(client: httpx.Client, job: str, onset: float) -> float:
    while job not in (first := on_top(client)):
        if time.time() > onset + GIVEN_UP_AFTER_S:
            raise Problem(f"{GIVEN_UP_AFTER_S} s after its onset {first} is on top, not job {job}")
        time.sleep(1)
    return time.time() - onset


def main() -> None:
    url, how_many = (*sys.argv[1:], *(f"http://{HOST}:8000", "1")[len(sys.argv) - 1 :])
    watch(url, int(how_many))


if __name__ == "__main__":
    sys.exit(exit_status(main))
