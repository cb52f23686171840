"""The fast path for RPC traces: plain lines, whose fields are located by colons.

A plain line has the fields of its version, in typical sizes, a timing tail, and no IPv6 address.
The exact path (`rpc_exact`) gives the same record, and parses all other lines.

Source: docs/formats.md, "RPC trace".
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from collectors.byte_scan import (
    WORD_BYTES,
    Bools,
    ByteIndex,
    Offsets,
    Sizes,
    Text,
    Words,
    index_of,
    mixed,
    number,
    strings,
    trailing_zeros,
    truncated,
    without_number,
)
from collectors.lustre import rpc_records
from collectors.lustre.rpc_records import EARLIEST_S, LATEST_S, NAMES, NUMBERS, Records

_LONGEST_READ_BYTES = 128  # upper bound

# Maximum sizes of plain strings.
_NID_WORDS, _THREAD_WORDS, _JOB_WORDS, _XID_WORDS = 3, 2, 4, 2

# Fixed text, in the order of a line. In versions with a job id a pointer follows the call.
_CALL = b":ptlrpc_server_handle_request()) Handled RPC "
_CALL_WITH_POINTER, _POINTER_BYTES = _CALL + b"req@", 16
_LABEL = _CALL + b"pname:cluuid+ref:pid:xid:nid:opc "
_LABEL_WITH_JOB = b" pname:cluuid+ref:pid:xid:nid:opc:job "
_BEFORE_XID, _BEFORE_NID = b":x", b":12345-"
_ARRIVED, _TOTAL = b"us (", b"us total) trans "

Fields: TypeAlias = dict[str, npt.NDArray[Any]]  # arrays of one length


@dataclass(frozen=True)
class Plain:
    """Records of the plain lines of one chunk: the columns of `rpc_records.Records`."""

    numbers: Fields
    names: Fields


@dataclass(frozen=True)
class _Shape:
    """The shape of a version's plain lines."""

    has_job: bool
    tail_start: bytes  # of the timing tail


def read_plain(text: bytes, first_line: int, latest_s: int = LATEST_S) -> tuple[Offsets, Plain]:
    """Parse the plain lines of a text.

    Args:
        text: UTF-8, no NUL.
        first_line: number of the first line.
        latest_s: the latest time, in seconds since 1970.

    Returns:
        The offsets of all newlines, and the records of the plain lines for `records_of`.
    """
    lines = _Lines(text, _shape_of(text), latest_s)
    return lines.ends, lines.read(first_line)


def records_of(blocks: list[Plain]) -> Records:
    """Join the results of `read_plain`; at least one."""
    numbers = pl.DataFrame(_joined([block.numbers for block in blocks]))
    named = _joined([block.names for block in blocks])
    is_first = _is_first(named["group"])
    names = pl.DataFrame(
        {
            name: pl.Series(named[name][is_first].tolist(), dtype=pl.Binary)
            if dtype == pl.String
            else named[name][is_first]
            for name, dtype in NAMES.items()
        }
    )
    return Records(numbers.select(*NUMBERS).cast(NUMBERS), names.cast(NAMES))


def _joined(blocks: list[Fields]) -> Fields:
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _is_first(groups: Words) -> Bools:
    """Mark the first occurrence of each group."""
    return pl.Series(groups).is_first_distinct().to_numpy()


def _shape_of(text: bytes) -> _Shape:
    """Return the shape of the first handled RPC and the first timing tail in a text."""
    has_job = text.startswith(b"req@", text.find(_CALL) + len(_CALL))
    tail = text.find(b" Request proces")
    spelt = b"procesed" if text.startswith(b" Request procesed", tail) else b"processed"
    return _Shape(has_job, b" Request " + spelt + b" in ")


