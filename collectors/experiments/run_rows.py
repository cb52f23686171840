"""Rows of runs with all columns of `tables.RUNS`."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from collectors.batch.records import Row
from collectors.experiments.storage_timing import Counter
from collectors.parsed import Reject, SourceUnavailable

FINISHED, FAILED, HUNG = "finished", "failed", "hung"
LABEL_CHARACTERS = 200
MOST_REJECTS = 10_000


def check_number(rejects: Sequence[Reject]) -> None:
    """Raise `SourceUnavailable` if a file of one run has too many rejects for the memory."""
    if len(rejects) > MOST_REJECTS:
        raise SourceUnavailable(
            f"More than {MOST_REJECTS:,} unreadable counters, the first in line "
            f"{rejects[0].line:,}: {rejects[0].reason}. Check the file."
        )


def run_row(
    *,
    line: int,
    run: str = "",
    state: str = "",
    started_at: datetime | None = None,
    events: int | None = None,
    labels: Mapping[str, str] | None = None,
    metrics: Mapping[str, float] | None = None,
    counters: Sequence[Counter] = (),
    markers: Iterable[str] = (),
) -> Row:
    """Return a row of a run whose arm and scale are not in the source.

    Args:
        line: of the run's first line or record.
        run: name of the run; "": not in the source.
        state: one of this module's states; "": unknown.
        started_at: start of the run.
        events: processed events.
        labels: settings and choices; long values are truncated.
        metrics: values by names with units.
        counters: of `collectors.experiments.storage_timing`.
        markers: lines that prove that an optimisation was active.
    """
    return {
        "line": line,
        "arm": "",
        "run": _storable(run),
        "state": state,
        "started_at": started_at,
        "scale": None,
        "events": events,
        "labels": [
            {"name": _storable(name), "value": _storable(text[:LABEL_CHARACTERS])}
            for name, text in (labels or {}).items()
        ],
        "metrics": [
            {"name": name, "value": float(value)} for name, value in (metrics or {}).items()
        ],
        "steps": [],
        "counters": list(counters),
        "markers": list(markers),
    }


def _storable(text: str) -> str:
    """Replace NUL characters and lone surrogates, which frames and databases do not accept."""
    return text.encode(errors="replace").decode().replace("\0", "\ufffd")
