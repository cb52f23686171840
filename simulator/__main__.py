"""A made-up centre that writes raw logs.

python -m simulator demo --seed 1 --out DIR
python -m simulator rpctrace --lines 1000000 --nids 300 --out FILE
python -m simulator job_stats --jobs 50000 --out FILE
"""

import argparse
from pathlib import Path

from simulator import constructed, demo
from simulator.formats.rpctrace import Version


def main() -> None:
    """Write what the command line asks for."""
    arguments = _parser().parse_args()
    if arguments.command == "demo":
        demo.write(arguments.seed, arguments.out)
    elif arguments.command == "rpctrace":
        constructed.write_rpctrace(
            arguments.out,
            lines=arguments.lines,
            nids=arguments.nids,
            odd_share=arguments.odd,
            seed=arguments.seed,
            version=Version(arguments.version),
        )
    else:
        constructed.write_job_stats(
            arguments.out, jobs=arguments.jobs, poll=arguments.poll, seed=arguments.seed
        )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="simulator", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    whole = commands.add_parser("demo", help="all raw files of three days at the centre")
    trace = commands.add_parser("rpctrace", help="a constructed RPC trace, for benches")
    counters = commands.add_parser("job_stats", help="a constructed dump of an MDT, for benches")
    for command, out in ((whole, "a folder"), (trace, "a file"), (counters, "a file")):
        command.add_argument("--seed", type=int, default=1)
        command.add_argument("--out", type=Path, required=True, help=out)
    trace.add_argument("--lines", type=int, required=True)
    trace.add_argument("--nids", type=int, default=300, help="number of clients")
    trace.add_argument("--odd", type=float, default=0.05, help="share of irregular lines")
    trace.add_argument("--version", choices=[v.value for v in Version], default="2.8")
    counters.add_argument("--jobs", type=int, required=True, help="number of entries")
    counters.add_argument("--poll", type=int, default=0, help="a later poll shows larger totals")
    return parser


if __name__ == "__main__":
    main()
