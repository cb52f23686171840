"""The command line of the benches."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from bench import (
    agent,
    api,
    bookkeeping,
    capacity,
    change_points,
    comparison,
    counters,
    evaluation,
    lag,
    loading,
    memory,
    overview,
    pages,
    portal,
    report,
    traces,
    workers,
)
from bench.flag_quality import measuring

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.figures import Figure

_BENCHES: dict[str, Callable[[float], Iterator[Figure]]] = {
    "traces": traces.measure,
    "agent": agent.measure,
    "loading": loading.measure,
    "memory": memory.measure,
    "counters": counters.measure,
    "workers": workers.measure,
    "bookkeeping": bookkeeping.measure,
    "pages": pages.measure,
    "change-points": change_points.measure,
    "overview": overview.measure,
    "judging": evaluation.measure,
    "comparison": comparison.measure,
    "capacity": capacity.measure,
    "api": api.measure,
}
_LAG = "lag"
_FLAG_QUALITY = "flag-quality"
_QUICK_SCALE = 0.1


def main() -> None:
    """Run the selected benches; publish the figures of a complete run at full size."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument(
        "bench", nargs="*", help=f"of {', '.join(_BENCHES)}, {_LAG}; all if none is named"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the input; writes var/bench.json only"
    )
    parser.add_argument("--rate", type=int, default=lag.RATE, help="of lag: RPCs a second")
    parser.add_argument("--seeds", type=int, default=1, help=f"of {_FLAG_QUALITY}, alone: how many")
    parser.add_argument("--first", type=int, default=1, help=f"of {_FLAG_QUALITY}: the first seed")
    parser.add_argument("--seconds", type=int, default=lag.SECONDS, help="of lag")
    arguments = parser.parse_args()
    if arguments.bench == [_FLAG_QUALITY]:
        measuring.measure(range(arguments.first, arguments.first + arguments.seeds))
        return
    benches = _BENCHES | {
        _LAG: lambda scale: lag.measure(arguments.rate, int(arguments.seconds * scale))
    }
    if unknown := set(arguments.bench) - benches.keys():
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    scale = _QUICK_SCALE if arguments.quick else 1
    with portal.database():
        figures = [
            figure
            for name, measure in benches.items()
            if not arguments.bench or name in arguments.bench
            for figure in measure(scale)
        ]
        report.show(figures)
        report.save(figures)
        if not arguments.bench and not arguments.quick:
            report.publish(figures)
