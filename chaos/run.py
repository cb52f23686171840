"""Seed after seed against one installation: write, break, wait, compare."""

from __future__ import annotations

from collections import Counter
from random import Random
from time import monotonic, sleep
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
SETTLES_WITHIN_S = 60.0
IMPATIENT_S = 3.0  # so long an agent may deliver nothing


class Run:
    """One installation and what is done to it."""

    def __init__(self, site: Installation) -> None:
        self._site = site
        self._targets = Targets(site.source)
        self._copies = Copies(site)
        self._faults = Faults(site, self._copies)
        self._others: Counter[str] = Counter()
        self._told: Counter[str] = Counter()  # by layer, of all seeds
        # What each agent had to deliver when it was looked at, and since when it delivers nothing.
        self._shipping: dict[str, tuple[frozenset[Path], float]] = {}
        self.outcomes: list[Outcome] = []

    def seeds(self, seeds: Iterable[int]) -> Iterator[Outcome]:
        """Do one seed after the other; yield what became of each."""
        for seed in seeds:
            self.outcomes.append(self._seed(seed, len(self.outcomes)))
            yield self.outcomes[-1]

    def conclude(self) -> list[str]:
        """Return what is wrong with the whole, once all seeds are done."""
        wrong = [self._site.reconcile()]
        with psycopg.connect(self._site.database) as database:
            for layer, found in truth.totals(database).items():
                if found != (
                    told := self._told[layer]
                ):  # what came after its seed, and is too much
                    wrong.append(f"{layer}: {told} told by all seeds, {found} stored")
            off, self._others["roll_ups_of_operations"] = truth.off_roll_ups(database)
        if off:
            wrong.append(f"{off} sums of ten minutes are not those of their polls")
        return [sentence for sentence in wrong if sentence]

    @property
    def sums_compared(self) -> int:
        """How many sums of ten minutes were held against their polls."""
        return self._others["roll_ups_of_operations"]

    def save(self, wrong: Sequence[str] = ()) -> None:
        """Write down what is known so far."""
        self._others["redelivered"] = self._copies.sent
        report.save(self.outcomes, self._faults.done, self._others, wrong)

    def _seed(self, seed: int, number: int) -> Outcome:
        begun = monotonic()
        with psycopg.connect(self._site.database) as database:
            source = Source(self._site, self._targets, Random(f"{seed} source"), number)
            before = truth.stored(database, source)
        faults = self._faults.schedule(seed, Random(f"{seed} faults"))
        self._play([*source.schedule(), *faults], source)
        told = truth.told(source)
        for layer, counts in told.items():
            self._told[layer] += counts.total()
        found, is_settled = self._settle(source, told, before)
        outcome = Outcome(
            seed,
            rpcs=told["raw RPCs"].total(),
            operations=sum(
                count
                for (*_, kind), count in told["raw operations"].items()
                if kind not in truth.BYTES
            ),
            wrong=self._refused(),
        )
        if not is_settled:
            outcome.wrong.append(f"it was not at rest after {SETTLES_WITHIN_S:.0f} s")
        for layer, counts in told.items():
            self._compare(outcome, layer, counts, found[layer])
        self._others["rotations"] += source.rotations
        self._others["truncations"] += source.truncations
        self._copies.forget()
        outcome.seconds = monotonic() - begun
        return outcome

    def _play(self, events: list[tuple[float, Callable[[], object]]], source: Source) -> None:
        """Do each thing at its moment."""
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
        self, source: Source, told: dict[str, Counts], before: dict[str, Counts]
    ) -> tuple[dict[str, Counts], bool]:
        """Wait until all is there that was told; return what is there, and whether it came to rest.

        What waited in the spools when all was there first is delivered before it is believed.
        """
        begun = looked = monotonic()
        found: dict[str, Counts] = {layer: Counter() for layer in told}
        last: list[Path] | None = None
        while monotonic() - begun < SETTLES_WITHIN_S:
            self._tick(source)
            if monotonic() - looked < LOOK_EVERY_S:
                continue
            looked = monotonic()
            self._hurry()
            try:
                is_pending, found = self._stored(source, before)
            except psycopg.OperationalError:
                continue
            if found == told and not is_pending and source.flush() and self._copies.is_idle:
                last = self._waiting() if last is None else last
                if not any(batch.exists() for batch in last):
                    return found, True
        return found, False

    def _stored(self, source: Source, before: dict[str, Counts]) -> tuple[bool, dict[str, Counts]]:
        """Return whether something is pending, and what came since the seed began."""
        with psycopg.connect(self._site.database, connect_timeout=2) as database:
            is_pending = truth.pending(database, source) > 0
            stored = truth.stored(database, source)
        for layer, counts in stored.items():
            counts.subtract(before[layer])
        return is_pending, {layer: +counts for layer, counts in stored.items()}

    def _waiting(self) -> list[Path]:
        """Return the batches that wait for delivery."""
        return [
            batch for spool in self._spools() for batch in (spool / "batches").glob("[0-9]*.batch")
        ]

    def _hurry(self) -> None:
        """Restart agents that deliver nothing for a while: they may rest for minutes by now."""
        for agent in self._site.kinds["agent"]:
            waiting = (self._site.folder / agent.name).glob("state/*/batches/[0-9]*.batch")
            shipping = frozenset(waiting)
            before, since = self._shipping.get(agent.name, (shipping, monotonic()))
            if not before <= shipping:  # some of them are delivered
                since = monotonic()
            elif before and monotonic() - since > IMPATIENT_S:
                self._others["hurried_agents"] += agent.restart()
                since = monotonic() + IMPATIENT_S  # it takes a while to start
            self._shipping[agent.name] = shipping, since

    def _refused(self) -> list[str]:
        """Return what is wrong besides sums: batches that the portal will not have."""
        found = [
            f"refused: {path}" for spool in self._spools() for path in (spool / "refused").iterdir()
        ]
        found += self._copies.refused
        self._copies.refused.clear()
        return found

    def _spools(self) -> list[Path]:
        return [spool for spool in self._site.spools.values() if spool.exists()]

    @staticmethod
    def _compare(outcome: Outcome, layer: str, told: Counts, found: Counts) -> None:
        lost, duplicated = (told - found).total(), (found - told).total()
        outcome.lost = max(outcome.lost, lost)
        outcome.duplicated = max(outcome.duplicated, duplicated)
        for key in sorted(set(told) | set(found), key=str):
            if told[key] != found[key]:
                outcome.wrong.append(f"{layer} {key}: {told[key]} told, {found[key]} stored")
