"""Windows of random reads equal a reference computation and the windows of an agent."""

import io
import random
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from collectors.lustre import job_stats as collector
from collectors.lustre.differences import Snapshot, job_deltas
from collectors.parsed import Parsed
from collectors.source import Source
from collectors.tables import BASES, JOB_COUNTERS
from ioportal.ingest import attribution_stage
from tests.logs import Timed, at, job_stats
from tests.properties import examples

pytestmark = pytest.mark.usefixtures("site")

OSTS = ("lake-OST0000", "lake-OST0001")
TARGETS = ("lake-MDT0000", *OSTS)
DIFFERENCE, NEW_ENTRY, RESTARTED, RESET, TOTAL = 1, 2, 3, 4, 5
IDLE = timedelta(seconds=600)

ENTRIES = st.dictionaries(st.sampled_from(["77", "78", "cp.0"]), st.integers(0, 9))
# A read: its time, the time since the last use of its entries, and the entries by target.
READS = st.lists(
    st.tuples(
        st.integers(0, 8).map(lambda step: at("12:00") + step * timedelta(minutes=7)),
        st.sampled_from([timedelta(0), timedelta(minutes=5)]),
        st.dictionaries(st.sampled_from(TARGETS), ENTRIES, min_size=1),
    ),
    min_size=1,
    max_size=6,
)


def expected(drawn_reads):
    """Compute the windows: start, end, MDT or "" for OSTs, job id, operations and basis."""
    by_target = defaultdict(dict)  # target -> time -> read
    for number, (moment, before, content) in enumerate(drawn_reads):
        for target, entries in content.items():
            by_target[target][moment] = (number, moment - before, entries)
    windows = defaultdict(lambda: [0, 0])
    for target, reads in by_target.items():
        folded = "" if target in OSTS else target
        moments = sorted(reads)
        for previous, moment in pairwise([None, *moments]):
            number, _, entries = reads[moment]
            _, used, old = reads[previous] if previous else (None, None, {})
            rows = {
                job: _increase(job, value, old, previous and moment - used > IDLE)
                for job, value in entries.items()
            }
            if moment - (used or moment) < IDLE * 0.9:
                rows |= dict.fromkeys(old.keys() - entries.keys(), (0, RESET))
            bases = [basis for _, basis in rows.values()]
            was_restarted = RESET in bases and bases.count(RESET) >= bases.count(DIFFERENCE)
            for job, (amount, basis) in rows.items():
                window = windows[previous or moment, moment, folded, job, number]
                window[0] += amount
                window[1] = max(window[1], RESET if was_restarted else basis)
                if previous is None:
                    window[1] = TOTAL
    return sorted(
        (start, end, folded, job, amount, basis)
        for (start, end, folded, job, _), (amount, basis) in windows.items()
        if amount or basis == RESET  # a reset is stored even without operations
    )


def _increase(job, value, old, idled):
    if job not in old:
        return value, NEW_ENTRY
    if value < old[job]:
        return value, RESTARTED if idled else RESET
    return value - old[job], DIFFERENCE


@pytest.mark.long
@settings(
    max_examples=examples(20),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take too long
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_windows_equal_the_differences_between_reads(logs, ingest, reconcile, queries, data):
    taken = set()
    drawn_reads = []
    for moment, before, content in data.draw(READS):
        # A target is read only once at a given time.
        entries_by_target = {t: e for t, e in content.items() if (t, moment) not in taken}
        taken |= {(target, moment) for target in entries_by_target}
        if entries_by_target:
            drawn_reads.append((moment, before, entries_by_target))
    order = data.draw(st.permutations(range(len(drawn_reads))))
    stages = data.draw(
        st.lists(st.integers(0, 2), min_size=len(drawn_reads), max_size=len(drawn_reads))
    )

    with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)
        for number, limit in zip(order, stages, strict=True):
            moment, before, content = drawn_reads[number]
            dump = "".join(
                job_stats(
                    target,
                    {job: {"sync": amount} for job, amount in entries.items()},
                    snapshot=moment - before,
                )
                for target, entries in content.items()
            )
            ingest("job_stats", logs(f"{number}", dump), at=moment.isoformat())
            if limit:
                attribution_stage.attribute_pending(limit)
        reconcile()
        stored = queries(
            "SELECT w.start, w.end, coalesce(t.name, ''), s.text, coalesce(w.sync, 0), w.basis "
            "FROM telemetry_iowindow w JOIN site_sourcejobid s ON s.id = w.source_job_id "
            "LEFT JOIN site_target t ON t.id = w.target_id ORDER BY 1, 2, 3, 4, 5, 6"
        )
        transaction.set_rollback(True)

    assert stored == expected(drawn_reads)


