"""Source files and streams: plain, gzip or zstd, read once, in bounded chunks.

Texts are UTF-8. Windows tools begin them with a byte order mark, or write UTF-16: the mark is
dropped, at the start of any line because files may have been joined, and UTF-16 is converted.
"""

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self

import numpy as np
import zstandard
from blake3 import blake3

from collectors.parsed import SourceUnavailable

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

CHUNK_BYTES = 3 * 1024 * 1024
LINE_BYTES = 1024 * 1024  # longer lines are truncated; no line format has any
BLOCK_BYTES = 256 * 1024

_HEAD_BYTES = 256
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF_16_BYTES = 2
_UNREADABLE = (OSError, EOFError, zlib.error, zstandard.ZstdError)


@dataclass(frozen=True)
class Chunk:
    """Whole lines; only the last line of a source may lack its newline."""

    first_line: int  # 1-based number of the first line of `text`
    text: bytes


class Lines(Protocol):
    """A provider of lines."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield the content in chunks of whole lines."""
        ...


class Source:
    """A named stream that is read once.

    Args:
        stream: raw bytes; gzip and zstd are recognised by their first bytes, not by the name.
        name: for messages.
        chunk_bytes: approximate size of a chunk.
        most_bytes: size of the decompressed content above which it cannot be read; None: any size.

    Raises (on construction and while reading):
        SourceUnavailable: the stream cannot be read or decompressed to its end.
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        chunk_bytes: int = CHUNK_BYTES,
        most_bytes: int | None = None,
    ) -> None:
        self.name = name
        self._bytes_left = most_bytes
        self._chunk_bytes = chunk_bytes
        self._digest = blake3()
        try:
            self._stream = _decoded(_decompressed(stream))
        except _UNREADABLE as error:
            raise self._unavailable(error) from error

    @classmethod
    def open(cls, path: Path, chunk_bytes: int = CHUNK_BYTES) -> Self:
        """Open a file; raise `SourceUnavailable` if that fails."""
        try:
            stream = path.open("rb")
        except (OSError, ValueError) as error:  # ValueError: a NUL in the name
            raise SourceUnavailable(f"{path}: cannot be opened: {error}") from error
        return cls(stream, str(path), chunk_bytes)

    @property
    def digest(self) -> str:
        """BLAKE3 of the decompressed and decoded content read so far, in hex."""
        return self._digest.hexdigest()

    @property
    def head(self) -> bytes:
        """The first bytes of the content, before any read; b"" if it is empty."""
        try:
            return self._stream.peek(_HEAD_BYTES)  # type: ignore[attr-defined,no-any-return]  # all have it
        except _UNREADABLE as error:
            raise self._unavailable(error) from error

    def chunks(self) -> Iterator[Chunk]:
        """Yield the content in chunks of whole lines; an empty source yields nothing.

        Chunks depend on the content only, not on the portions in which the stream returns it. See
        `clean_lines` for long lines and byte order marks.
        """
        first_line = 1
        with ThreadPoolExecutor(1) as reader:
            text = self._next_text()
            while text:
                following = reader.submit(self._next_text)  # while `text` is parsed
                yield Chunk(first_line, text)
                first_line += newlines(text)
                text = following.result()

    def blocks(self) -> Iterator[bytes]:
        """Yield the content in blocks split at any byte, for formats without lines."""
        while block := self._read(self._stream.read, BLOCK_BYTES):
            yield block

    def _next_text(self) -> bytes:
        """Read about one chunk, to the end of a line; b"" at the end of the source."""
        text = self._read(self._stream.read, self._chunk_bytes)
        if text and not text.endswith(b"\n"):
            text += self._rest_of_line()
        return clean_lines(text)

    def _rest_of_line(self) -> bytes:
        head = part = self._read(self._stream.readline, LINE_BYTES)
        while part and not part.endswith(b"\n"):
            part = self._read(self._stream.readline, LINE_BYTES)
        return head if head.endswith(b"\n") or not part else head + b"\n"

    def _read(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            text = read(size)
        except _UNREADABLE as error:
            raise self._unavailable(error) from error
        self._digest.update(text)
        if self._bytes_left is not None:
            self._bytes_left -= len(text)
            if self._bytes_left < 0:
                raise SourceUnavailable(f"{self.name}: its content is larger than permitted")
        return text

    def _unavailable(self, error: Exception) -> SourceUnavailable:
        return SourceUnavailable(f"{self.name}: cannot be read to its end: {error}")


class _FullReads(io.RawIOBase):
    """A stream whose reads return the requested size even if it is a pipe with short reads."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        target = memoryview(buffer).cast("B")
        filled = 0
        while filled < len(target) and (
            size := self._stream.readinto(target[filled:])  # type: ignore[attr-defined]  # all have it
        ):
            filled += size
        return filled


