"""Run the agent, show its status, or parse a file."""

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
from collectors.format import Origin
from collectors.formats import BY_NAME
from collectors.parsed import Account, SourceUnavailable
from collectors.source import Source

ROWS_SHOWN = 40
REJECTS_SHOWN = 10
_CONTROL = (r"\p{Cc}", "\ufffd")  # no terminal escape sequences from a file


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.do(arguments))
    except (config.ConfigError, SourceUnavailable) as error:
        _write_error(str(error))
        return 2


def _run(arguments: argparse.Namespace) -> int:
    logs.to_stderr()
    run(config.load(arguments.config))
    return 0


def _status(arguments: argparse.Namespace) -> int:
    now, state = datetime.now(UTC), config.load(arguments.config).state
    try:
        current = status.read(state)
    except OSError as error:
        _write_error(f"No status file: the agent has not run yet ({error})")
        return 1
    problems = status.problems(current, now)
    if arguments.json:
        _write(json.dumps({**current, "summary": problems}))
    else:
        _write(status.table(current, now))
    return 1 if problems else 0


def _parse(arguments: argparse.Namespace) -> int:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # no traceback with `| head`
    if arguments.file == "-":
        source = Source(sys.stdin.buffer, "standard input")
    else:
        source = Source.open(Path(arguments.file))
    origin = Origin(zone=arguments.zone)
    account, rejects, rows = Account(), 0, 0
    for parsed in BY_NAME[arguments.format].parse(source, origin):
        if arguments.ndjson:
            sys.stdout.write(parsed.table.write_ndjson())
        elif rows < ROWS_SHOWN:
            _write_table(parsed.table.head(ROWS_SHOWN - rows))
        rows += parsed.table.height
        account += parsed.account
        for line, text, reason in parsed.rejects.head(max(0, REJECTS_SHOWN - rejects)).iter_rows():
            _write_error(f"line {line}: {reason}: {text!r}")
        rejects += parsed.rejects.height
    _write_error(
        f"{rows} rows from {account.lines} lines: {account.accepted} accepted, "
        f"{account.rejected} rejected, {account.irrelevant} irrelevant"
    )
    return 0


def _write_table(rows: pl.DataFrame) -> None:
    columns = [column.name for column in rows if column.null_count() < rows.height]
    with pl.Config(
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=-1,
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        fmt_str_lengths=60,
    ):
        _write(str(rows.select(columns).with_columns(pl.col(pl.String).str.replace_all(*_CONTROL))))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m collectors", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run_command = commands.add_parser("run", help="read the sources and ship batches")
    run_command.set_defaults(do=_run)

    status_command = commands.add_parser("status", help="show the status; exit 1 on any problem")
    status_command.add_argument("--json", action="store_true", help="print JSON")
    status_command.set_defaults(do=_status)

    for command in (run_command, status_command):
        command.add_argument("--config", type=Path, required=True, metavar="agent.toml")

    parse_command = commands.add_parser("parse", help="parse a file and print its rows")
    parse_command.add_argument("format", choices=BY_NAME)
    parse_command.add_argument("file", help="plain, gzip or zstd; - for standard input")
    parse_command.add_argument("--ndjson", action="store_true", help="print all rows as NDJSON")
    parse_command.add_argument(
        "--zone", type=ZoneInfo, default="UTC", help="time zone of local times (default: UTC)"
    )
    parse_command.set_defaults(do=_parse)
    return parser


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _write_error(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
