"""Text to collect, from a file or a stream: plain, gzip or zstd, read once, in bounded chunks."""

import gzip
import hashlib
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import zstandard

from collectors.parsed import SourceUnavailable

CHUNK_BYTES = 32 * 1024 * 1024
LINE_BYTES = 1024 * 1024  # the rest of a longer line is dropped: no format has such lines

_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Chunk:
    """Whole lines; only the last line of a source may lack its newline."""

    first_line: int  # 1-based number of the first line of `text`
    text: bytes


class Source:
    """A named text that is read once.

    Args:
        stream: raw bytes; gzip and zstd are recognised by their first bytes, not by the name.
        name: what messages call it.
        chunk_bytes: about how much text one chunk holds.

    Raises (while reading):
        SourceUnavailable: the stream cannot be read or decompressed.
    """

    def __init__(self, stream: BinaryIO, name: str, chunk_bytes: int = CHUNK_BYTES) -> None:
        self.name = name
        self._chunk_bytes = chunk_bytes
        self._digest = hashlib.sha256()
        self._stream = _decompressed(stream, name)

    @classmethod
    def open(cls, path: Path, chunk_bytes: int = CHUNK_BYTES) -> Self:
        """Open a file; `SourceUnavailable` when it cannot be."""
        try:
            return cls(path.open("rb"), str(path), chunk_bytes)
        except OSError as error:
            raise SourceUnavailable(f"{path}: {error.strerror}") from error

    @property
    def digest(self) -> str:
        """SHA-256 of the decompressed text read so far, in hex."""
        return self._digest.hexdigest()

    def chunks(self) -> Iterator[Chunk]:
        """Yield the text in chunks of whole lines; an empty source yields nothing."""
        first_line = 1
        rest = b""
        while block := self._read(self._chunk_bytes):
            end = block.rfind(b"\n") + 1
            if end == 0:
                rest = (rest + block)[: LINE_BYTES + self._chunk_bytes]
                if len(rest) > LINE_BYTES:
                    rest = rest[:LINE_BYTES]
                continue
            text = rest + block[:end]
            rest = block[end:]
            yield Chunk(first_line, text)
            first_line += text.count(b"\n")
        if rest:
            yield Chunk(first_line, rest)

    def _read(self, size: int) -> bytes:
        try:
            block = self._stream.read(size)
        except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
            raise SourceUnavailable(f"{self.name}: cannot be read to its end: {error}") from error
        self._digest.update(block)
        return block


def _decompressed(stream: BinaryIO, name: str) -> BinaryIO:
    buffered = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)  # type: ignore[type-var]
    try:
        magic = buffered.peek(4)[:4]
    except OSError as error:
        raise SourceUnavailable(f"{name}: {error.strerror}") from error
    if magic.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=buffered)  # type: ignore[return-value]
    if magic == _ZSTD_MAGIC:
        return zstandard.ZstdDecompressor().stream_reader(buffered, read_across_frames=True)  # type: ignore[return-value]
    return buffered
