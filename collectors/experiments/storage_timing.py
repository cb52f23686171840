"""Storage timing of CMSSW: operations, bytes and times by subsystem and counter.

Subsystems are layers over the same bytes. `tstoragefile` lies above a protocol such as `rfio`,
`dcap`, `root` or `file`; `tfile` lies above both. Layers are never added up. CMSSW's megabytes have
2^20 bytes.

Source: docs/formats.md, "CMSSW job reports".
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from collectors.batch.values import Unreadable, quoted
from collectors.experiments.numbers import amount

LAYERS_ABOVE_STORAGE = frozenset({"tstoragefile", "tfile"})
MEBIBYTE = 2**20
MOST_COUNTERS = 2_000  # of a run; reports have about a hundred
READS = ("read", "readv")
WRITES = ("write", "writev")

_NAME = re.compile(r"[\w.+-]{1,64}", re.ASCII)
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_MILLISECONDS = 1_000

Counter: TypeAlias = dict[str, str | int | float | None]


def dashed(name: str) -> str:
    """Return a name of later reports as earlier reports spell it: ``readViaCache``."""
    return _CAPITAL.sub(r"-\1", name).lower()


def counter(subsystem: str, name: str, values: Mapping[str, str]) -> Counter:
    """Return a counter with the members of `tables.RUNS`.

    Args:
        subsystem: as printed.
        name: of the counter, in either spelling.
        values: texts by attribute: ``num-operations``, ``total-megabytes``, ``min-msecs``; absent
            and unknown values are None, other attributes are ignored.

    Raises:
        Unreadable: a name is not usable, a value is not a number or negative, or the values
            contradict each other.
    """
    for what, text in (("subsystem", subsystem), ("counter", name)):
        if not _NAME.fullmatch(text):
            raise Unreadable(f"{what} {quoted(text)} is not a name")
    label = f"{subsystem}/{dashed(name)}"
    known = {
        attribute: amount(values[attribute], f"{label}: {attribute}")
        for attribute in _ATTRIBUTES
        if attribute in values
    }
    operations, successes = (
        _whole(known.get(attribute), f"{label}: {attribute}")
        for attribute in ("num-operations", "num-successful-operations")
    )
    megabytes = known.get("total-megabytes")
    total_s, min_s, max_s = (_seconds(known.get(f"{kind}-msecs")) for kind in _TIMES)
    if operations is not None and successes is not None and successes > operations:
        raise Unreadable(f"{label}: {successes} of {operations} operations were successful")
    if min_s is not None and max_s is not None and min_s > max_s:
        if operations:
            raise Unreadable(f"{label}: min-msecs exceeds max-msecs")
        min_s = max_s = None  # initial values
    return {
        "subsystem": subsystem,
        "counter": dashed(name),
        "operations": operations,
        "successes": successes,
        "bytes": None if megabytes is None else megabytes * MEBIBYTE,
        "total_s": total_s,
        "min_s": min_s,
        "max_s": max_s,
    }


_TIMES = ("total", "min", "max")
_ATTRIBUTES = (
    "num-operations",
    "num-successful-operations",
    "total-megabytes",
    *(f"{kind}-msecs" for kind in _TIMES),
)


def _whole(number: float | None, what: str) -> int | None:
    if number is not None and not number.is_integer():
        raise Unreadable(f"{what} {number} is not a whole number")
    return None if number is None else int(number)


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / _MILLISECONDS


class Counters:
    """The counters of one run, each at most once."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, str], Counter] = {}

    def add(self, each: Counter) -> None:
        """Append a counter.

        Raises:
            Unreadable: it repeats, so that the input describes several runs; or there are too many.
        """
        key = (str(each["subsystem"]), str(each["counter"]))
        if key in self._counters:
            raise Unreadable(f"{'/'.join(key)} repeats: an input describes one run")
        if len(self._counters) == MOST_COUNTERS:
            raise Unreadable(f"more than {MOST_COUNTERS:,} counters")
        self._counters[key] = each

    @property
    def all(self) -> list[Counter]:
        """All counters in the order of the input."""
        return list(self._counters.values())

    @property
    def protocol(self) -> str:
        """The protocol of the reads; "": none is known."""
        return storage_protocol(self.all, READS)

    @property
    def metrics(self) -> dict[str, float]:
        """Totals of reads and of writes, each of its protocol, as metrics of the run."""
        totals: dict[str, float | None] = {}
        for kind, names in (("read", READS), ("write", WRITES)):
            protocol = storage_protocol(self.all, names)
            own = [
                each
                for each in self.all
                if each["subsystem"] == protocol and each["counter"] in names
            ]
            totals[f"{kind}_operations"] = _total(own, "operations")
            totals[f"{kind}_bytes"] = _total(own, "bytes")
            totals[f"{kind}_s"] = _total(own, "total_s")
        return {name: total for name, total in totals.items() if total is not None}


def storage_protocol(counters: Sequence[Counter], names: Sequence[str]) -> str:
    """Return the protocol below all layers that transferred the most bytes; "": none is known.

    Without any bytes, it is the protocol with the most operations.

    Args:
        counters: of one run.
        names: counters of the transfers, `READS` or `WRITES`.
    """
    amounts: dict[str, tuple[float, float]] = {}
    for each in counters:
        subsystem = str(each["subsystem"])
        if subsystem not in LAYERS_ABOVE_STORAGE:
            size, operations = amounts.get(subsystem, (0.0, 0.0))
            amounts[subsystem] = (
                size + (float(each["bytes"] or 0) if each["counter"] in names else 0.0),
                operations + float(each["operations"] or 0),
            )
    best = max(amounts, key=amounts.__getitem__, default="")
    return best if best and any(amounts[best]) else ""


def _total(counters: Sequence[Counter], column: str) -> float | None:
    """Return the sum of the known values of a column; None if none is known."""
    values = [float(value) for each in counters if (value := each[column]) is not None]
    return sum(values) if values else None
