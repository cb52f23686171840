"""What an agent tells of two reads is what the portal derives from the same reads."""

import io
import random
from datetime import timedelta

import pytest

from collectors.lustre import job_stats as collector
from collectors.lustre.differences import Snapshot, job_deltas
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import BASES, JOB_COUNTERS
from tests.logs import at, job_stats

TARGETS = {
    "lake-MDT0000": ("open", "close"),
    "lake-OST0000": ("punch",),
    "lake-OST0001": ("punch",),
}
JOBS = ("1", "2", "cp.0", '""')
IDLE = timedelta(minutes=10)


class Server:
    """Entries of job_stats that grow, idle, vanish, begin anew, or fall for no reason."""

    def __init__(self, chance, counters):
        self.chance = chance
        self.counters = counters
        self.entries = {}

    def work(self, now):
        for job in JOBS:
            fate = self.chance.choice(("works", "works", "idles", "vanishes", "falls", "restarts"))
            if fate in {"vanishes", "restarts"}:
                self.entries.pop(job, None)
            if fate in {"works", "restarts"}:
                start, _, before = self.entries.get(job, (now - timedelta(seconds=30), 0, {}))
                grown = {n: before.get(n, 0) + self.chance.randrange(50) for n in self.counters}
                self.entries[job] = (start, now - timedelta(seconds=5), grown)
            if fate == "falls" and job in self.entries:
                start, used, before = self.entries[job]
                self.entries[job] = (start, used, {n: value // 2 for n, value in before.items()})

    def text(self, target, *, tells_start):
        head = job_stats(target, {})
        entries = [
            job_stats(target, {job: c}, snapshot=used, start=start if tells_start else "")
            for job, (start, used, c) in self.entries.items()
        ]
        return head + "".join(entry.removeprefix(head) for entry in entries)


@pytest.fixture
def derived(queries):
    """The windows that the portal derived, as an agent would tell them."""

    def rows():
        return {
            (start, end, target, job, BASES[basis - 1], *counters)
            for start, end, target, job, basis, *counters in queries(
                "SELECT w.start, w.\"end\", coalesce(t.name, ''), coalesce(s.text, ''), w.basis, "
                "w.open, w.close, w.punch FROM telemetry_iowindow w "
                "LEFT JOIN site_target t ON t.id = w.target_id "
                "LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id"
            )
        }

    return rows


@pytest.mark.parametrize("tells_start", [False, True])
def test_an_agent_tells_what_the_portal_derives(site, logs, ingest, derived, tells_start):
    chance = random.Random(8)  # noqa: S311  (its luck must repeat)
    servers = {target: Server(chance, counters) for target, counters in TARGETS.items()}
    earlier, told = Snapshot.at(at("00:00"), JOB_COUNTERS.empty().drop("line"), frozenset()), set()
    now = at("12:00")
    for _ in range(10):
        now += timedelta(minutes=chance.choice((1, 4, 15, 15)))
        read = [target for target in TARGETS if chance.random() < 0.8] or ["lake-MDT0000"]
        for server in servers.values():
            server.work(now)
        text = "".join(servers[t].text(t, tells_start=tells_start) for t in read)
        ingest("job_stats", logs(f"{now}", text), at=now.isoformat())
        source = Source(io.BytesIO(text.encode()), "a text")
        parsed = Parsed.joined(JOB_COUNTERS, collector.parse(source))
        later = Snapshot.at(now, parsed.table.drop("line"), parsed.observed)
        deltas = job_deltas(earlier, later, IDLE)
        columns = ("start", "end", "target", "job", "basis", "open", "close", "punch")
        told.update(deltas.select(*columns).iter_rows())
        earlier = earlier.updated(later)

    assert told == derived()
    assert {basis for _, _, _, _, basis, *_ in told} == set(BASES)
