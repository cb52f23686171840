"""The agent, and a look at what a file says: ``python -m collectors``."""

import argparse
import sys
from pathlib import Path

from collectors.agent import config, logs
from collectors.agent.run import run


def main() -> int:
    """Do what the command line says."""
    arguments = _parser().parse_args()
    try:
        return int(arguments.do(arguments))
    except config.Misconfigured as error:
        print(error, file=sys.stderr)
        return 2


def _run(arguments: argparse.Namespace) -> int:
    logs.to_stderr()
    run(config.load(arguments.config))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m collectors", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    running = commands.add_parser("run", help="read the sources and ship what they say")
    running.add_argument("--config", type=Path, required=True, metavar="agent.toml")
    running.set_defaults(do=_run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