@pytest.mark.long
def test_a_gap_filled_in_two_attribution_runs_leaves_no_window_across_it(
    logs, ingest, reconcile, queries, monkeypatch
):
    monkeypatch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)
    windows = (
        'SELECT (w.end - w.start)::text, w.sync FROM telemetry_iowindow w ORDER BY w.start, w."end"'
    )

    def read(clock, amount):
        text = job_stats("lake-MDT0000", {"77": {"sync": amount}}, snapshot=at(clock))
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())

    read("12:00", 1)
    read("12:30", 9)
    attribution_stage.attribute_pending()
    assert queries(windows) == [("00:00:00", 1), ("00:30:00", 8)]

    read("12:10", 4)
    read("12:20", 6)
    attribution_stage.attribute_pending(limit=1)
    attribution_stage.attribute_pending(limit=1)
    assert queries(windows) == [
        ("00:00:00", 1),
        ("00:10:00", 3),
        ("00:10:00", 2),
        ("00:10:00", 3),
    ]
    reconcile()


TARGET_COUNTERS = {
    "lake-MDT0000": ("open", "close"),
    "lake-OST0000": ("punch",),
    "lake-OST0001": ("punch",),
}
UNTIMED = "lake-OST0001"  # of an earlier version of Lustre
JOBS = ("1", "2", "cp.0", '""')


class Server:
    """Entries of job_stats that grow, idle, vanish, restart, or decrease at random."""

    def __init__(self, generator, counters, *, is_timed):
        self.random = generator
        self.is_timed = is_timed
        self.counters = counters
        self.entries = {}

    def printed(self, samples):
        return Timed(samples, samples**2) if self.is_timed else samples

    def work(self, now):
        for job in JOBS:
            event = self.random.choice(("work", "work", "idle", "vanish", "decrease", "restart"))
            if event in {"vanish", "restart"}:
                self.entries.pop(job, None)
            if event in {"work", "restart"}:
                start, _, before = self.entries.get(job, (now - timedelta(seconds=30), 0, {}))
                values = {n: before.get(n, 0) + self.random.randrange(50) for n in self.counters}
                self.entries[job] = (start, now - timedelta(seconds=5), values)
            if event == "decrease" and job in self.entries:
                start, used, before = self.entries[job]
                self.entries[job] = (start, used, {n: value // 2 for n, value in before.items()})

    def text(self, target, *, has_start_time):
        head = job_stats(target, {})
        entries = [
            job_stats(
                target,
                {job: {name: self.printed(n) for name, n in counted.items()}},
                snapshot=used,
                start=start if has_start_time else "",
            )
            for job, (start, used, counted) in self.entries.items()
        ]
        return head + "".join(entry.removeprefix(head) for entry in entries)


COLUMNS = ("start", "end", "target", "job", "basis", "open", "close", "punch")
COLUMNS += ("open_us", "close_us", "punch_us")


@pytest.fixture
def portal_windows(queries):
    """Return the windows of the portal in the form of an agent's differences."""

    def rows():
        return {
            (start, end, target, job, BASES[basis - 1], *counters)
            for start, end, target, job, basis, *counters in queries(
                "SELECT w.start, w.\"end\", coalesce(t.name, ''), coalesce(s.text, ''), w.basis, "
                "w.open, w.close, w.punch, w.open_us, w.close_us, w.punch_us "
                "FROM telemetry_iowindow w "
                "LEFT JOIN site_target t ON t.id = w.target_id "
                "LEFT JOIN site_sourcejobid s ON s.id = w.source_job_id"
            )
        }

    return rows


@pytest.mark.long
@pytest.mark.parametrize("has_start_time", [False, True])
def test_agents_and_the_portal_compute_the_same_windows(
    site, logs, ingest, portal_windows, has_start_time
):
    generator = random.Random(8)  # noqa: S311  (repeatable)
    servers = {
        target: Server(generator, counters, is_timed=target != UNTIMED)
        for target, counters in TARGET_COUNTERS.items()
    }
    earlier = Snapshot.at(at("00:00"), JOB_COUNTERS.empty().drop("line"), frozenset())
    agent_windows = set()
    now = at("12:00")
    for _ in range(10):
        now += timedelta(minutes=generator.choice((1, 4, 15, 15)))
        sampled = [target for target in TARGET_COUNTERS if generator.random() < 0.8]
        targets = sampled or ["lake-MDT0000"]
        for server in servers.values():
            server.work(now)
        text = "".join(servers[t].text(t, has_start_time=has_start_time) for t in targets)
        ingest("job_stats", logs(f"{now}", text), at=now.isoformat())
        source = Source(io.BytesIO(text.encode()), "job_stats")
        parsed = Parsed.joined(JOB_COUNTERS, collector.parse(source))
        later = Snapshot.at(now, parsed.table.drop("line"), parsed.observed)
        deltas = job_deltas(earlier, later, IDLE)
        agent_windows.update(deltas.select(*COLUMNS).iter_rows())
        earlier = earlier.updated(later)

    assert agent_windows == portal_windows()
    assert {basis for _, _, _, _, basis, *_ in agent_windows} == set(BASES)
    *_, opens_us, _, punches_us = zip(*agent_windows, strict=True)
    assert any(opens_us)
    assert {None} < set(punches_us)  # unknown where the untimed server counted
