"""Delivery of batches to the portal, with retries."""

import json
import random
import socket
import time
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import httpx

import collectors
from collectors.agent import logs, safe_open
from collectors.agent.delivery.batches import ROWS_TYPE, decoded, parted
from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health

PATH = "/api/v1/ingest/batches"
TIMEOUT = httpx.Timeout(60, connect=10)
SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 120.0
IDLE_S = 0.5
# Refused batches are tried again at this interval, if the portal says that its cause may be fixed.
RETRY_REFUSED_S = 300.0
# Other content under the same key, too large, unknown type, invalid rows, or a conflict.
REFUSED = frozenset(
    {
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)

_LOG = logs.Log(__name__)
_SHOWN_CHARACTERS = 500


class Shipper:
    """Delivers the batches of one source.

    Args:
        spool: the source's batches.
        client: HTTP client with the portal's address and certificate.
        token_file: read for each delivery, so that a token can be replaced without a restart.
        health: of the source.
        instance: the identity of the agent.
    """

    def __init__(
        self,
        spool: Spool,
        client: httpx.Client,
        token_file: Path,
        health: Health,
        instance: str,
    ) -> None:
        self._spool = spool
        self._client = client
        self._token_file = token_file
        self._agent = {
            "version": collectors.VERSION,
            "host": socket.getfqdn(),
            "instance": instance,
        }
        self._health = health
        self._failures = 0
        # After a start all refused batches are tried once: the cause may have been fixed.
        self._retry_at = time.monotonic()
        self._retried = ""  # name of the batch that was tried last
        self._permanent: set[str] = set()  # names of refused batches that no retry can help

    def step(self) -> float:
        """Try to deliver the oldest batch; return the seconds to wait before the next one."""
        refused = self._refused_due()
        batch = refused or self._spool.oldest()
        if batch is None:
            return IDLE_S
        try:
            response = self._post(batch)
        except (httpx.HTTPError, OSError) as error:
            return self._failed(f"{type(error).__name__}: {error}")
        if response.status_code == HTTPStatus.ACCEPTED:
            self._delivered(batch)
            if refused:
                _LOG.info("refused_batch_accepted", source=self._health.name, batch=batch.name)
            return 0
        reason = f"{response.status_code} {response.text[:_SHOWN_CHARACTERS]}"
        if response.status_code in REFUSED:
            if not refused:
                self._spool.refuse(batch)
                _LOG.error(
                    "batch_refused", source=self._health.name, batch=batch.name, reason=reason
                )
            if not _may_be_resolved(response):
                self._permanent.add(batch.name)
            self._retry_at = time.monotonic() + RETRY_REFUSED_S
            return 0
        return self._failed(reason, response.headers.get("Retry-After", ""))

    def _refused_due(self) -> Path | None:
        """Return the refused batch to try again now, in turn; None: none is due."""
        if time.monotonic() < self._retry_at:
            return None
        batches = [b for b in self._spool.refused() if b.name not in self._permanent]
        if not batches:
            self._retry_at = time.monotonic() + RETRY_REFUSED_S
            return None
        batch = next((b for b in batches if b.name > self._retried), batches[0])
        self._retried = batch.name
        return batch

    def _post(self, batch: Path) -> httpx.Response:
        description, content = decoded(batch.read_bytes())
        rows, seconds = parted(description, content)
        depth = self._spool.depth()
        envelope = {
            **description,
            "sent_at": datetime.now(UTC).isoformat(),
            "spool": {
                "batches": depth.batches,
                "bytes": depth.bytes,
                "oldest_at": depth.oldest_at and depth.oldest_at.isoformat(),
                "refused": depth.refused,
            },
            "agent": self._agent,
        }
        files: dict[str, tuple[str, str | bytes, str]] = {
            "batch": ("batch.json", json.dumps(envelope), "application/json"),
            "rows": ("rows.arrow", rows, ROWS_TYPE),
        }
        if seconds:
            files["seconds"] = ("seconds.arrow", seconds, ROWS_TYPE)
        return self._client.post(
            PATH,
            headers={
                "Authorization": f"Token {safe_open.read_secret(self._token_file)}",
                "Idempotency-Key": f"{description['stream']}/{description['sequence']}",
            },
            files=files,
        )

    def _delivered(self, batch: Path) -> None:
        self._spool.delivered(batch)
        self._failures = 0
        self._health.delivered += 1
        self._health.delivered_at = datetime.now(UTC)
        self._health.working("delivery")

    def _failed(self, reason: str, retry_after: str = "") -> float:
        """Record the failure; return an exponential pause with jitter."""
        self._health.failing("delivery", reason)
        longest = min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2**self._failures)
        self._failures = min(self._failures + 1, 30)
        pause_s = random.uniform(longest / 2, longest)  # noqa: S311  (no secret)
        if retry_after.isdecimal():
            pause_s += min(int(retry_after), LONGEST_PAUSE_S)
        return pause_s


def _may_be_resolved(response: httpx.Response) -> bool:
    """Return whether the portal says that the batch may be accepted later."""
    try:
        answer = response.json()
    except ValueError:
        return False
    return isinstance(answer, dict) and answer.get("retry") is True
