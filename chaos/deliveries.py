"""Repeated batches in any order: copies of the agents' spools, delivered separately."""

from __future__ import annotations

import json
import queue
import threading
from contextlib import suppress
from http import HTTPStatus
from time import sleep
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

    from chaos.installation import Installation

_PATH = "/api/v1/ingest/batches"
_ROWS_TYPE = "application/vnd.apache.arrow.stream"
_TIMEOUT_S = 5.0
_RETRY_S = 0.3
# Permanent refusals of a batch by the portal.
_REFUSED = {
    HTTPStatus.CONFLICT,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
}


class Copies:
    """Copies of batches in the agents' spools."""

    def __init__(self, site: Installation) -> None:
        self._site = site
        self._folder = site.folder / "copies"
        self._folder.mkdir()
        self._taken: dict[Path, str] = {}  # copies and their sources
        self._to_send: queue.SimpleQueue[tuple[str, Path]] = queue.SimpleQueue()
        self._queued = self._sent = 0
        self.refused: list[str] = []
        threading.Thread(target=self._deliver, daemon=True).start()

    @property
    def sent(self) -> int:
        """Number of accepted deliveries."""
        return self._sent

    @property
    def is_idle(self) -> bool:
        """Whether all requested deliveries were accepted or refused."""
        return self._sent + len(self.refused) == self._queued

    def take(self) -> None:
        """Copy the batches that the agent's state lists: other batches may still change."""
        for source, spool in self._site.spools.items():
            with suppress(FileNotFoundError):
                following = json.loads((spool / "state.json").read_text())["sequence"]
                for batch in (spool / "batches").glob("[0-9]*.batch"):
                    copy = self._folder / f"{source}-{batch.name}"
                    if int(batch.stem) < following and copy not in self._taken:
                        with suppress(FileNotFoundError):  # delivered just now
                            copy.hardlink_to(batch)
                            self._taken[copy] = source

    def deliver(self, random: Random) -> None:
        """Deliver some copies again, in any order, a few of them several times."""
        some = random.sample([*self._taken.items()], k=(len(self._taken) + 1) // 2)
        for copy, source in (*some, *some[: len(some) // 4]):
            self._queued += 1
            self._to_send.put((source, copy))

    def clear(self) -> None:
        """Drop all copies; no delivery is pending."""
        for copy in self._taken:
            copy.unlink()
        self._taken.clear()

    def _deliver(self) -> None:
        with httpx.Client(base_url=self._site.url, timeout=_TIMEOUT_S, trust_env=False) as client:
            while True:
                source, copy = self._to_send.get()
                while (status := self._answer(client, source, copy)) != HTTPStatus.ACCEPTED:
                    if status in _REFUSED:
                        self.refused.append(f"{copy.name}: {status}")
                        break
                    sleep(_RETRY_S)
                else:
                    self._sent += 1

    def _answer(self, client: httpx.Client, source: str, copy: Path) -> int:
        batch, _, rows = copy.read_bytes().partition(b"\n")
        manifest = json.loads(batch)
        try:
            return client.post(
                _PATH,
                headers={
                    "Authorization": f"Token {self._token(source)}",
                    "Idempotency-Key": f"{manifest['stream']}/{manifest['sequence']}",
                },
                files={
                    "batch": ("batch.json", batch, "application/json"),
                    "rows": ("rows.arrow", rows, _ROWS_TYPE),
                },
            ).status_code
        except httpx.HTTPError:
            return 0

    def _token(self, source: str) -> str:
        return (self._site.tokens / f"{source}.token").read_text().strip()
