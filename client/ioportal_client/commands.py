"""The command line ``ioportal``.

Exit status: 0 printed; 1 no such job or data, or no answer in time; 2 wrong usage or settings;
3 the portal refuses the token, or its user may not see this.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ioportal_client import pages, text
from ioportal_client.portal import Portal, PortalError, Refused
from ioportal_client.settings import Settings, SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ioportal_client.answers import Job, LookUp

_NOTHING, _USAGE, _REFUSED = 1, 2, 3
_SEVERITIES = {"abuse": "3", "warning": "2", "notice": "1"}  # as the page of cases filters
_SECTIONS = {"operations": "Metadata operations", "rpcs": "Metadata RPCs (traces)"}
_RANGES = ("15m", "1h", "6h", "24h", "7d", "30d", "90d", "1y")
_Options = argparse.Namespace


class Printable(NamedTuple):
    """An answer as an object for ``--json``, and as lines of text."""

    value: Any
    lines: Iterable[str]


def main(arguments: list[str] | None = None) -> int:
    """Print the answer to a command; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        settings = Settings.read(options.url, options.token_file)
        with Portal(settings, timeout_s=options.timeout) as portal:
            answer = options.command(portal, options)
            lines = [_json(answer.value)] if options.json else list(answer.lines)
    except SettingsError as error:
        return _failed(error, _USAGE)
    except Refused as error:
        return _failed(error, _REFUSED)
    except PortalError as error:
        return _failed(error, _NOTHING)
    except KeyboardInterrupt:
        return _NOTHING
    return _print(lines)


def _job(portal: Portal, options: _Options) -> Printable:
    found = _single(portal.panda_jobs if options.pandaid else portal.batch_jobs, options.id)
    return Printable(found, pages.job(found))


def _top(portal: Portal, options: _Options) -> Printable:
    loads = {kind: portal.load(last=options.last, by=options.by, kind=kind) for kind in _SECTIONS}

    def lines() -> Iterator[str]:
        for kind, load in loads.items():
            yield from pages.load(_SECTIONS[kind], load, options.limit)
            yield ""

    return Printable(loads, lines())


def _cases(portal: Portal, options: _Options) -> Printable:
    names = ("state", "severity", "rule", "user", "filesystem")
    filters = {name: getattr(options, name) for name in names if getattr(options, name)}
    if severity := filters.get("severity"):
        filters["severity"] = _SEVERITIES[severity]
    found = portal.cases(**filters)
    return Printable(found[: options.limit], pages.cases(found, options.limit))


def _compare(portal: Portal, options: _Options) -> Printable:
    are_filters = ["=" in each for each in (options.a, options.b)]
    if all(are_filters):
        comparison = portal.compare(options.a, options.b)
        return Printable(comparison, pages.comparison(comparison))
    if any(are_filters):
        raise SettingsError("Give two filters, such as user=alice queue=batch, or two job ids.")
    jobs = [_single(portal.batch_jobs, each) for each in (options.a, options.b)]
    return Printable(jobs, pages.two_jobs(*jobs))


def _report(portal: Portal, options: _Options) -> Printable:
    if not options.cluster:
        raise SettingsError("Give --cluster, or set IOPORTAL_CLUSTER.")
    job = options.cluster, options.job
    if options.json:
        return Printable(portal.report_facts(*job, wait_s=options.wait), ())
    report = portal.report(*job, wait_s=options.wait)
    return Printable(None, [text.visible_lines(report.rstrip("\n"))])


def _single(look_up: Callable[[list[str]], LookUp], name: str) -> Job:
    """Return the job of an id; print warnings, such as that ids repeat."""
    found = look_up([name])
    jobs = found["jobs"]
    for warning in found["warnings"]:
        _complain(warning)
    if not jobs:
        raise PortalError(f"No job {name} that you may see is known.")
    if len(jobs) > 1:
        raise PortalError(f"Job {name} is an array. Give one task, such as {jobs[0]['batchid']}.")
    return jobs[0]


def _json(value: Any) -> str:
    """Return a value as JSON in ASCII, without control characters."""
    return json.dumps(value, indent=2).replace("\x7f", "\\u007f")


def _failed(error: Exception, status: int) -> int:
    _complain(str(error))
    return status


def _complain(message: str) -> None:
    sys.stderr.write(f"ioportal: {text.visible(message)}\n")


def _print(lines: Iterable[str]) -> int:
    """Print lines, also in a terminal without UTF-8 and to a reader that ends early."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        sys.stdout.write("\n".join(lines).rstrip("\n") + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _count(text: str) -> int:
    """Parse a number of rows."""
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "ioportal",
        description="The I/O of jobs, and the load of the metadata servers.",
        epilog="Exit status: 0 printed; 1 no such job or data, or no answer in time; "
        "2 wrong usage or settings; 3 the portal refuses the token, or its user may not see this.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")

    def command(
        name: str, run: Callable[[Portal, _Options], Printable], words: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=words, description=words)
        added.set_defaults(command=run)
        added.add_argument("--json", action="store_true", help="print JSON")
        added.add_argument("--url", help="address of the portal (IOPORTAL_URL)")
        added.add_argument(
            "--token-file",
            metavar="FILE",
            help="with a token (IOPORTAL_TOKEN, IOPORTAL_TOKEN_FILE, ~/.config/ioportal/token)",
        )
        added.add_argument(
            "--timeout", type=float, default=20, metavar="S", help="of a request, in seconds (20)"
        )
        return added

    job = command("job", _job, "Show the figures of a job.")
    job.add_argument("id", help="batch id; of a task of an array 123_4 or 123[4]")
    job.add_argument("--pandaid", action="store_true", help="the id is a PanDA id")

    top = command("top", _top, "Show who loads the metadata servers.")
    top.add_argument("--last", choices=_RANGES, default="1h", help="range up to the latest data")
    top.add_argument("--by", choices=("user", "job", "project"), default="user")
    top.add_argument("--limit", type=_count, default=10, metavar="N", help="rows of a table (10)")

    cases = command("cases", _cases, "List current cases, worst first.")
    cases.add_argument("--severity", choices=_SEVERITIES)
    for name in ("state", "rule", "user", "filesystem"):
        cases.add_argument(f"--{name}", help=f"only this {name}")
    cases.add_argument("--limit", type=_count, default=20, metavar="N", help="at most N (20)")

    compare = command("compare", _compare, "Compare two groups of jobs, or two jobs.")
    for name in ("a", "b"):
        compare.add_argument(name, help="filters, such as 'user=alice&queue=batch', or a job id")

    report = command("report", _report, "Print the report of an ended job.")
    report.add_argument("job", help="batch id; of a task of an array 123_4 or 123[4]")
    report.add_argument(
        "--cluster", default=os.environ.get("IOPORTAL_CLUSTER"), help="(IOPORTAL_CLUSTER)"
    )
    report.add_argument(
        "--wait",
        type=float,
        default=0,
        metavar="S",
        help="seconds to wait for accounting and statistics of the job (0)",
    )
    return parser
