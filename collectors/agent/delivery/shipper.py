"""Delivers batches to the portal, each until it has an answer."""

import json
import random
import socket
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import httpx

import collectors
from collectors.agent import logs, safe_open
from collectors.agent.delivery.batches import ROWS_TYPE, decoded
from collectors.agent.delivery.spool import Spool
from collectors.agent.health import Health

PATH = "/api/v1/ingest/batches"
TIMEOUT = httpx.Timeout(60, connect=10)
SHORTEST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 120.0
IDLE_S = 0.5
# The portal will never have these: another content under the same key, too large, of an unknown
# type, not as the table wants it.
REFUSED = frozenset(
    {
        HTTPStatus.CONFLICT,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
    }
)

_LOG = logs.of(__name__)
_SHOWN_CHARACTERS = 500


class Shipper:
    """Delivers what one source's spool has.

    Args:
        spool: where its batches are.
        client: knows the portal's address and certificate.
        token_file: read for every delivery, so that a token can be mended while batches wait.
        health: what is known of the source.
    """

    def __init__(
        self,
        spool: Spool,
        client: httpx.Client,
        token_file: Path,
        health: Health,
    ) -> None:
        self._spool = spool
        self._client = client
        self._token_file = token_file
        self._agent = {"version": collectors.VERSION, "host": socket.getfqdn()}
        self._health = health
        self._failures = 0

    def step(self) -> float:
        """Deliver the oldest batch, or try to; return how many seconds to wait before the next."""
        batch = self._spool.oldest()
        if batch is None:
            return IDLE_S
        try:
            answer = self._post(batch)
        except (httpx.HTTPError, OSError) as error:
            return self._failed(f"{type(error).__name__}: {error}")
        if answer.status_code == HTTPStatus.ACCEPTED:
            self._delivered(batch)
            return 0
        reason = f"{answer.status_code} {answer.text[:_SHOWN_CHARACTERS]}"
        if answer.status_code in REFUSED:
            self._spool.refuse(batch)
            _LOG.error("batch_refused", source=self._health.name, batch=batch.name, answer=reason)
            return 0
        return self._failed(reason, answer.headers.get("Retry-After", ""))

    def _post(self, batch: Path) -> httpx.Response:
        description, rows = decoded(batch.read_bytes())
        depth = self._spool.depth()
        told = {
            **description,
            "sent_at": datetime.now(UTC).isoformat(),
            "spool": {
                "batches": depth.batches,
                "bytes": depth.bytes,
                "oldest_at": depth.oldest_at and depth.oldest_at.isoformat(),
            },
            "agent": self._agent,
        }
        return self._client.post(
            PATH,
            headers={
                "Authorization": f"Token {safe_open.read_secret(self._token_file)}",
                "Idempotency-Key": f"{description['stream']}/{description['sequence']}",
            },
            files={
                "batch": ("batch.json", json.dumps(told), "application/json"),
                "rows": ("rows.arrow", rows, ROWS_TYPE),
            },
        )

    def _delivered(self, batch: Path) -> None:
        self._spool.delivered(batch)
        self._failures = 0
        self._health.delivered += 1
        self._health.delivered_at = datetime.now(UTC)
        self._health.well("delivery")

    def _failed(self, reason: str, retry_after: str = "") -> float:
        """Return a pause that grows, with chance in it so that agents do not come all at once."""
        self._health.trouble("delivery", reason)
        longest = min(LONGEST_PAUSE_S, SHORTEST_PAUSE_S * 2**self._failures)
        self._failures = min(self._failures + 1, 30)
        pause_s = random.uniform(longest / 2, longest)  # noqa: S311  (no secret)
        if retry_after.isdecimal():
            pause_s += min(int(retry_after), LONGEST_PAUSE_S)
        return pause_s
