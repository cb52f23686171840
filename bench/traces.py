"""RPC traces: the parser alone, and from file to attributed rows, compared with mawk and grep."""

from __future__ import annotations

import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench import inputs, portal
from bench.figures import Figure, Way, in_turn
from collectors.lustre import rpc_trace
from collectors.source import Source
from ioportal.telemetry.models import RpcWindow

if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = 5_000_000
_NIDS_AND_GOALS = {300: 1.5, 20_000: 1.0}
_PARSER_GOAL = 1.5
_GROUPING = Path(__file__).with_name("group.awk")


def measure(scale: float) -> Iterator[Figure]:
    """Time all ways to read traces with few and with many clients."""
    lines = int(LINES * scale)
    portal.run_jobs_on_all_nodes()
    for nids, goal in _NIDS_AND_GOALS.items():
        with inputs.rpctrace(lines, nids) as trace:
            yield from _of_trace(trace, lines, nids, goal)


def _of_trace(trace: Path, lines: int, nids: int, goal: float) -> Iterator[Figure]:
    load = partial(portal.ingest, "rpctrace", "--server", portal.SERVER, str(trace))
    load()  # creates names and rows
    rows = RpcWindow.objects.count()
    portal.settle()
    prefix = f"{nids:,} NIDs"
    timed = in_turn(
        prefix,
        {
            "grep": Way(partial(_run, "grep", "-c", "Handled RPC", str(trace))),
            "mawk": Way(partial(group, trace)),
            "parser": Way(partial(_parse, trace)),
            "attributed": Way(load, prepare=portal.clear_traces),
        },
    )
    portal.clear_traces()
    ratios = {
        "parser": (f"RPC trace, {prefix}: parser alone / mawk", _PARSER_GOAL),
        "attributed": (f"RPC trace, {prefix}: file to attributed rows / mawk", goal),
    }
    for way, (what, at_least) in ratios.items():
        yield Figure(
            f"{way}_vs_mawk_{nids}", what, timed.speed_up(way, "mawk"), "x", at_least=at_least
        )
    speeds = {
        "grep": "`grep -c 'Handled RPC'`",
        "mawk": "mawk",
        "parser": "parser alone",
        "attributed": "file to attributed rows",
    }
    for way, what in speeds.items():
        yield Figure(
            f"{way}_{nids}", f"RPC trace, {prefix}: {what}", lines / timed.median_s(way), "lines/s"
        )
    yield Figure(f"rows_{nids}", f"RPC trace, {prefix}: rows stored", rows, "rows")


def group(trace: Path) -> None:
    """Group a trace with mawk."""
    _run("mawk", "-f", str(_GROUPING), str(trace))


def _run(*command: str) -> None:
    with tempfile.TemporaryFile() as output:  # with /dev/null, grep stops at the first hit
        subprocess.run(command, check=True, stdout=output)


def _parse(trace: Path) -> None:
    for _ in rpc_trace.parse(Source.open(trace)):
        pass
