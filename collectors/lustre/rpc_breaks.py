"""RPC traces with line breaks in job ids: users set job ids by an environment variable.

The record of such an RPC spans several lines. No job id is long enough for the fixed text that
shows where a record begins and ends.

Source: docs/formats.md, "RPC trace".
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import replace

from collectors.lustre.rpc_exact import HANDLED
from collectors.lustre.rpc_records import JOB_CHARACTERS
from collectors.source import Chunk, newlines

_HANDLED = HANDLED.encode()
LABEL = b"pname:cluuid+ref:pid:xid:nid:opc"  # longer than a job id, like the tail
_TAIL = re.compile(rb"Request process?ed in -?[0-9]+us \(-?[0-9]+us total\)")


def end_of_record(text: bytes, start: int, end: int) -> int:
    """Return the end of the record that begins in a line: the end of this or of a later line.

    Args:
        text: whole lines.
        start: start of the line.
        end: its end, without the newline.
    """
    if (
        _TAIL.search(text, start, end)
        or (label := text.find(LABEL, start, end)) < 0
        or text.find(_HANDLED, start, label) < 0
    ):
        return end
    following = text.find(LABEL, end)
    until = len(text) if following < 0 else text.rfind(b"\n", end, following)
    tail = _TAIL.search(text, end, until)
    if tail is None or text.count(b"\n", end, tail.start()) > JOB_CHARACTERS:
        return end  # a record without a timing tail
    newline = text.find(b"\n", tail.end())
    return len(text) if newline < 0 else newline


def in_one_line(record: bytes) -> bytes:
    """Return a record with "?" in place of line breaks."""
    return record.replace(b"\r\n", b"?").replace(b"\n", b"?")


def whole_records(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield chunks whose last record does not continue in the next chunk.

    The record is completed in the chunk where it begins, in one line and with empty lines after it:
    all lines keep their numbers. Its other lines remain, without a claim to be an RPC.
    """
    ahead: deque[Chunk] = deque()
    while chunk := ahead.popleft() if ahead else next(chunks, None):
        start = _unfinished(chunk.text)
        if start is not None:
            while sum(newlines(later.text) for later in ahead) <= JOB_CHARACTERS and (
                later := next(chunks, None)
            ):
                ahead.append(later)
            chunk = _completed(chunk, start, ahead)
        yield chunk


def _unfinished(text: bytes) -> int | None:
    """Return the start of the last record if it has no timing tail, else None."""
    label = text.rfind(LABEL)
    if label < 0 or _TAIL.search(text, label):
        return None
    start = text.rfind(b"\n", 0, label) + 1
    return start if text.find(_HANDLED, start, label) >= 0 else None


def _completed(chunk: Chunk, start: int, ahead: deque[Chunk]) -> Chunk:
    """Return a chunk with the rest of the record at `start`, taken from the chunks ahead."""
    kept = chunk.text[start:]
    record = b"".join([kept, *(later.text for later in ahead)])
    end = end_of_record(record, 0, len(kept.partition(b"\n")[0]))
    rest = end - len(kept)
    if rest <= 0:
        return chunk
    for number, later in enumerate(ahead):
        part, other = later.text[: max(rest, 0)], later.text[max(rest, 0) :]
        ahead[number] = replace(later, text=part.replace(_HANDLED, b"?") + other)
        rest -= len(part)
    text = chunk.text[:start] + in_one_line(record[:end]) + b"\n" * newlines(kept)
    return replace(chunk, text=text)
