"""The fast path of RPC traces: plain lines, whose fields are found by their colons.

A plain line has the fields of its version, in usual sizes, and a timing tail; its NID is no IPv6
address. What is taken from it is what `rpc_exact` reads in it; a line that is odd in any way is
left to that.

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
    Marks,
    Places,
    Sizes,
    Text,
    Words,
    before,
    cut,
    lowest,
    mixed,
    number,
    strings,
    without_number,
)
from collectors.lustre import rpc_records
from collectors.lustre.rpc_records import NAMES, NUMBERS, Records

_AT_A_TIME_BYTES = 128  # more than is read of a line at a time

# The longest plain strings.
_NID_WORDS, _THREAD_WORDS, _JOB_WORDS, _XID_WORDS = 3, 2, 4, 2

# Fixed text, in the order of a line. With a job id the call has a pointer behind it.
_CALL = b":ptlrpc_server_handle_request()) Handled RPC "
_CALL_WITH_POINTER, _POINTER_BYTES = _CALL + b"req@", 16
_LABEL = _CALL + b"pname:cluuid+ref:pid:xid:nid:opc "
_LABEL_WITH_JOB = b" pname:cluuid+ref:pid:xid:nid:opc:job "
_BEFORE_XID, _BEFORE_NID = b":x", b":12345-"
_ARRIVED, _TOTAL = b"us (", b"us total) trans "

Fields: TypeAlias = dict[str, npt.NDArray[Any]]  # arrays of one length


@dataclass(frozen=True)
class Plain:
    """What plain lines say: the columns of `rpc_records.Records`, not put together yet."""

    numbers: Fields
    names: Fields


@dataclass(frozen=True)
class _Shape:
    """How the plain lines of a version look."""

    has_job: bool
    asked: bytes  # what the timing tail begins with


def read_plain(text: bytes, first_line: int) -> tuple[Places, Plain]:
    """Read the plain lines of a text (UTF-8, no NUL), whose first line has the given number.

    Returns:
        Where all newlines are; what the plain lines say, for `records_of`.
    """
    lines = _Lines(text, _shape_of(text))
    return lines.ends, lines.read(first_line)


def records_of(blocks: list[Plain]) -> Records:
    """Put together what `read_plain` found; there is at least one block."""
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
    """Tell of each group whether it is there for the first time."""
    return pl.Series(groups).is_first_distinct().to_numpy()


def _shape_of(text: bytes) -> _Shape:
    """Return the shape of the first handled RPC in a text, and of its first timing tail."""
    has_job = text.startswith(b"req@", text.find(_CALL) + len(_CALL))
    tail = text.find(b" Request proces")
    spelt = b"procesed" if text.startswith(b" Request procesed", tail) else b"processed"
    return _Shape(has_job, b" Request " + spelt + b" in ")


class _Lines:
    """The lines of a text, and what those say that turn out to be plain.

    Every field is looked for behind the one before it; when the last is found before the line's
    end, all are the line's own.
    """

    def __init__(self, text: bytes, shape: _Shape) -> None:
        in_text = np.frombuffer(text, np.uint8)
        self.ends = Marks(in_text, b"\n").places()
        self._text = Text(text.ljust(_AT_A_TIME_BYTES, b"\0"))
        self._colons = Marks(in_text, b":")
        self._shape = shape
        self._is_plain = np.ones(len(self.ends), np.bool_)

    def read(self, first_line: int) -> Plain:
        """Return what the plain lines say."""
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

    def _must(self, be_so: Bools) -> None:
        self._is_plain &= be_so

    def _colon(self, places: Places, skipped: int) -> Places:
        """Return where the next colon is, or one behind it."""
        colons = self._colons.behind(places)
        for _ in range(skipped):
            colons &= colons - np.uint64(1)
        self._must(colons != 0)
        return places + lowest(colons)

    def _after(self, literal: bytes, places: Places, words: int) -> list[Words]:
        said, found = self._text.after(literal, places, words)
        self._must(said)
        return found

    def _number(self, words: Words, size: Sizes) -> Words:
        numbers, are_digits = number(words, size)
        self._must(are_digits)
        return numbers

    def _string(self, rows: list[Words], size: Places) -> list[Words]:
        self._must(size <= len(rows) * WORD_BYTES)
        return cut(rows, size)

    def _thread(self, colon: Places) -> tuple[Places, list[Words]]:
        """Return where the thread's name begins, and the words there."""
        label = _LABEL
        if self._shape.has_job:
            self._after(_CALL_WITH_POINTER, colon, 0)
            pointer = colon + len(_CALL_WITH_POINTER)
            label, colon = _LABEL_WITH_JOB, pointer + _POINTER_BYTES
            self._must(self._colon(pointer, 0) > colon)
        return colon + len(label), self._after(label, colon, _THREAD_WORDS)

    def _time_us(self, colon: Places) -> Words:
        """Read the time between a colon and the next one."""
        high, second, third = self._after(b":", colon, 3)  # 14410962 01.00451 2:
        self._must(second & np.uint64(0xFF_0000) == ord(".") << 16)
        self._must(third & np.uint64(0xFF00) == ord(":") << 8)
        low = second & np.uint64(0xFFFF) | second >> np.uint64(24) << np.uint64(16)
        low |= third << np.uint64(56)
        time_us = self._number(high, 8) * np.uint64(10**8) + self._number(low, 8)
        self._must(time_us < (rpc_records.LATEST_S + 1) * 10**6)
        return time_us

    def _service(self, thread: list[Words], size: Places) -> list[Words]:
        """Return the bases of threads' names."""
        self._must(size > 0)
        return without_number(self._string(thread, size))

    def _xid(self, colon: Places) -> tuple[list[Words], Places]:
        """Return the xids, and where they end."""
        end = self._colon(colon + 1, 0)
        rows = self._after(_BEFORE_XID, colon, _XID_WORDS)
        return self._string(rows, end - colon - len(_BEFORE_XID)), end

    def _nid(self, colon: Places) -> tuple[list[Words], Places]:
        """Return the NIDs, and where they end."""
        end = self._colon(colon + 1, 0)
        rows = self._after(_BEFORE_NID, colon, _NID_WORDS)
        size = end - colon - len(_BEFORE_NID)
        self._must(size > 0)
        return self._string(rows, size), end

    def _opcode(self, colon: Places) -> tuple[Words, Places]:
        """Return the opcodes, and where they end."""
        (word,) = self._after(b":", colon, 1)
        size = before(b":" if self._shape.has_job else b" ", word)
        opcode = self._number(word, size)
        self._must(opcode <= rpc_records.LARGEST_OPCODE)
        return opcode, colon + 1 + size

    def _job(self, colon: Places) -> tuple[list[Words], Places]:
        """Return the job ids, and where they end."""
        if not self._shape.has_job:
            return [np.zeros(len(colon), np.uint64)], colon
        rows = self._after(b":", colon, _JOB_WORDS)
        size = np.zeros_like(colon)
        for passed, row in enumerate(rows):
            size += np.where(size == passed * WORD_BYTES, before(b" ", row), 0)
        self._must(size <= rpc_records.JOB_CHARACTERS)
        return self._string(rows, size), colon + 1 + size

    def _times(self, start: Places, line_end: Places) -> tuple[Words, Words]:
        """Read the timing tail."""
        service_us, end = self._number_before_us(self._shape.asked, start)
        total_us, end = self._number_before_us(_ARRIVED, end)
        self._must(service_us <= total_us)
        self._after(_TOTAL, end, 0)
        # With a status, like "rc 301/-2", the line was not cut.
        last = line_end - WORD_BYTES
        self._must(end + len(_TOTAL) <= last)
        self._must(before(b"/", self._text.words(last)) < WORD_BYTES)
        return service_us, total_us

    def _number_before_us(self, literal: bytes, start: Places) -> tuple[Words, Places]:
        (word,) = self._after(literal, start, 1)
        size = before(b"u", word)
        return self._number(word, size), start + len(literal) + size
