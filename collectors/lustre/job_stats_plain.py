"""The fast path for job_stats: texts without a damaged, unknown or unusual line, in one loop.

The exact path (`job_stats`) gives the same rows for them, and reads all other texts. The loop is
compiled by numba, without which there is only the exact path.

Source: docs/formats.md, "job_stats".
"""

from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase, digits
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from collectors.lustre.counters import JOB_CHARACTERS, LARGEST_SAMPLES, LARGEST_SUM, MOMENTS
from collectors.lustre.params import BLOCK_LINES
from collectors.tables import BYTES, COUNTED, OPERATIONS

_Text: TypeAlias = npt.NDArray[np.uint8]
_Numbers: TypeAlias = npt.NDArray[np.int64]

_NONE = -1  # a number that the text does not have


@dataclass(frozen=True)
class Plain:
    """The lines of a plain text.

    Attributes:
        lines, accepted: numbers of lines; the others are irrelevant.
        titles: first and last bytes, and number of earlier entries, of the lines that begin with
            another character than a blank or "-".
        entry_lines: numbers of the lines with a job id, from 0.
        jobs: the job ids, each with a newline.
        values: by entry and `counters.MOMENTS` (microseconds), `tables.COUNTERS`; negative: none.
    """

    lines: int
    accepted: int
    titles: _Numbers
    entry_lines: _Numbers
    jobs: bytes
    values: _Numbers


def read(text: bytes) -> Plain | None:
    """Read whole lines that begin with a title or an entry; None: they are not plain."""
    if not text.endswith(b"\n") or not text.isascii():
        return None
    most = text.count(b"\n-") + 1
    entry_lines = np.zeros(most, np.int64)
    titles = np.zeros((text.count(b"job_stats") + 1, 3), np.int64)
    values = np.full((most, _ALL), _NONE)
    jobs = np.zeros(len(text), np.uint8)
    lines, accepted, entries, named, size = _loop(
        np.frombuffer(text, np.uint8), entry_lines, titles, values, jobs
    )
    if lines == _BAD:
        return None
    return Plain(
        lines,
        accepted,
        titles[:named],
        entry_lines[:entries],
        jobs[:size].tobytes(),
        np.hstack([values[:entries, _COUNTERS_END:], _totals(values[:entries, :_COUNTERS_END])]),
    )


def _totals(raw: _Numbers) -> _Numbers:
    """Return raw values by `tables.COUNTERS`: see `counters.totals`."""
    totals = np.delete(raw, np.s_[_SAMPLES_END:_BYTES_END], axis=1)
    samples, in_bytes = raw[:, _TRANSFERS], raw[:, _SAMPLES_END:_BYTES_END]
    totals[:, _TRANSFERS] = np.hstack(
        [np.where(both[:, 2:] == _NONE, both[:, :2], both[:, 2:]) for both in (samples, in_bytes)]
    )
    return totals


def _table(*words: str) -> _Text:
    """Return words as rows, each padded with NULs to the same size."""
    size = max(map(len, words)) + 1
    return np.array([list(word.encode().ljust(size, b"\0")) for word in words], np.uint8)


def _kinds(**characters: str) -> _Text:
    """Return the kinds of each byte: a bit for each set of characters."""
    kinds = np.zeros(256, np.uint8)
    for bit, chars in enumerate(characters.values()):
        kinds[list(chars.encode())] |= 1 << bit
    return kinds


_KINDS = _kinds(
    blank=" \t", digit=digits, lower=ascii_lowercase, upper=ascii_uppercase, rest="_", between=",:"
)
_BLANKS, _DIGITS, _LOWER, _UPPER, _REST, _BETWEEN = (1 << bit for bit in range(6))
_LETTERS = _LOWER | _UPPER
_WORD = _LETTERS | _DIGITS | _REST
_HISTOGRAM = _UPPER | _DIGITS | _BLANKS | _BETWEEN

_COUNTED, _MOMENTS = _table(*COUNTED), _table(*MOMENTS)
_JOB_ID, _SAMPLES, _UNIT, _SUM, _SECS = (
    _table(word) for word in ("job_id", "samples", "unit", "sum", "secs")
)
_BYTES, _TIMES, _FRACTIONS = _table("bytes"), _table("usecs", "usec"), _table("usecs", "nsecs")
_OTHER_UNIT, _IN_BYTES, _IN_US = range(3)
_NSECS = 1
_SECOND_US, _NS = 1_000_000, 1_000

_WITH_BYTES = ("read", "write", *BYTES)
_TRANSFERS = np.array([COUNTED.index(name) for name in _WITH_BYTES])
_FIRST_BYTES = _WITH_BYTES.index(BYTES[0])  # from here on the names themselves say bytes
# Columns of raw values: samples, sums of bytes, times of operations, moments.
_OPERATIONS, _SAMPLES_END = len(OPERATIONS), len(COUNTED)
_BYTES_END = _SAMPLES_END + len(_WITH_BYTES)
_COUNTERS_END = _BYTES_END + _OPERATIONS
_ALL = _COUNTERS_END + len(MOMENTS)

