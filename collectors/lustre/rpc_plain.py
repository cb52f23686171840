"""The fast path of RPC traces: plain lines, whose fields are found by their colons.

A plain line has the fields of its version, in usual sizes, and a timing tail; its NID is no IPv6
address. What is taken from it is what `rpc_exact` reads in it; a line that is odd in any way is
left to that.

Source: docs/formats.md, "RPC trace".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from collectors.lustre import rpc_records
from collectors.lustre.rpc_records import NAMES, NUMBERS, Records
from collectors.words import (
    WORD_BYTES,
    Bools,
    Places,
    Sizes,
    Text,
    Words,
    before,
    before_number,
    mixed,
    number,
    strings,
)

BLOCK_BYTES = 2 * 1024 * 1024  # what is worked on stays in the processor's cache
REACH_BYTES = 128  # words are read a little beyond a line: the last line of a text is never plain

# The longest plain strings.
_NID_WORDS, _SERVICE_WORDS, _JOB_WORDS, _XID_WORDS = 3, 2, 4, 2

# Fixed text, in the order of a line. With a job id the call has a pointer behind it.
_CALL = b"()) Handled RPC "
_CALL_WITH_POINTER, _POINTER_BYTES = _CALL + b"req@", 16
_LABEL = _CALL + b"pname:cluuid+ref:pid:xid:nid:opc "
_LABEL_WITH_JOB = b" pname:cluuid+ref:pid:xid:nid:opc:job "
_BEFORE_XID, _BEFORE_NID = b":x", b":12345-"
_ARRIVED, _TOTAL = b"us (", b"us total) trans "

# Fields of plain lines: those of `rpc_records.NUMBERS` and `NAMES`, arrays of one length.
Fields: TypeAlias = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class _Shape:
    """How the plain lines of a version look; colons are counted from 0."""

    has_job: bool
    asked: bytes  # what the timing tail begins with

    @property
    def label(self) -> bytes:
        """Return the names of the fields, with colon 9, up to the thread's name."""
        return _LABEL_WITH_JOB if self.has_job else _LABEL

    @property
    def after_thread(self) -> int:
        """Return which colon is behind the thread's name; the opcode is behind the fourth next."""
        return 15 if self.has_job else 14

    @property
    def colons(self) -> int:
        """Return how many colons a line has at least."""
        return 21 if self.has_job else 19


def read_plain(text: bytes, first_line: int) -> tuple[Places, list[Fields]]:
    """Read the plain lines of a text (UTF-8, no NUL), whose first line has the given number.

    Returns:
        Where all newlines are; the fields of the plain lines, block by block, for `records_of`.
    """
    shape = _shape_of(text)
    newlines = []
    blocks = []
    line = first_line
    for start, end in _blocks(text):
        lines = _Lines(memoryview(text)[start : end + REACH_BYTES], end - start, shape)
        fields = lines.fields()
        fields["line"] += line
        line += len(lines.ends)
        newlines.append(lines.ends + start)
        blocks.append(fields)
    return np.concatenate(newlines), blocks


def records_of(blocks: list[Fields]) -> Records:
    """Put together what `read_plain` found; there is at least one block."""
    fields = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    numbers = pl.DataFrame({name: fields[name] for name in NUMBERS})
    is_named = numbers["group"].is_first_distinct().to_numpy()
    names = pl.DataFrame(
        {
            name: pl.Series(fields[name][is_named].tolist(), dtype=pl.Binary)
            if dtype == pl.String
            else fields[name][is_named]
            for name, dtype in NAMES.items()
        }
    )
    return Records(numbers.cast(NUMBERS), names.cast(NAMES))


def _shape_of(text: bytes) -> _Shape:
    """Return the shape of the first handled RPC in a text."""
    call = text.find(_CALL) + len(_CALL)
    spelt = b"procesed" if b"procesed" in text[call : text.find(b"\n", call)] else b"processed"
    return _Shape(text.startswith(b"req@", call), b" Request " + spelt + b" in ")


def _blocks(text: bytes) -> Iterator[tuple[int, int]]:
    """Yield where blocks of whole lines start and end."""
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + BLOCK_BYTES) + 1 or len(text)
        yield start, end
        start = end


