"""Reads a folder of finished files, each once."""

import stat
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

from collectors.agent import safe_open
from collectors.agent.delivery.batches import Coverage, batches
from collectors.agent.reader import NotThereYet, Reading
from collectors.parsed import Parsed, SourceUnavailable
from collectors.source import Source
from collectors.tables import Table

TEXTS_REMEMBERED = 10_000


class FolderReader:
    """Reads finished files: plain, gzip or zstd, the oldest first.

    The place keeps which `files` were read, while they are there; which `texts`, so that a file
    that was renamed, compressed or brought back is known again; and how many `parts` are kept of a
    text that is not read to its end.

    Args:
        table: what the files become.
        pattern: of the files' paths.
        settled_s: a file that was not written to for so long is finished.
        parse: reads a file.
    """

    def __init__(
        self,
        table: Table,
        pattern: str,
        settled_s: float,
        parse: Callable[[Source], Iterator[Parsed]],
    ) -> None:
        self._table = table
        self._pattern = pattern
        self._settled_s = settled_s
        self._parse = parse

    def read(self, place: dict[str, Any]) -> Generator[Reading]:
        """Yield what the files say that were finished since."""
        folder = safe_open.configured_folder(self._pattern)
        if not folder.is_dir():
            raise NotThereYet(f"{folder}: no such folder")
        there = self._finished()
        place = {"files": [], "texts": [], "parts": {}, **place}
        place["files"] = [file for file in place["files"] if file in there]
        unreadable = []
        for file, path in there.items():
            if file in place["files"]:
                continue
            try:
                text = self._digest(path)
            except SourceUnavailable as error:
                unreadable.append(str(error))
                continue
            for reading in self._read_file(path, text, place):
                place = reading.place
                yield reading
            texts = [*(known for known in place["texts"] if known != text), text]
            place = {
                **place,
                "files": [*place["files"], file],
                "texts": texts[-TEXTS_REMEMBERED:],
                "parts": {t: parts for t, parts in place["parts"].items() if t != text},
            }
            yield Reading([], place)
        if unreadable:
            raise SourceUnavailable("; ".join(unreadable))

    def behind_bytes(self) -> int:
        """Return 0: all finished files are read."""
        return 0

    def close(self) -> None:
        """Do nothing: nothing stays open."""

    def keep(
        self,
        place: dict[str, Any],
        path: Path,  # noqa: ARG002  (see traces)
        parsed: Parsed,  # noqa: ARG002
    ) -> tuple[dict[str, Any], list[Coverage]]:
        """Return the place after a part, and what the part covers."""
        return place, []

    def open(self, path: Path) -> Source:
        """Open a file of the folder; `SourceUnavailable` when it cannot or must not be read."""
        try:
            return Source(safe_open.open_found(path, self._pattern), str(path))
        except OSError as error:
            raise SourceUnavailable(str(error)) from error

    def _read_file(self, path: Path, text: str, place: dict[str, Any]) -> Iterator[Reading]:
        if text in place["texts"]:
            return
        kept = place["parts"].get(text, 0)
        parts = enumerate(self._parse(self.open(path)), 1)
        for number, parsed in islice(parts, kept, None):
            place, coverage = self.keep(place, path, parsed)
            place = {**place, "parts": {**place["parts"], text: number}}
            yield Reading(list(batches(self._table, [parsed], coverage)), place)

    def _finished(self) -> dict[str, Path]:
        """Return the finished files, by what changes when they do, in the order of writing."""
        found = {}
        for name in glob(self._pattern):  # noqa: PTH207  (an absolute pattern)
            path = Path(name)
            with suppress(FileNotFoundError):
                status = path.lstat()
                is_settled = time.time() - status.st_mtime >= self._settled_s
                if is_settled and not stat.S_ISDIR(status.st_mode):
                    found[f"{name} {status.st_size} {status.st_mtime_ns}"] = path
        return dict(sorted(found.items(), key=lambda item: item[0].rsplit(" ", 1)[1]))

    def _digest(self, path: Path) -> str:
        """Read a file to its end; return the digest of its text."""
        source = self.open(path)
        for _ in source.blocks():
            pass
        return source.digest
