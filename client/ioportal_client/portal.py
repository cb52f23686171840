"""Requests to the portal: time-outs, repetition, errors."""

from __future__ import annotations

import json
import re
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType

    from ioportal_client.answers import Case, Comparison, Load, LookUp
    from ioportal_client.settings import Settings

_AGENT = "ioportal-client/0.1"
_LONGEST_BYTES = 128 << 20
_MOST_IDS_IN_URL = 100  # more are sent in a body: proxies limit addresses
_DEFAULT_PAUSE_S = 2.0
_BUSY = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_REFUSALS = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_PENDING = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})  # accounting may follow
_SLURM_ARRAY_TASK = re.compile(r"(\d+)_(\d+)", re.ASCII)


class PortalError(Exception):
    """The portal did not answer, or not as requested.

    Args:
        message: for people; it may contain any characters.
        status: of the answer; None without an answer.
        pause_s: the time after which another request may be answered.
    """

    def __init__(
        self, message: str, status: int | None = None, pause_s: float = _DEFAULT_PAUSE_S
    ) -> None:
        super().__init__(message)
        self.status = status
        self.pause_s = pause_s


class Refused(PortalError):  # noqa: N818  (a decision of the portal, not a fault)
    """The portal refuses the token, or its user may not see this."""


class Unavailable(PortalError):  # noqa: N818  (a state of the portal)
    """The portal cannot be reached, or is too busy."""


