"""Reading of a folder of finished files, each once."""

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
from collectors.agent.reader import Reading, SourceMissing
from collectors.parsed import Parsed, SourceUnavailable
from collectors.source import Source
from collectors.tables import Table

DIGESTS_REMEMBERED = 10_000


class FolderReader:
    """Reads finished files (plain, gzip or zstd), oldest first.

    The checkpoint has the existing `files` that were read; the `digests` of their content, to
    recognise files that were renamed, compressed or restored; and the number of committed `parts`
    by digest for files that are not read to their end.

    Args:
        table: of the files' rows.
        pattern: of the files' paths.
        settled_s: a file is finished after this time without writes.
        parse: parses a file.
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

    def read(self, checkpoint: dict[str, Any]) -> Generator[Reading]:
        """Yield the content of newly finished files."""
        folder = safe_open.configured_folder(self._pattern)
        if not folder.is_dir():
            raise SourceMissing(f"{folder}: no such folder")
        finished = self._finished()
        checkpoint = {"files": [], "digests": [], "parts": {}, **checkpoint}
        checkpoint["files"] = [file for file in checkpoint["files"] if file in finished]
        unreadable = []
        for file, path in finished.items():
            if file in checkpoint["files"]:
                continue
            try:
                digest = self._digest(path)
            except SourceUnavailable as error:
                unreadable.append(str(error))
                continue
            for reading in self._read_file(path, digest, checkpoint):
                checkpoint = reading.checkpoint
                yield reading
            digests = [*(d for d in checkpoint["digests"] if d != digest), digest]
            checkpoint = {
                **checkpoint,
                "files": [*checkpoint["files"], file],
                "digests": digests[-DIGESTS_REMEMBERED:],
                "parts": {d: parts for d, parts in checkpoint["parts"].items() if d != digest},
            }
            yield Reading([], checkpoint)
        if unreadable:
            raise SourceUnavailable("; ".join(unreadable))

    def behind_bytes(self) -> int:
        """Return 0: all finished files are read."""
        return 0

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def advance(
        self,
        checkpoint: dict[str, Any],
        path: Path,  # noqa: ARG002  (used in traces)
        parsed: Parsed,  # noqa: ARG002
    ) -> tuple[dict[str, Any], list[Coverage]]:
        """Return the checkpoint after a part, and the coverage of the part."""
        return checkpoint, []

    def open(self, path: Path) -> Source:
        """Open a file of the folder; `SourceUnavailable` if it cannot or must not be read."""
        try:
            return Source(safe_open.open_matching(path, self._pattern), str(path))
        except OSError as error:
            raise SourceUnavailable(str(error)) from error

    def _read_file(self, path: Path, digest: str, checkpoint: dict[str, Any]) -> Iterator[Reading]:
        if digest in checkpoint["digests"]:
            return
        committed = checkpoint["parts"].get(digest, 0)
        parts = enumerate(self._parse(self.open(path)), 1)
        for number, parsed in islice(parts, committed, None):
            checkpoint, coverage = self.advance(checkpoint, path, parsed)
            checkpoint = {**checkpoint, "parts": {**checkpoint["parts"], digest: number}}
            yield Reading(list(batches(self._table, [parsed], coverage)), checkpoint)

    def _finished(self) -> dict[str, Path]:
        """Return the finished files by name, size and time, in order of their last write."""
        files = {}
        for name in glob(self._pattern):  # noqa: PTH207  (an absolute pattern)
            path = Path(name)
            with suppress(FileNotFoundError):
                status = path.lstat()
                is_settled = time.time() - status.st_mtime >= self._settled_s
                if is_settled and not stat.S_ISDIR(status.st_mode):
                    files[f"{name} {status.st_size} {status.st_mtime_ns}"] = path
        return dict(sorted(files.items(), key=lambda item: item[0].rsplit(" ", 1)[1]))

    def _digest(self, path: Path) -> str:
        """Return the digest of a file's decompressed content."""
        source = self.open(path)
        for _ in source.blocks():
            pass
        return source.digest
