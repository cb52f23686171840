"""The command line of the benches."""

from __future__ import annotations

import argparse

from bench import counters, loading, memory, overview, pages, portal, report, traces

_BENCHES = {
    "traces": traces.measure,
    "loading": loading.measure,
    "memory": memory.measure,
    "counters": counters.measure,
    "pages": pages.measure,
    "overview": overview.measure,
}
_QUICK_SCALE = 0.1


def main() -> None:
    """Run the chosen benches; publish what a whole run at full size found."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("bench", nargs="*", help=f"of {', '.join(_BENCHES)}; all if none is named")
    parser.add_argument(
        "--quick", action="store_true", help="a tenth of the input; writes var/bench.json only"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.bench) - _BENCHES.keys():
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    scale = _QUICK_SCALE if arguments.quick else 1
    with portal.database():
        figures = [
            figure
            for name, measure in _BENCHES.items()
            if not arguments.bench or name in arguments.bench
            for figure in measure(scale)
        ]
        report.show(figures)
        report.save(figures)
        if not arguments.bench and not arguments.quick:
            report.publish(figures)
