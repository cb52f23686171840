"""Command line: ``python -m simulator demo --seed 1 --out DIR``."""

import argparse
from pathlib import Path

from simulator import demo


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(prog="simulator", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    demo_command = commands.add_parser("demo", help="all raw files of the made-up centre")
    demo_command.add_argument("--seed", type=int, default=1)
    demo_command.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    demo.write(arguments.seed, arguments.out)


if __name__ == "__main__":
    main()