class Portal:
    """A connection to the portal. Use it as a context manager, or call `close`.

    Args:
        settings: address and token.
        timeout_s: longest time of one request, including the body of the answer.
        patience_s: longest time to repeat requests that a busy portal puts off (429, 503).
    """

    def __init__(
        self, settings: Settings, *, timeout_s: float = 20.0, patience_s: float = 60.0
    ) -> None:
        self._timeout_s = timeout_s
        self._patience_s = patience_s
        self._client = httpx.Client(
            base_url=settings.url,
            headers={"Authorization": f"Token {settings.token}", "User-Agent": _AGENT},
            timeout=timeout_s,
            follow_redirects=False,  # a redirect could send the token elsewhere
            trust_env=urlsplit(settings.url).scheme == "https",  # proxies see no plain token
            verify=ssl.create_default_context(),  # certificates of the system, such as the site's
        )

    def __enter__(self) -> Self:
        """Return the connection."""
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def batch_jobs(self, ids: Iterable[str]) -> LookUp:
        """Return the latest batch job of each id; `123[4]` is a task of an array."""
        return self._look_up("batchid", map(portal_job_id, ids))

    def panda_jobs(self, ids: Iterable[int | str]) -> LookUp:
        """Return the PanDA jobs of PanDA ids, with the figures of their batch jobs."""
        return self._look_up("pandaid", map(str, ids))

    def load(self, *, last: str = "1h", by: str = "user", kind: str = "operations") -> Load:
        """Return the load of the metadata servers up to the latest data.

        Args:
            last: 15m, 1h, 6h, 24h, 7d, 30d, 90d or 1y.
            by: job, user or project.
            kind: `operations` counted by targets, or `rpcs` traced on servers.
        """
        load: Load = self.export(f"/overview/{quote(kind, safe='')}/", last=last, by=by)
        return load

    def cases(self, **filters: str) -> list[Case]:
        """Return current cases, worst first, with the filters of the page of cases."""
        cases: list[Case] = self.export("/cases/", **filters)["rows"]
        return cases

    def compare(self, *arms: str, **options: str) -> Comparison:
        """Compare two to four arms: saved populations or filters, such as `user=alice`.

        `options`: control, covariate or margin, as on the page of comparisons.
        """
        comparison: Comparison = self.export("/compare/", arm=arms, **options)
        return comparison

    def report(self, cluster: str, job: str, *, wait_s: float = 0) -> str:
        """Return the report of an ended job as text; wait for its accounting and statistics."""
        return self._report(cluster, job, wait_s, "text/plain").decode(errors="replace")

    def report_facts(self, cluster: str, job: str, *, wait_s: float = 0) -> dict[str, Any]:
        """Return the report of an ended job as an object."""
        facts: dict[str, Any] = _object(self._report(cluster, job, wait_s, "application/json"))
        return facts

    def export(self, path: str, **parameters: str | Iterable[str]) -> Any:
        """Return the JSON export of a page, with the parameters of its address."""
        return _object(self._request("GET", path, params={**parameters, "format": "json"}))

    def _look_up(self, name: str, ids: Iterable[str]) -> LookUp:
        wanted = list(ids)
        parameters = {name: "|".join(wanted), "form": "list"}
        path = "/api/v1/jobs/query/"
        if len(wanted) > _MOST_IDS_IN_URL:
            body = self._request("POST", path, json=parameters)
        else:
            body = self._request("GET", path, params=parameters)
        found: LookUp = _object(body)
        return found

    def _report(self, cluster: str, job: str, wait_s: float, kind: str) -> bytes:
        """Return the body of a report; wait while it is pending or the portal is unavailable."""
        names = (quote(name, safe="") for name in (cluster, portal_job_id(job)))
        path = f"/api/v1/jobs/{'/'.join(names)}/report"
        deadline = time.monotonic() + wait_s
        while True:
            try:
                return self._request("GET", path, headers={"Accept": kind})
            except PortalError as error:
                is_pending = isinstance(error, Unavailable) or error.status in _PENDING
                left_s = deadline - time.monotonic()
                if not is_pending or left_s <= 0:
                    raise
                time.sleep(min(error.pause_s, left_s))

    def _request(self, method: str, path: str, **options: Any) -> bytes:
        """Return the body of an answer with status 200; repeat a request that is put off."""
        deadline = time.monotonic() + self._patience_s
        while True:
            status, headers, body = self._answer(method, path, options)
            if status == HTTPStatus.OK:
                return body
            error = _error(status, headers, body)
            if status not in _BUSY or time.monotonic() + error.pause_s > deadline:
                raise error
            time.sleep(error.pause_s)

    def _answer(
        self, method: str, path: str, options: dict[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body, read within the time-out."""
        deadline = time.monotonic() + self._timeout_s
        body = bytearray()
        try:
            with self._client.stream(method, path, **options) as response:
                for piece in response.iter_bytes():
                    body += piece
                    if time.monotonic() > deadline:
                        raise Unavailable(f"No complete answer within {self._timeout_s:g} s.")
                    if len(body) > _LONGEST_BYTES:
                        raise PortalError(f"The answer has more than {_LONGEST_BYTES:,} bytes.")
                return response.status_code, response.headers, bytes(body)
        except httpx.TimeoutException as error:
            raise Unavailable(f"No answer within {self._timeout_s:g} s.") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise Unavailable(str(error) or type(error).__name__) from error


def portal_job_id(job: str) -> str:
    """Return a job id as the portal writes it: `123[4]` for Slurm's `123_4`."""
    task = _SLURM_ARRAY_TASK.fullmatch(job)
    return f"{task[1]}[{task[2]}]" if task else job


def _pause_s(headers: Mapping[str, str]) -> float:
    text = headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdecimal() else _DEFAULT_PAUSE_S


def _object(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PortalError(
            "The answer is not JSON. Is IOPORTAL_URL the address of ioportal?"
        ) from error


def _error(status: int, headers: Mapping[str, str], body: bytes) -> PortalError:
    """Return the error of an answer: problem+json, errors of an export by parameter, or a page."""
    message = f"The portal answers {status} {_phrase(status)}."
    if location := headers.get("Location"):
        message = f"The portal redirects to {location}. Redirects are not followed."
    elif "json" in headers.get("Content-Type", ""):
        answer = _object(body)
        if isinstance(answer, dict) and isinstance(answer.get("errors"), dict):
            message = " ".join(
                f"{name}: {' '.join(texts)}" for name, texts in answer["errors"].items()
            )
        elif isinstance(answer, dict) and answer.get("detail"):
            message = f"{answer['detail']} {answer.get('remedy', '')}".strip()
    kind = Refused if status in _REFUSALS else Unavailable if status in _BUSY else PortalError
    return kind(message, status, _pause_s(headers))


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