class _Lines:
    """The lines of a block that look like plain ones, and what they turn out to be."""

    def __init__(self, text: memoryview, size: int, shape: _Shape) -> None:
        """Look at the first `size` bytes of `text`; what follows may be read."""
        self._text = Text(text)
        self._shape = shape
        in_block = np.frombuffer(text, np.uint8, size)
        is_end = in_block == ord("\n")
        is_separator = in_block == ord(":")
        is_separator |= is_end
        self._separators = np.flatnonzero(is_separator)
        ends = np.flatnonzero(is_end[self._separators])
        starts = np.concatenate(([-1], ends))[:-1] + 1
        self.ends = self._separators[ends]

        may_be_plain = (ends - starts >= shape.colons) & (self.ends + REACH_BYTES <= len(text))
        self._numbers = np.flatnonzero(may_be_plain)
        self._starts = starts[self._numbers]
        label = self._colon(9) - shape.label.index(b":")
        has_label = self._text.says(shape.label, np.maximum(label, 0))
        self._numbers = self._numbers[has_label]
        self._starts = self._starts[has_label]
        self._label = label[has_label]
        self._is_plain = np.ones(len(self._numbers), np.bool_)

    def fields(self) -> Fields:
        """Return the fields of the lines that are plain indeed."""
        if self._shape.has_job:
            self._expect_a_call_with_pointer()
        time_us = self._time_us()
        service = self._service()
        xid = self._xid()
        nid = self._nid()
        opcode, end = self._opcode()
        job, end = self._job(end)
        service_us, total_us = self._times(end)
        hashes = mixed(nid), mixed(job), mixed(service)
        fields = {
            "line": self._numbers,
            "time_us": time_us,
            "service_us": service_us,
            "total_us": total_us,
            "group": rpc_records.group_of(*hashes, opcode),
            "fingerprint": rpc_records.fingerprint_of(hashes[0], mixed(xid), opcode, time_us),
            "nid": strings(nid),
            "job": strings(job),
            "service": strings(service),
            "opcode": opcode,
        }
        return {name: field[self._is_plain] for name, field in fields.items()}

    def _colon(self, which: int) -> Places:
        places: Places = self._separators[self._starts + which]
        return places

    def _after_thread(self, colons: int) -> Places:
        return self._colon(self._shape.after_thread + colons)

    def _must(self, be_so: Bools) -> None:
        self._is_plain &= be_so

    def _must_say(self, literal: bytes, places: Places) -> None:
        self._must(self._text.says(literal, places))

    def _number(self, words: Words, size: Sizes) -> Words:
        numbers, are_digits = number(words, size)
        self._must(are_digits)
        return numbers

    def _expect_a_call_with_pointer(self) -> None:
        call = self._label - _POINTER_BYTES - len(_CALL_WITH_POINTER)
        self._must(call > self._colon(8))
        self._must_say(_CALL_WITH_POINTER, np.maximum(call, 0))

    def _time_us(self) -> Words:
        start = self._colon(2) + 1  # 1441096201.004512
        self._must(self._colon(3) - start == len("1441096201.004512"))
        self._must_say(b".", start + 10)
        upper = self._number(self._text.words(start), 8)
        lower = self._number(self._text.words(start + 8), 2)
        seconds = upper * np.uint64(100) + lower
        self._must(seconds <= rpc_records.LATEST_S)
        return seconds * np.uint64(1_000_000) + self._number(self._text.words(start + 11), 6)

    def _string(self, places: Places, size: Places, words: int) -> list[Words]:
        most = words * WORD_BYTES
        self._must((size >= 0) & (size <= most))
        return self._text.string(places, np.minimum(np.maximum(size, 0), most), words)

    def _service(self) -> list[Words]:
        """Return the base of the thread's name: all but the numbers at its end."""
        start, end = self._label + len(self._shape.label), self._after_thread(0)
        self._must(end - start <= rpc_records.THREAD_CHARACTERS)
        kept = before_number(self._text.words(end - WORD_BYTES))
        size = end - start - WORD_BYTES + kept
        self._must((kept > 0) & (size > 0))
        return self._string(start, size, _SERVICE_WORDS)

    def _xid(self) -> list[Words]:
        colon, end = self._after_thread(2), self._after_thread(3)
        self._must_say(_BEFORE_XID, colon)
        start = colon + len(_BEFORE_XID)
        return self._string(start, end - start, _XID_WORDS)

    def _nid(self) -> list[Words]:
        colon, end = self._after_thread(3), self._after_thread(4)
        self._must_say(_BEFORE_NID, colon)
        start = colon + len(_BEFORE_NID)
        self._must(end > start)
        return self._string(start, end - start, _NID_WORDS)

    def _opcode(self) -> tuple[Words, Places]:
        """Return the opcodes, and where they end."""
        start = self._after_thread(4) + 1
        word = self._text.words(start)
        size = before(b":" if self._shape.has_job else b" ", word)
        opcode = self._number(word, size)
        self._must(opcode <= rpc_records.LARGEST_OPCODE)
        return opcode, start + size

    def _job(self, colon: Places) -> tuple[list[Words], Places]:
        """Return the job ids, and where they end."""
        if not self._shape.has_job:
            return [np.zeros(len(colon), np.uint64)], colon
        start, size = colon + 1, np.zeros_like(colon)
        for passed in range(0, _JOB_WORDS * WORD_BYTES, WORD_BYTES):
            in_word = before(b" ", self._text.words(start + passed))
            size += np.where(size == passed, in_word, 0)
        self._must(size <= rpc_records.JOB_CHARACTERS)
        return self._string(start, size, _JOB_WORDS), start + size

    def _times(self, start: Places) -> tuple[Words, Words]:
        """Read the timing tail."""
        self._must_say(self._shape.asked, start)
        service_us, end = self._number_before_us(start + len(self._shape.asked))
        self._must_say(_ARRIVED, end)
        total_us, end = self._number_before_us(end + len(_ARRIVED))
        self._must_say(_TOTAL, end)
        self._must(service_us <= total_us)
        self._expect_a_status()
        return service_us, total_us

    def _expect_a_status(self) -> None:
        """Expect the line to end like "rc 301/-2": then it was not cut."""
        last = self._text.words(self.ends[self._numbers] - WORD_BYTES)
        self._must(before(b"/", last) < WORD_BYTES)

    def _number_before_us(self, start: Places) -> tuple[Words, Places]:
        word = self._text.words(start)
        size = before(b"u", word)
        return self._number(word, size), start + size
