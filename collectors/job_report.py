#!/usr/bin/env python3
"""Print the report of a job: ``ioportal-report JOB``, on a terminal or after the end of a job.

A stand-alone program for login and compute nodes: a copy of this file as `ioportal-report`, Python
3.6 or later, no other packages.

Exit status: 0 the report was printed, 1 there is none in time, 2 wrong usage, 3 the portal refuses
the token.
"""

import argparse
import os
import re
import stat
import sys
import time
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

_UNAVAILABLE, _REFUSED = 1, 3
_LONGEST_BYTES = 1_000_000
_TIMEOUT_S = 20
_PAUSE_S = 15
_ARRAY_TASK = re.compile(r"(\d+)_(\d+)")  # as Slurm writes it


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: it could send the token elsewhere."""

    def redirect_request(self, *_: object) -> None:
        """Refuse a redirect."""


def main() -> int:
    """Print the report of a job; return the exit status."""
    options = _options()
    task = _ARRAY_TASK.fullmatch(options.job)
    job = "{}[{}]".format(*task.groups()) if task else options.job
    path = "/".join(quote(part, safe="") for part in (options.cluster, job))
    request = Request(  # noqa: S310  (the scheme is checked)
        f"{options.url.rstrip('/')}/api/v1/jobs/{path}/report",
        headers={"Accept": "text/plain", "Authorization": f"Token {_secret(options.token_file)}"},
    )
    deadline = time.monotonic() + options.wait
    while True:
        problem = _print_report(request)
        left_s = deadline - time.monotonic()
        if problem in (0, _REFUSED) or left_s <= 0:
            return problem
        time.sleep(min(_PAUSE_S, left_s))


def _print_report(request: Request) -> int:
    """Print the report if the portal has it; return the exit status."""
    try:
        with build_opener(_NoRedirect).open(request, timeout=_TIMEOUT_S) as answer:
            text = answer.read(_LONGEST_BYTES).decode("utf-8", "replace")
    except HTTPError as error:
        sys.stderr.write(f"ioportal-report: the portal answers {error.code} {error.reason}\n")
        return _REFUSED if error.code in (401, 403) else _UNAVAILABLE
    except (OSError, URLError) as error:
        sys.stderr.write(f"ioportal-report: {error}\n")
        return _UNAVAILABLE
    sys.stdout.write(text)
    sys.stdout.flush()
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser("ioportal-report", description="Print the report of a job.")
    parser.add_argument("job", help="batch id; of a task of an array 123_4 or 123[4]")
    parser.add_argument("--cluster", default=os.environ.get("IOPORTAL_CLUSTER"))
    parser.add_argument("--url", default=os.environ.get("IOPORTAL_URL"), help="of the portal")
    parser.add_argument(
        "--token-file",
        default=os.environ.get("IOPORTAL_TOKEN_FILE", "~/.config/ioportal/token"),
        help="file with a token of the scope read (default: %(default)s)",
    )
    parser.add_argument(
        "--wait",
        type=float,
        default=0,
        metavar="S",
        help="seconds to wait for accounting and statistics of the job (default: 0)",
    )
    options = parser.parse_args()
    for name in ("cluster", "url"):
        if not getattr(options, name):
            parser.error(f"Give --{name}, or set IOPORTAL_{name.upper()}.")
    parts = urlsplit(options.url)
    is_own = parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_own):
        parser.error("The address of the portal must start with https://.")
    return options


def _secret(path: str) -> str:
    """Return the token from a file that no other user may read."""
    path = os.path.expanduser(path)  # noqa: PTH111  (a plain string for messages)
    try:
        with open(path) as file:  # noqa: PTH123
            mode = os.fstat(file.fileno()).st_mode
            secret = file.read(1_000).strip()
    except OSError as error:
        sys.exit(_usage(f"{path}: {error.strerror}"))
    if stat.S_IMODE(mode) & 0o077:
        sys.exit(_usage(f"{path}: others may read or write it (chmod 600)"))
    return secret


def _usage(message: str) -> int:
    sys.stderr.write(f"ioportal-report: {message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
