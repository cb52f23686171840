import codecs
import gzip
import io
import os
import tracemalloc

import pytest
import zstandard
from blake3 import blake3
from hypothesis import assume, given
from hypothesis import strategies as st

from collectors import source as source_module
from collectors.parsed import SourceUnavailable
from collectors.source import Source

TEXT = b"".join(b"line %d of the log\n" % n for n in range(5_000))


class ShortReads(io.BytesIO):
    """A pipe that returns a few bytes per read."""

    def readinto(self, buffer):
        return super().readinto(memoryview(buffer)[:7])


def zstd(text):
    return zstandard.ZstdCompressor().compress(text)


def read(stream, chunk_bytes=1_000):
    return list(Source(stream, "a log", chunk_bytes).chunks())


def joined(chunks):
    return b"".join(chunk.text for chunk in chunks)


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(TEXT, id="plain"),
        pytest.param(gzip.compress(TEXT), id="gzip"),
        pytest.param(gzip.compress(TEXT[:777]) + gzip.compress(TEXT[777:]), id="gzip members"),
        pytest.param(zstd(TEXT), id="zstd"),
        pytest.param(zstd(TEXT[:777]) + zstd(TEXT[777:]), id="zstd frames"),
    ],
)
@pytest.mark.parametrize("stream", [io.BytesIO, ShortReads])
def test_chunks_and_digest_depend_on_the_content_only(packed, stream):
    source = Source(stream(packed), "a log", chunk_bytes=1_000)

    chunks = list(source.chunks())

    assert joined(chunks) == TEXT
    assert chunks == read(io.BytesIO(TEXT))
    assert source.digest == blake3(TEXT).hexdigest()


@given(text=st.binary(max_size=300), chunk_bytes=st.integers(1, 50))
def test_chunks_are_whole_lines_with_their_numbers(text, chunk_bytes):
    assume(codecs.BOM_UTF8 not in text)
    chunks = read(io.BytesIO(b"--" + text), chunk_bytes)  # "--" prevents an accidental magic number

    assert joined(chunks) == b"--" + text
    assert all(chunk.text.endswith(b"\n") for chunk in chunks[:-1])
    lines_before = 1
    for chunk in chunks:
        assert chunk.first_line == lines_before
        lines_before += chunk.text.count(b"\n")


@pytest.mark.parametrize(
    "empty", [b"", gzip.compress(b""), zstd(b"")], ids=["plain", "gzip", "zstd"]
)
def test_an_empty_source_yields_nothing(empty):
    source = Source(io.BytesIO(empty), "a log")

    assert list(source.chunks()) == []
    assert source.digest == blake3(b"").hexdigest()


@pytest.mark.parametrize("packed", [gzip.compress(TEXT), zstd(TEXT)], ids=["gzip", "zstd"])
@pytest.mark.parametrize("size", [5, 100, -1])
def test_a_truncated_archive_is_unavailable(packed, size):
    with pytest.raises(SourceUnavailable, match="a log: cannot be read to its end"):
        read(io.BytesIO(packed[:size]))


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_a_damaged_archive_is_unavailable(pack):
    noise = os.urandom(4_000)  # incompressible
    packed = bytearray(pack(noise + TEXT))
    packed[500:2_000] = bytes(1_500)

    with pytest.raises(SourceUnavailable):
        read(io.BytesIO(packed[:3_000]))


@pytest.mark.parametrize("packed", [gzip.compress(TEXT), zstd(TEXT)], ids=["gzip", "zstd"])
def test_an_archive_with_trailing_garbage_is_unavailable(packed):
    with pytest.raises(SourceUnavailable):
        read(io.BytesIO(packed + b"garbage"))


def test_paths_that_cannot_be_opened_are_unavailable(tmp_path):
    for path in (tmp_path / "missing.log", tmp_path, tmp_path / "nul\0.log"):
        with pytest.raises(SourceUnavailable):
            Source.open(path)


def test_compression_is_recognised_by_content(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(zstd(TEXT))

    assert joined(Source.open(path).chunks()) == TEXT


@given(
    lines=st.lists(st.integers(0, 350), max_size=12),
    chunk_bytes=st.integers(1, 500),
    no_final_newline=st.booleans(),
)
def test_a_long_line_is_truncated(lines, chunk_bytes, no_final_newline):
    text = b"".join(b"x" * length + b"\n" for length in lines)
    truncated = b"".join(b"x" * min(length, 100) + b"\n" for length in lines)
    if no_final_newline:
        text, truncated = text.removesuffix(b"\n"), truncated.removesuffix(b"\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_module, "LINE_BYTES", 100)

        assert joined(read(io.BytesIO(text), chunk_bytes)) == truncated


def test_one_endless_line_takes_bounded_memory():
    class Endless(io.RawIOBase):
        left = 200_000_000

        def readinto(self, buffer):
            size = min(len(buffer), self.left)
            self.left -= size
            buffer[:size] = b"x" * size
            return size

    tracemalloc.start()
    (chunk,) = read(Endless(), chunk_bytes=1_000_000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(chunk.text) == source_module.LINE_BYTES
    assert peak_bytes < 10_000_000


def test_a_decompression_bomb_takes_bounded_memory():
    bomb = zstd(bytes(300_000_000))

    tracemalloc.start()
    read(io.BytesIO(bomb), chunk_bytes=1_000_000)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(bomb) < 30_000
    assert peak_bytes < 100_000_000


MARKED = "JobID|Name\n1|é 😀\n"
MARK = codecs.BOM_UTF8


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd], ids=["plain", "gzip", "zstd"])
@pytest.mark.parametrize("stream", [io.BytesIO, ShortReads])
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(MARK + MARKED.encode(), id="UTF-8"),
        pytest.param(codecs.BOM_UTF16_LE + MARKED.encode("utf-16-le"), id="little endian"),
        pytest.param(codecs.BOM_UTF16_BE + MARKED.encode("utf-16-be"), id="big endian"),
    ],
)
def test_a_byte_order_mark_or_utf_16_does_not_change_the_content(text, stream, pack):
    source = Source(stream(pack(text)), "a log", chunk_bytes=5)

    assert source.head.startswith(b"JobID")
    assert joined(source.chunks()) == MARKED.encode()
    assert source.digest == blake3(MARKED.encode()).hexdigest()


def test_joined_files_may_each_begin_with_a_byte_order_mark():
    text = MARKED.encode()

    assert joined(read(io.BytesIO((MARK + text) * 2), chunk_bytes=3)) == text * 2


def test_utf_16_that_is_cut_inside_a_character_is_read_to_its_end():
    text = codecs.BOM_UTF16_LE + "a\nb".encode("utf-16-le") + b"c"

    assert joined(read(io.BytesIO(text))) == "a\nb\ufffd".encode()
