"""Status of the agent: a file for `status`, and metrics for Prometheus' node_exporter."""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health

FILE = "status.json"
EVERY_S = 5.0
STALE_S = 60.0

Status = dict[str, Any]

# Metrics of each source: type, help, key in the status.
_METRICS = {
    "lines_total": ("counter", "Lines read since the agent started.", "lines"),
    "rejected_lines_total": ("counter", "Lines that could not be parsed.", "rejected"),
    "rows_total": ("counter", "Rows parsed from the lines.", "rows"),
    "delivered_batches_total": ("counter", "Batches accepted by the portal.", "delivered"),
    "problems": ("gauge", "Current problems.", "problems"),
    "behind_bytes": ("gauge", "Unread bytes of the source.", "behind_bytes"),
    "spool_batches": ("gauge", "Batches waiting for delivery.", "spool_batches"),
    "spool_bytes": ("gauge", "Bytes waiting for delivery.", "spool_bytes"),
    "refused_batches": ("gauge", "Batches refused by the portal.", "refused_batches"),
    "oldest_batch_timestamp_seconds": (
        "gauge",
        "Time of the oldest batch waiting for delivery.",
        "oldest_batch_at",
    ),
    "read_timestamp_seconds": ("gauge", "Time of the last read to the end.", "read_at"),
    "delivered_timestamp_seconds": ("gauge", "Time of the last delivery.", "delivered_at"),
}


def source_status(health: Health, spool: Spool) -> Status:
    """Return the status of a source."""
    depth = spool.depth()
    return {
        "read_at": _timestamp(health.read_at),
        "delivered_at": _timestamp(health.delivered_at),
        "lines": health.lines,
        "rejected": health.rejected,
        "rows": health.rows,
        "delivered": health.delivered,
        "behind_bytes": health.behind_bytes,
        "spool_batches": depth.batches,
        "spool_bytes": depth.bytes,
        "oldest_batch_at": _timestamp(depth.oldest_at),
        "refused_batches": depth.refused,
        "problems": dict(health.problems),
    }


def write(state: Path, metrics: Path | None, sources: Mapping[str, Status]) -> None:
    """Write the status, and the metrics if configured, atomically."""
    status = {"at": _timestamp(datetime.now(UTC)), "sources": dict(sources)}
    _replace(state / FILE, json.dumps(status, indent=1))
    if metrics:
        _replace(metrics, "".join(_exposition(sources)))


def read(state: Path) -> Status:
    """Return the last status; raise `OSError` if there is none."""
    return dict(json.loads((state / FILE).read_text()))


def problems(status: Status, now: datetime) -> list[str]:
    """Return one line per problem."""
    age_s = (now - datetime.fromisoformat(status["at"])).total_seconds()
    lines = [f"agent not running: last status {_ago(age_s)}"] if age_s > STALE_S else []
    for name, source in status["sources"].items():
        lines += [f"{name}: {part}: {reason}" for part, reason in source["problems"].items()]
        if source["refused_batches"]:
            lines.append(f"{name}: the portal refused {source['refused_batches']} batches")
    return lines


def table(status: Status, now: datetime) -> str:
    """Return the status as a text table."""

    def since(moment: str | None) -> str:
        if moment is None:
            return "never"
        return _ago((now - datetime.fromisoformat(moment)).total_seconds())

    rows = [("source", "read", "delivered", "behind", "waiting", "rejected lines")]
    rows += [
        (
            name,
            since(source["read_at"]),
            since(source["delivered_at"]),
            _megabytes(source["behind_bytes"]),
            f"{source['spool_batches']} batches, {_megabytes(source['spool_bytes'])}",
            f"{source['rejected']} of {source['lines']}",
        )
        for name, source in status["sources"].items()
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, *(f"! {problem}" for problem in problems(status, now))])


def _exposition(sources: Mapping[str, Status]) -> Iterator[str]:
    for metric, (kind, text, key) in _METRICS.items():
        name = f"ioportal_agent_{metric}"
        yield f"# HELP {name} {text}\n# TYPE {name} {kind}\n"
        for source, status in sources.items():
            if status[key] is not None:
                yield f'{name}{{source="{source}"}} {_number(status[key])}\n'


def _number(value: Any) -> float:
    if isinstance(value, str):
        return datetime.fromisoformat(value).timestamp()
    return len(value) if isinstance(value, dict) else value


def _replace(path: Path, content: str) -> None:
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with unfinished.open("x") as file:  # never follow a planted link
        file.write(content)
        os.fchmod(file.fileno(), 0o644)  # node_exporter runs as another user
    unfinished.replace(path)


def _timestamp(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return f"{max(0, seconds):.0f} s ago"


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