_NUMBER_DIGITS = 18  # fit 64 bits for sure
_SECONDS_DIGITS, _FRACTION_DIGITS = 12, 9
_NEWLINE, _BLANK, _QUOTE, _BACKSLASH, _ZERO = (ord(char) for char in '\n "\\0')
_COLON, _COMMA, _OPEN, _CLOSE, _DASH, _DOT = (ord(char) for char in ":,{}-.")
_BAD = -1  # an offset or a number of what is not plain; there, the text has its last newline


@njit(cache=True, nogil=True)
def _span(text: _Text, at: int, kinds: int) -> int:
    """Return the end of the bytes of some kinds from an offset; a newline is of no kind."""
    while _KINDS[text[at]] & kinds:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _number(text: _Text, at: int, most: int) -> tuple[int, int]:
    """Return the number of 1 to `most` digits at an offset, or `_BAD`, and their end."""
    end = _span(text, at, _DIGITS)
    if not 0 < end - at <= most:
        return _BAD, end
    value = 0
    for place in range(at, end):
        value = value * 10 + text[place] - _ZERO
    return value, end


@njit(cache=True, nogil=True)
def _index(words: _Text, text: _Text, start: int, end: int) -> int:
    """Return the row of a word; -1: it is not in the table."""
    size = end - start
    if size >= words.shape[1]:
        return -1
    for row in range(words.shape[0]):
        matching = 0
        while matching < size and words[row, matching] == text[start + matching]:
            matching += 1
        if matching == size and not words[row, size]:
            return row
    return -1


@njit(cache=True, nogil=True)
def _after(text: _Text, at: int, char: int) -> int:
    """Return the offset behind blanks, `char` and blanks; `_BAD`: there is another character."""
    at = _span(text, at, _BLANKS)
    return _span(text, at + 1, _BLANKS) if text[at] == char else _BAD


@njit(cache=True, nogil=True)
def _field(text: _Text, at: int, name: _Text) -> int:
    """Return the offset of the value of ``NAME:`` at an offset; `_BAD`: there is another name."""
    end = _span(text, at, _WORD)
    if _index(name, text, at, end) < 0 or text[end] != _COLON:
        return _BAD
    return _span(text, end + 1, _BLANKS)


