"""Runs seeds against one installation: write, inject faults, wait, compare."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random
from time import monotonic, sleep, time
from typing import TYPE_CHECKING

import psycopg

from chaos import report, truth
from chaos.deliveries import Copies
from chaos.faults import LAST_S, Faults
from chaos.report import Outcome
from chaos.source import WRITES_S, Source, Targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from chaos.installation import Installation
    from chaos.truth import Counts

BEAT_S = 0.03
LOOK_EVERY_S = 0.4
SETTLES_WITHIN_S = 60.0  # without a change of the database or the spools
ENDS_WITHIN_S = 600.0
LATE_S = 10.0  # age of a batch that should have been delivered
IMPATIENT_S = 3.0  # maximum time without deliveries of an agent


class Run:
    """One installation and the seeds on it."""

    def __init__(self, site: Installation) -> None:
        self._site = site
        self._targets = Targets(site.source)
        self._copies = Copies(site)
        self._faults = Faults(site, self._copies)
        self._counts: Counter[str] = Counter()
        self._expected: Counter[str] = Counter()  # by layer, of all seeds
        # Pending batches of each agent at the last look, and the time of its last delivery.
        self._shipping: dict[str, tuple[frozenset[Path], float]] = {}
        self.outcomes: list[Outcome] = []
        self.is_delivered = True  # no batch remained in a spool at the end

    def seeds(self, seeds: Iterable[int]) -> Iterator[Outcome]:
        """Run the seeds one after the other; yield the outcome of each."""
        for seed in seeds:
            self.outcomes.append(self._seed(seed, len(self.outcomes)))
            yield self.outcomes[-1]

    def conclude(self) -> list[str]:
        """Return the problems of the complete run, after all seeds.

        Sums are compared only if all batches were delivered: `is_delivered`. Agents write new
        batches all the time, but these contain no operations of a seed.
        """
        begun, batches = monotonic(), self._waiting()
        while batches and monotonic() < begun + SETTLES_WITHIN_S:
            self._site.tend()
            self._hurry()
            sleep(LOOK_EVERY_S)
            batches = [batch for batch in batches if batch.exists()]
        self.is_delivered = not batches
        if batches:
            return []
        wrong = [self._site.reconcile()]
        with psycopg.connect(self._site.database) as database:
            for layer, actual in truth.totals(database).items():
                if actual != (expected := self._expected[layer]):  # arrived after its seed
                    wrong.append(f"{layer}: {expected} expected of all seeds, {actual} stored")
            off, self._counts["roll_ups_of_operations"] = truth.off_roll_ups(database)
        if off:
            wrong.append(f"{off} sums of ten minutes differ from their polls")
        return [sentence for sentence in wrong if sentence]

    @property
    def sums_compared(self) -> int:
        """Number of sums of ten minutes compared with their polls."""
        return self._counts["roll_ups_of_operations"]

    def save(self, wrong: Sequence[str] = ()) -> None:
        """Write the results so far."""
        self._counts["redelivered"] = self._copies.sent
        report.save(self.outcomes, self._faults.done, self._counts, wrong)

    def _seed(self, seed: int, number: int) -> Outcome:
        begun = monotonic()
        with psycopg.connect(self._site.database) as database:
            source = Source(self._site, self._targets, Random(f"{seed} source"), number)
            before = truth.stored(database, source)
        faults = self._faults.schedule(seed, Random(f"{seed} faults"))
        self._play([*source.schedule(), *faults], source)
        expected = truth.expected(source)
        for layer, counts in expected.items():
            self._expected[layer] += counts.total()
        actual, unfinished = self._settle(source, expected, before)
        outcome = Outcome(
            seed,
            rpcs=expected["raw RPCs"].total(),
            operations=sum(
                count
                for (*_, kind), count in expected["raw operations"].items()
                if kind not in truth.BYTES
            ),
            wrong=self._refused(),
        )
        outcome.inconclusive = unfinished
        for layer, counts in expected.items() if not unfinished else ():
            self._compare(outcome, layer, counts, actual[layer])
        self._counts["rotations"] += source.rotations
        self._counts["truncations"] += source.truncations
        self._copies.clear()
        outcome.seconds = monotonic() - begun
        return outcome

    def _play(self, events: list[tuple[float, Callable[[], object]]], source: Source) -> None:
        """Run each event at its time."""
        begun = monotonic()
        waiting = sorted(events, key=lambda event: event[0])
        while waiting or monotonic() - begun < max(WRITES_S, LAST_S):
            while waiting and monotonic() - begun >= waiting[0][0]:
                _, happen = waiting.pop(0)
                happen()
            self._tick(source)

    def _tick(self, source: Source) -> None:
        self._site.tend()
        self._copies.take()
        source.flush()
        sleep(BEAT_S)

    def _settle(
        self, source: Source, expected: dict[str, Counts], before: dict[str, Counts]
    ) -> tuple[dict[str, Counts], str]:
        """Wait until the database has all data; return its content, and the unfinished work.

        Batches that are in the spools when all data is first present must be delivered, too. While
        any work is unfinished, missing data is late and not lost.
        """
        begun = looked = changed = monotonic()
        actual: dict[str, Counts] = {layer: Counter() for layer in expected}
        unfinished, before_look, last = "the database did not answer", object(), None
        while monotonic() < min(changed + SETTLES_WITHIN_S, begun + ENDS_WITHIN_S):
            self._tick(source)
            if monotonic() - looked < LOOK_EVERY_S:
                continue
            looked = monotonic()
            self._hurry()
            try:
                pending, actual = self._stored(source, before)
            except psycopg.OperationalError:
                continue
            waiting, late = self._waiting(), self._late()
            if (look := (pending, actual, late)) != before_look:
                before_look, changed = look, monotonic()
            is_read = source.flush() and self._copies.is_idle
            if actual == expected and not pending and is_read:
                last = waiting if last is None else last
                if not any(batch.exists() for batch in last):
                    return actual, ""
            unfinished = report.unfinished(len(late), pending, is_read=is_read)
        if not unfinished and monotonic() >= begun + ENDS_WITHIN_S:
            unfinished = "the data still changed"
        return actual, unfinished

    def _stored(self, source: Source, before: dict[str, Counts]) -> tuple[int, dict[str, Counts]]:
        """Return the number of pending intervals, and the data stored since the seed started."""
        with psycopg.connect(self._site.database, connect_timeout=2) as database:
            pending = truth.pending(database, source)
            stored = truth.stored(database, source)
        for layer, counts in stored.items():
            counts.subtract(before[layer])
        return pending, {layer: +counts for layer, counts in stored.items()}

    def _waiting(self) -> list[Path]:
        """Return the batches in the spools."""
        return [
            batch for spool in self._spools() for batch in (spool / "batches").glob("[0-9]*.batch")
        ]

    def _late(self) -> list[Path]:
        """Return the batches that are in the spools for longer than deliveries take."""
        latest = time() - LATE_S
        late = []
        for batch in self._waiting():
            with suppress(FileNotFoundError):  # delivered meanwhile
                if batch.stat().st_mtime < latest:
                    late.append(batch)
        return late

    def _hurry(self) -> None:
        """Restart agents without deliveries: their retry interval may be minutes."""
        for agent in self._site.kinds["agent"]:
            waiting = (self._site.folder / agent.name).glob("state/*/batches/[0-9]*.batch")
            shipping = frozenset(waiting)
            before, since = self._shipping.get(agent.name, (shipping, monotonic()))
            if not before <= shipping:  # some were delivered
                since = monotonic()
            elif before and monotonic() - since > IMPATIENT_S:
                self._counts["hurried_agents"] += agent.restart()
                since = monotonic() + IMPATIENT_S  # it takes a while to start
            self._shipping[agent.name] = shipping, since

    def _refused(self) -> list[str]:
        """Return problems other than sums: batches that the portal refused."""
        refusals = [
            f"refused: {path}" for spool in self._spools() for path in (spool / "refused").iterdir()
        ]
        refusals += self._copies.refused
        self._copies.refused.clear()
        return refusals

    def _spools(self) -> list[Path]:
        return [spool for spool in self._site.spools.values() if spool.exists()]

    @staticmethod
    def _compare(outcome: Outcome, layer: str, expected: Counts, actual: Counts) -> None:
        lost, duplicated = (expected - actual).total(), (actual - expected).total()
        outcome.lost = max(outcome.lost, lost)
        outcome.duplicated = max(outcome.duplicated, duplicated)
        for key in sorted(set(expected) | set(actual), key=str):
            if expected[key] != actual[key]:
                outcome.wrong.append(
                    f"{layer} {key}: {expected[key]} expected, {actual[key]} stored"
                )
