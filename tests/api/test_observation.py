"""A storm in the batches of a trace: immediately under observation, accused once drained."""

import html
import re

import pytest
from django.utils import timezone

from ioportal.findings import observation_stage
from ioportal.findings.models import Case, Flag
from tests import loading
from tests.logs import Run, at, sacct
from tests.storms import overload, pin_baseline
from tests.web.reading import text_of, words_of

pytestmark = pytest.mark.usefixtures("sources")

OBSERVED = (
    "Under observation, slow since 2017-07-05 12:02:00 (evaluated until 2017-07-05 12:02:10 ): "
    "in the worst 10 s, requests took 137 \N{MULTIPLICATION SIGN} as long as usual. "
    "Most of the work now: job 77 alice 91 %. The cause of this queue is not known yet."
)


@pytest.fixture
def at_time(monkeypatch, logs, ingest, follow, attribution):
    """Send the trace of an overload up to a time, and run all stages; each time is later."""
    runs = (
        Run("77", nodes="n[3-4]", node_count=2),
        Run("78", user="bob", nodes="n2"),
        Run("79", user="carol", nodes="n5"),
    )
    ingest("sacct", logs("jobs", sacct(*runs)), cluster="anvil")
    lines = overload()

    def go(clock):
        now = at(clock)
        monkeypatch.setattr(timezone, "now", lambda: now)
        follow("".join(f"{line}\n" for time, line in lines if time < now))
        lines[:] = [(time, line) for time, line in lines if time >= now]
        attribution()
        observation_stage.observe()
        loading.evaluate()

    go("12:02")
    pin_baseline()
    return go


REFRESH = {"HX-Request": "true"}  # of a part of a page
PAGES = ("/", "/now/", "/now/?server=mds1", "/overview/", "/servers/mds1/", "/observed/")


def read(client, address):
    """Return the text of a page, or of a part of a page."""
    headers = REFRESH if address.startswith("/observed/") else {}
    return words_of(client.get(address, headers=headers))


def test_a_storm_is_under_observation_until_it_is_accused(at_time, client, sam):
    client.force_login(sam)

    at_time("12:02:16")
    for address in PAGES:
        assert OBSERVED in read(client, address), address
    for clock in ("12:02:46", "12:03:16"):
        at_time(clock)
        assert "job 77 alice" in read(client, "/observed/")
    assert not Case.objects.exists()  # and no mail, which would be about one

    at_time("12:03:26")
    assert [flag.job.batch_id for flag in Flag.objects.filter(rule="impact")] == ["77"]
    for address in PAGES:
        assert "Under observation" not in read(client, address), address
    home = client.get("/now/")
    assert "because of alice" in words_of(home)
    queue = re.search(r'href="(/incidents/impact/mds1/queue/[^"]*)"', text_of(home))[1]
    assert "Without alice, the requests of other" in words_of(client.get(html.unescape(queue)))
    assert "because of alice" in read(client, "/servers/mds1/")
    for address in ("/overview/", "/observed/"):  # it is still slow
        line = read(client, address)
        assert "Slow since 2017-07-05 12:02:00" in line, address
        assert "Flagged, with their share of the work now: job 77 alice" in line, address