@njit(cache=True, nogil=True)
def _moment(text: _Text, at: int) -> tuple[int, int]:
    """Return the microseconds at an offset, or `_BAD`, and the end."""
    seconds, end = _number(text, at, _SECONDS_DIGITS)
    if seconds == _BAD:
        return _BAD, end
    if text[end] != _DOT:
        return seconds * _SECOND_US, end
    fraction, end = _number(text, end + 1, _FRACTION_DIGITS)
    start = _span(text, end, _BLANKS)
    dot = _span(text, start, _WORD)
    end = _span(text, dot + 1, _WORD)
    unit = _index(_FRACTIONS, text, dot + 1, end)
    if fraction == _BAD or unit < 0 or text[dot] != _DOT or _index(_SECS, text, start, dot) < 0:
        return _BAD, end
    return seconds * _SECOND_US + (fraction // _NS if unit == _NSECS else fraction), end


@njit(cache=True, nogil=True)
def _unit(text: _Text, at: int) -> tuple[int, int]:
    """Return the unit at an offset, or `_BAD`, and the offset behind it and blanks."""
    end = _span(text, at, _LETTERS)
    unit = _OTHER_UNIT
    if end == at:
        unit = _BAD
    elif _index(_BYTES, text, at, end) >= 0:
        unit = _IN_BYTES
    elif _index(_TIMES, text, at, end) >= 0:
        unit = _IN_US
    return unit, _span(text, end, _BLANKS)


@njit(cache=True, nogil=True)
def _sum(text: _Text, at: int) -> tuple[int, int]:
    """Return the sum among the fields from an offset, `_NONE` without one, and the brace's offset.

    The offset is `_BAD` if a field is not plain.
    """
    total = _NONE
    while text[at] == _COMMA:
        at = _span(text, at + 1, _BLANKS)
        end = _span(text, at, _LOWER)
        if end == at or text[end] != _COLON:
            return total, _BAD
        value = _span(text, end + 1, _BLANKS)
        if _index(_SUM, text, at, end) >= 0:
            is_second = total != _NONE
            total, at = _number(text, value, _NUMBER_DIGITS)
            if is_second or not 0 <= total <= LARGEST_SUM:
                return total, _BAD
        elif text[value] == _OPEN:
            at = _span(text, value + 1, _HISTOGRAM) + 1
            if text[at - 1] != _CLOSE:
                return total, _BAD
        else:
            at = _span(text, value, _DIGITS)
            if at == value:
                return total, _BAD
        at = _span(text, at, _BLANKS)
    return total, at if text[at] == _CLOSE else _BAD


@njit(cache=True, nogil=True)
def _counter(text: _Text, at: int) -> tuple[int, int, int, int]:
    """Return samples, unit and sum of a counter, and the end of its braces or `_BAD`."""
    bad = (_BAD, _BAD, _NONE, _BAD)
    at = _after(text, at, _OPEN)
    start = _field(text, at, _SAMPLES) if at != _BAD else _BAD
    if start == _BAD:
        return bad
    samples, end = _number(text, start, _NUMBER_DIGITS)
    is_padded = text[start] == _ZERO and end > start + 1
    if is_padded or not 0 <= samples <= LARGEST_SAMPLES:
        return bad
    if text[end] != _COMMA or text[end + 1] != _BLANK:
        return bad
    at = _field(text, end + 2, _UNIT)
    if at == _BAD:
        return bad
    unit, at = _unit(text, at)
    total, brace = _sum(text, at)
    return bad if _BAD in (unit, brace) else (samples, unit, total, brace + 1)


@njit(cache=True, nogil=True)
def _set_counter(values: _Numbers, name: int, samples: int, unit: int, total: int) -> bool:
    """Set the raw values of a counter in those of its entry; return false if they are set."""
    if values[name] != _NONE:
        return False
    values[name] = samples
    for n in range(len(_TRANSFERS)):
        # (Counters of bytes on MDTs have the unit "reqs" from 2.11 to 2.13.)
        if name == _TRANSFERS[n] and (unit == _IN_BYTES or n >= _FIRST_BYTES):
            values[_SAMPLES_END + n] = total
            return True
    if unit == _IN_US and samples > 0 and name < _OPERATIONS:
        values[_BYTES_END + name] = total
    return True


@njit(cache=True, nogil=True)
def _read_line(text: _Text, at: int, values: _Numbers) -> tuple[int, int]:
    """Read a moment or a counter of an entry from its name.

    Returns: whether the line is accepted (unknown counters are irrelevant while they are zero), and
    its end; `_BAD` if it is not plain.
    """
    end = _span(text, at, _WORD)
    value = _after(text, end, _COLON)
    if value == _BAD or _KINDS[text[at]] & _DIGITS:
        return 0, _BAD
    moment = _index(_MOMENTS, text, at, end)
    name = _index(_COUNTED, text, at, end)
    if moment >= 0:
        us, at = _moment(text, value)
        is_good = us != _BAD and values[_COUNTERS_END + moment] == _NONE
        values[_COUNTERS_END + moment] = us
    else:
        samples, unit, total, at = _counter(text, value)
        is_good = at != _BAD
        if is_good and name >= 0:
            is_good = _set_counter(values, name, samples, unit, total)
        elif is_good:
            is_good = samples == 0
    at = _span(text, at, _BLANKS) if is_good else _BAD
    is_accepted = moment >= 0 or name >= 0
    return int(is_accepted), at if is_good and text[at] == _NEWLINE else _BAD


@njit(cache=True, nogil=True)
def _read_job(text: _Text, at: int, jobs: _Text, size: int) -> tuple[int, int]:
    """Copy the job id of the entry at an offset; return the new size of `jobs`, and the line's end.

    The end is `_BAD` if the line is not plain.
    """
    name = _after(text, at, _DASH)
    end = _span(text, name, _WORD)
    start = _after(text, end, _COLON)
    if name == at + 1 or _index(_JOB_ID, text, name, end) < 0 or start == _BAD:
        return size, _BAD
    newline = start
    while text[newline] >= _BLANK and text[newline] != _BACKSLASH:
        newline += 1
    end = newline
    while end > start and text[end - 1] == _BLANK:
        end -= 1
    if end - start > 1 and text[start] == _QUOTE and text[end - 1] == _QUOTE:
        start, end = start + 1, end - 1
    if text[newline] != _NEWLINE or end - start > JOB_CHARACTERS:
        return size, _BAD
    jobs[size : size + end - start] = text[start:end]
    size += end - start
    jobs[size] = _NEWLINE
    return size + 1, newline


@njit(cache=True, nogil=True)
def _loop(
    text: _Text,
    entry_lines: _Numbers,
    titles: _Numbers,
    values: _Numbers,
    jobs: _Text,
) -> tuple[int, int, int, int, int]:
    """Fill the arrays of `Plain`, with raw values.

    Returns: the numbers of lines, accepted lines, entries and titles, and the size of the jobs;
    `_BAD` lines: the text is not plain.
    """
    at, line, accepted, entries, named, size, is_inside = 0, 0, 0, 0, 0, 0, False
    while at < len(text):
        start, is_accepted = at, 1
        if text[at] == _DASH:
            size, at = _read_job(text, at, jobs, size)
            entry_lines[entries] = line
            entries, is_inside = entries + 1, True
        elif text[at] == _BLANK or text[at] == _NEWLINE:
            at = _span(text, at, _BLANKS)
            if text[at] == _NEWLINE:
                is_accepted = 0
            elif is_inside and line - entry_lines[entries - 1] < BLOCK_LINES:
                is_accepted, at = _read_line(text, at, values[entries - 1])
            else:
                at = _BAD
        elif named < len(titles):
            while text[at] != _NEWLINE:
                at += 1
            titles[named] = start, at, entries
            named, is_inside = named + 1, False
        else:
            at = _BAD
        if at == _BAD:
            return _BAD, 0, 0, 0, 0
        accepted += is_accepted
        line += 1
        at += 1
    return line, accepted, entries, named, size
