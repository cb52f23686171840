"""The agent beside the sources, and a look at what a file says."""

import argparse
import json
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from collectors.agent import config, logs, status
from collectors.agent.run import run
from collectors.formats import FORMATS, Origin
from collectors.parsed import Account, SourceUnavailable
from collectors.source import Source

ROWS_SHOWN = 40
REJECTS_SHOWN = 10
_CONTROL = (r"\p{Cc}", "\ufffd")  # a file must not command the terminal


def main(words: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    arguments = _parser().parse_args(words)
    try:
        return int(arguments.do(arguments))
    except (config.Misconfigured, SourceUnavailable) as error:
        _complain(str(error))
        return 2


def _run(arguments: argparse.Namespace) -> int:
    logs.to_stderr()
    run(config.load(arguments.config))
    return 0


def _status(arguments: argparse.Namespace) -> int:
    now, state = datetime.now(UTC), config.load(arguments.config).state
    try:
        told = status.read(state)
    except OSError as error:
        _complain(f"the agent has not run yet: {error}")
        return 1
    troubles = status.troubles(told, now)
    if arguments.json:
        _say(json.dumps({**told, "summary": troubles}))
    else:
        _say(status.table(told, now))
    return 1 if troubles else 0


def _parse(arguments: argparse.Namespace) -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # `| head` ends it quietly
    if arguments.file == "-":
        source = Source(sys.stdin.buffer, "standard input")
    else:
        source = Source.open(Path(arguments.file))
    origin = Origin(zone=arguments.zone)
    account, rejects, shown = Account(), 0, 0
    for parsed in FORMATS[arguments.format].parse(source, origin):
        if arguments.ndjson:
            sys.stdout.write(parsed.table.write_ndjson())
        elif shown < ROWS_SHOWN:
            _show(parsed.table.head(ROWS_SHOWN - shown))
        shown += parsed.table.height
        account += parsed.account
        for line, text, reason in parsed.rejects.head(max(0, REJECTS_SHOWN - rejects)).iter_rows():
            _complain(f"line {line}: {reason}: {text!r}")
        rejects += parsed.rejects.height
    _complain(
        f"{shown} rows of {account.lines} lines: {account.accepted} accepted, "
        f"{account.rejected} rejected, {account.irrelevant} irrelevant"
    )
    return 0


def _show(rows: pl.DataFrame) -> None:
    told = [column.name for column in rows if column.null_count() < rows.height]
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        fmt_str_lengths=60,
    ):
        _say(str(rows.select(told).with_columns(pl.col(pl.String).str.replace_all(*_CONTROL))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m collectors", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    running = commands.add_parser("run", help="read the sources and ship what they say")
    running.set_defaults(do=_run)

    asking = commands.add_parser("status", help="say how the agent is; 1: something is wrong")
    asking.add_argument("--json", action="store_true", help="for programs")
    asking.set_defaults(do=_status)

    for command in (running, asking):
        command.add_argument("--config", type=Path, required=True, metavar="agent.toml")

    parsing = commands.add_parser("parse", help="print what a file is understood to say")
    parsing.add_argument("format", choices=FORMATS)
    parsing.add_argument("file", help="plain, gzip or zstd; -: standard input")
    parsing.add_argument("--ndjson", action="store_true", help="all rows, a JSON object each")
    parsing.add_argument("--zone", type=ZoneInfo, default="UTC", help="of local times")
    parsing.set_defaults(do=_parse)
    return parser


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