class _Converted(io.RawIOBase):
    """The content of a stream, converted part by part."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._text = memoryview(b"")  # converted, not consumed yet

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        while not self._text and (part := self._next_part()) is not None:
            self._text = memoryview(part)
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._text))
        target[:size] = self._text[:size]
        self._text = self._text[size:]
        return size

    def _next_part(self) -> bytes | None:
        """Convert the next part, which may be empty; None at the end."""
        raise NotImplementedError


class _ZstdText(_Converted):
    """The content of zstd frames.

    `zstandard`'s own reader does not report a stream that is truncated inside a frame.
    """

    # A zstd block can expand 32,768-fold: small input bounds the output.
    _INPUT_BYTES = 512

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(stream)
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._compressed = b""  # not decompressed yet

    def _next_part(self) -> bytes | None:
        if not self._fill():
            return None
        text = self._frame.decompress(self._compressed)
        self._compressed = self._frame.unused_data
        return text

    def _fill(self) -> bool:
        """Provide a frame and input for it; False at the end of the last frame."""
        self._compressed = self._compressed or self._stream.read(self._INPUT_BYTES)
        if not self._compressed and not self._frame.eof:
            raise EOFError("the zstd stream ends inside a frame")
        if self._compressed and self._frame.eof:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        return bool(self._compressed)


class _Utf8Text(_Converted):
    """The content of a UTF-16 stream as UTF-8; invalid parts become U+FFFD."""

    def __init__(self, stream: BinaryIO, encoding: str) -> None:
        super().__init__(stream)
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._ended = False

    def _next_part(self) -> bytes | None:
        if self._ended:
            return None
        block = self._stream.read(BLOCK_BYTES)
        self._ended = not block
        return self._decoder.decode(block, final=self._ended).encode()


def utf_16(head: bytes) -> str:
    """Return the encoding of a UTF-16 text that begins with `head`; "" for other texts."""
    return _UTF_16.get(head[:_UTF_16_BYTES], "")


def _decoded(stream: BinaryIO) -> BinaryIO:
    """Return a stream of UTF-8 without a byte order mark at its start."""
    encoding = utf_16(stream.peek(_UTF_16_BYTES))  # type: ignore[attr-defined]  # all have it
    if encoding:
        stream = io.BufferedReader(_Utf8Text(stream, encoding))
    if stream.peek(len(codecs.BOM_UTF8)).startswith(codecs.BOM_UTF8):  # type: ignore[attr-defined]
        stream.read(len(codecs.BOM_UTF8))
    return stream


def _decompressed(stream: BinaryIO) -> BinaryIO:
    buffered = io.BufferedReader(_FullReads(stream))
    magic = buffered.peek(len(_ZSTD_MAGIC))
    if magic.startswith(_GZIP_MAGIC):
        return gzip.GzipFile(fileobj=buffered)  # type: ignore[return-value]  # a BinaryIO in all we use
    if magic.startswith(_ZSTD_MAGIC):
        return io.BufferedReader(_ZstdText(buffered))
    return buffered


def newlines(text: bytes) -> int:
    """Count newlines, several times faster than `bytes.count`."""
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == ord("\n")))


def clean_lines(text: bytes) -> bytes:
    """Truncate lines at `LINE_BYTES`, and drop byte order marks at their starts.

    Every newline is kept. `text` begins at the start of a line.
    """
    if codecs.BOM_UTF8 in text:
        text = text.removeprefix(codecs.BOM_UTF8).replace(b"\n" + codecs.BOM_UTF8, b"\n")
    return _cut_long_lines(text)


def _cut_long_lines(text: bytes) -> bytes:
    parts = []
    part = line = 0  # offsets of the next part to keep and of the current line
    while len(text) - line > LINE_BYTES:
        newline = text.rfind(b"\n", line, line + LINE_BYTES + 1)  # skips many short lines
        if newline < 0:
            parts.append(text[part : line + LINE_BYTES])
            newline = text.find(b"\n", line + LINE_BYTES)
            part = newline = newline if newline >= 0 else len(text)
        line = newline + 1
    return b"".join([*parts, text[part:]]) if parts else text


def cleaned(text: bytes) -> bytes:
    """Return a text with U+FFFD in place of NUL and of invalid UTF-8."""
    if text.isascii() and b"\0" not in text:
        return text
    return text.decode(errors="replace").replace("\0", "\ufffd").encode()