class _Lines:
    """The lines of a text, narrowed to the plain ones while fields are read.

    Each field is located after the previous one. If the last field ends within the line, all fields
    belong to the line.
    """

    def __init__(self, text: bytes, shape: _Shape, latest_s: int) -> None:
        in_text = np.frombuffer(text, np.uint8)
        self.ends = ByteIndex(in_text, b"\n").offsets()
        self._text = Text(text.ljust(_LONGEST_READ_BYTES, b"\0"))
        self._colons = ByteIndex(in_text, b":")
        self._shape = shape
        self._latest_s = latest_s
        self._is_plain = np.ones(len(self.ends), np.bool_)

    def read(self, first_line: int) -> Plain:
        """Return the records of the plain lines."""
        before_time = self._colon(np.append(0, self.ends + 1)[:-1], 2)
        start, thread = self._thread(self._colon(before_time + 1, 5))

        handled = np.flatnonzero(self._is_plain)
        self._is_plain = np.ones(len(handled), np.bool_)
        start, thread = start[handled], [row[handled] for row in thread]
        time_us = self._time_us(before_time[handled])
        end = self._colon(start, 0)
        service = self._service(thread, end - start)
        xid, end = self._xid(self._colon(end + 1, 1))
        nid, end = self._nid(end)
        opcode, end = self._opcode(end)
        job, end = self._job(end)
        service_us, total_us = self._times(end, self.ends[handled])
        hashes = mixed(nid), mixed(job), mixed(service)
        numbers: Fields = {
            "line": handled + first_line,
            "time_us": time_us,
            "service_us": service_us,
            "total_us": total_us,
            "group": rpc_records.group_of(*hashes, opcode),
            "fingerprint": rpc_records.fingerprint_of(hashes[0], mixed(xid), opcode, time_us),
        }
        plain = np.flatnonzero(self._is_plain)
        numbers = {name: field[plain] for name, field in numbers.items()}
        is_first = _is_first(numbers["group"])
        first = plain[is_first]
        names = {
            "group": numbers["group"][is_first],
            "nid": strings([row[first] for row in nid]),
            "job": strings([row[first] for row in job]),
            "service": strings([row[first] for row in service]),
            "opcode": opcode[first],
        }
        return Plain(numbers, names)

    def _keep_only(self, matches: Bools) -> None:
        self._is_plain &= matches

    def _colon(self, offsets: Offsets, skipped: int) -> Offsets:
        """Return the offset of the next colon after skipping some."""
        colons = self._colons.bits_from(offsets)
        for _ in range(skipped):
            colons &= colons - np.uint64(1)
        self._keep_only(colons != 0)
        return offsets + trailing_zeros(colons)

    def _after(self, literal: bytes, offsets: Offsets, words: int) -> list[Words]:
        matches, rows = self._text.words_after(literal, offsets, words)
        self._keep_only(matches)
        return rows

    def _number(self, words: Words, size: Sizes) -> Words:
        numbers, are_digits = number(words, size)
        self._keep_only(are_digits)
        return numbers

    def _string(self, rows: list[Words], size: Offsets) -> list[Words]:
        self._keep_only(size <= len(rows) * WORD_BYTES)
        return truncated(rows, size)

    def _thread(self, colon: Offsets) -> tuple[Offsets, list[Words]]:
        """Return the offsets and words of the thread names."""
        label = _LABEL
        if self._shape.has_job:
            self._after(_CALL_WITH_POINTER, colon, 0)
            pointer = colon + len(_CALL_WITH_POINTER)
            label, colon = _LABEL_WITH_JOB, pointer + _POINTER_BYTES
            self._keep_only(self._colon(pointer, 0) > colon)
        return colon + len(label), self._after(label, colon, _THREAD_WORDS)

    def _time_us(self, colon: Offsets) -> Words:
        """Read the time between a colon and the next colon."""
        high, second, third = self._after(b":", colon, 3)  # 14410962 01.00451 2:
        self._keep_only(second & np.uint64(0xFF_0000) == ord(".") << 16)
        self._keep_only(third & np.uint64(0xFF00) == ord(":") << 8)
        low = second & np.uint64(0xFFFF) | second >> np.uint64(24) << np.uint64(16)
        low |= third << np.uint64(56)
        time_us = self._number(high, 8) * np.uint64(10**8) + self._number(low, 8)
        self._keep_only(time_us >= EARLIEST_S * 10**6)
        self._keep_only(time_us < (self._latest_s + 1) * 10**6)
        return time_us

    def _service(self, thread: list[Words], size: Offsets) -> list[Words]:
        """Return the services: thread names without numbers."""
        self._keep_only(size > 0)
        return without_number(self._string(thread, size))

    def _xid(self, colon: Offsets) -> tuple[list[Words], Offsets]:
        """Return the xids and their end offsets."""
        end = self._colon(colon + 1, 0)
        rows = self._after(_BEFORE_XID, colon, _XID_WORDS)
        return self._string(rows, end - colon - len(_BEFORE_XID)), end

    def _nid(self, colon: Offsets) -> tuple[list[Words], Offsets]:
        """Return the NIDs and their end offsets."""
        end = self._colon(colon + 1, 0)
        rows = self._after(_BEFORE_NID, colon, _NID_WORDS)
        size = end - colon - len(_BEFORE_NID)
        self._keep_only(size > 0)
        return self._string(rows, size), end

    def _opcode(self, colon: Offsets) -> tuple[Words, Offsets]:
        """Return the opcodes and their end offsets."""
        (word,) = self._after(b":", colon, 1)
        size = index_of(b":" if self._shape.has_job else b" ", word)
        opcode = self._number(word, size)
        self._keep_only(opcode <= rpc_records.LARGEST_OPCODE)
        return opcode, colon + 1 + size

    def _job(self, colon: Offsets) -> tuple[list[Words], Offsets]:
        """Return the job ids and their end offsets."""
        if not self._shape.has_job:
            return [np.zeros(len(colon), np.uint64)], colon
        rows = self._after(b":", colon, _JOB_WORDS)
        size = np.zeros_like(colon)
        for passed, row in enumerate(rows):
            size += np.where(size == passed * WORD_BYTES, index_of(b" ", row), 0)
        self._keep_only(size <= rpc_records.JOB_CHARACTERS)
        return self._string(rows, size), colon + 1 + size

    def _times(self, start: Offsets, line_end: Offsets) -> tuple[Words, Words]:
        """Read the timing tail."""
        service_us, end = self._number_before_us(self._shape.tail_start, start)
        total_us, end = self._number_before_us(_ARRIVED, end)
        self._keep_only(service_us <= total_us)
        self._after(_TOTAL, end, 0)
        # A line with a status, such as "rc 301/-2", is complete.
        last = line_end - WORD_BYTES
        self._keep_only(end + len(_TOTAL) <= last)
        self._keep_only(index_of(b"/", self._text.words(last)) < WORD_BYTES)
        return service_us, total_us

    def _number_before_us(self, literal: bytes, start: Offsets) -> tuple[Words, Offsets]:
        (word,) = self._after(literal, start, 1)
        size = index_of(b"u", word)
        return self._number(word, size), start + len(literal) + size
