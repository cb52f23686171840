"""Results: on the terminal, and in ``var/chaos.json``."""

from __future__ import annotations

import json
import os
import statistics
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from scripts.checkout import VAR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FILE = VAR / "chaos.json"
_SHOWN = 20


@dataclass
class Outcome:
    """Result of a seed."""

    seed: int
    seconds: float = 0.0
    rpcs: int = 0
    operations: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: list[str] = field(default_factory=list)  # sentences
    inconclusive: str = ""  # work that was unfinished, so that nothing could be compared

    def line(self, done: int, seeds: int) -> str:
        """Return a line for the terminal."""
        end = "; ".join(["", *self.wrong[:_SHOWN]]).replace("; ", "\n      ")
        sums = f"lost {self.lost}  duplicated {self.duplicated}"
        if self.inconclusive:
            sums = f"inconclusive: {self.inconclusive}"
        return (
            f"{done:>4}/{seeds} seed {self.seed:<5} {self.seconds:5.1f} s {self.rpcs:>7,} RPCs "
            f"{self.operations:>9,} operations  {sums}{end}"
        )


def unfinished(batches: int, pending: int, *, is_read: bool) -> str:
    """Return a description of the work that is unfinished; "" if there is none."""
    parts = []
    if batches:
        parts.append(f"{batches:,} batches in the spools")
    if pending:
        parts.append(f"{pending:,} pending intervals")
    if not is_read:
        parts.append("input that is not written or delivered")
    return ", ".join(parts)


def save(
    outcomes: list[Outcome],
    faults: Mapping[str, Mapping[str, int]],
    counts: Mapping[str, int],
    wrong: Sequence[str],
) -> None:
    """Write the results so far; `wrong` contains problems outside of seeds."""
    seconds = [outcome.seconds for outcome in outcomes]
    content = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seeds": len(outcomes),
        "rpcs": sum(outcome.rpcs for outcome in outcomes),
        "operations": sum(outcome.operations for outcome in outcomes),
        "inconclusive": sum(bool(outcome.inconclusive) for outcome in outcomes),
        "lost": sum(outcome.lost for outcome in outcomes),
        "duplicated": sum(outcome.duplicated for outcome in outcomes),
        **{what: dict(sorted(kinds.items())) for what, kinds in faults.items()},
        **counts,
        "seconds_per_seed": {
            "median": round(statistics.median(seconds), 1),
            "longest": round(max(seconds), 1),
        },
        "load": os.getloadavg()[0],
        "wrong_at_the_end": wrong,
        "failures": [
            asdict(outcome) for outcome in outcomes if outcome.wrong or outcome.inconclusive
        ],
    }
    FILE.write_text(json.dumps(content, indent=1) + "\n")
