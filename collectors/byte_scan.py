"""Read fields at many places of a text at once, eight bytes at a time.

A word is eight bytes of text as one number, the first byte lowest. Arithmetic on an array of words
treats the same field of thousands of lines, and is several times faster than cutting strings.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8
_WORD_BITS = 8 * WORD_BYTES

Places: TypeAlias = npt.NDArray[np.intp]  # offsets in a text
Sizes: TypeAlias = Places | int  # numbers of bytes
Words: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]


def _all(byte: int) -> np.uint64:
    """Return the word that has one byte eight times."""
    return np.uint64(byte * 0x0101010101010101)


def _words(values: Iterable[int]) -> Words:
    return np.array([value % 2**64 for value in values], dtype=np.uint64)


# How far to shift a number of n digits to the end of its word, and what to put before it; with no
# digits, something that is none.
_TO_THE_END = _words(8 * min(8 - n, 7) for n in range(9))
_LEADING_ZEROS = _words(int.from_bytes(b"0" * (8 - n), "little") if n else -1 for n in range(9))
_FIRST_BYTES = _words(2 ** (8 * n) - 1 for n in range(9))  # of a word

_ONE = np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: its multiples spread well


class Text:
    """A text to read words from, no shorter than what is read at a time."""

    def __init__(self, text: bytes | memoryview) -> None:
        self._text = text

    def words(self, places: Places) -> Words:
        """Return the words that begin at `places`; any where the text ends before."""
        return self._items("<u8", WORD_BYTES, places)

    def after(self, literal: bytes, places: Places, words: int) -> tuple[Bools, list[Words]]:
        """Return where the text goes on with `literal` and so many words, and these words.

        All are taken from the text together: to reach far places is what takes time.
        """
        parts = range(0, len(literal), WORD_BYTES)
        offsets = [*parts, *(len(literal) + WORD_BYTES * n for n in range(words))]
        names = [f"word {n}" for n in range(len(offsets))]
        layout = np.dtype({"names": names, "formats": ["<u8"] * len(offsets), "offsets": offsets})
        size = layout.itemsize
        items = self._items(f"V{size}", size, places).view(layout)
        found = [items[name].copy() for name in names]
        differing = np.zeros(len(places), np.uint64)
        for offset, word in zip(parts, found, strict=False):
            part = literal[offset : offset + WORD_BYTES]
            unlike = word ^ np.uint64(int.from_bytes(part, "little"))
            differing |= unlike << np.uint64(8 * (WORD_BYTES - len(part)))
        goes_on = (differing == 0) & (places + size <= len(self._text))
        return goes_on, found[len(parts) :]

    def _items(self, dtype: str, size: int, places: Places) -> npt.NDArray[Any]:
        last = len(self._text) - size
        at_every_byte = np.ndarray(last + 1, dtype, self._text, strides=1)  # they overlap
        items: npt.NDArray[Any] = at_every_byte[np.minimum(places, last)]
        return items


class Marks:
    """Where a byte stands in a text, as bits."""

    def __init__(self, text: npt.NDArray[np.uint8], char: bytes) -> None:
        bits = np.packbits(text == ord(char), bitorder="little")
        padding = -len(bits) % WORD_BYTES + WORD_BYTES
        self._words = np.append(bits, np.zeros(padding, np.uint8)).view(np.uint64)
        self._bits = Text(self._words.view(np.uint8).data)

    def places(self) -> Places:
        """Return all places, in order: faster than from the bytes where they are far between."""
        at = np.flatnonzero(self._words)
        bits = self._words[at]
        found = [at[:0]]
        while at.size:  # the lowest of each word, the next ones of those that have more, ...
            found.append(at * _WORD_BITS + lowest(bits))
            bits &= bits - _ONE
            at, bits = at[bits > 0], bits[bits > 0]
        return np.sort(np.concatenate(found))

    def behind(self, places: Places) -> Words:
        """Return for 57 bytes from each place, the lowest bit first, whether they are `char`.

        A place behind the end of the text gets any bits.
        """
        return self._bits.words(places >> 3) >> (places & 7).view(np.uint64)


def lowest(bits: Words) -> Places:
    """Return how many bits precede the lowest one of each word; 64 where there is none."""
    preceding: Places = np.bitwise_count((bits - _ONE) & ~bits).astype(np.intp)
    return preceding


def cut(rows: list[Words], sizes: Places) -> list[Words]:
    """Return rows of words with NULs behind the first `sizes` bytes, none to all of them."""
    return [
        row & _FIRST_BYTES[np.clip(sizes - WORD_BYTES * n, 0, WORD_BYTES)]
        for n, row in enumerate(rows)
    ]


def without_number(rows: list[Words]) -> list[Words]:
    """Return strings without the digits and underscores at their end."""
    kept_behind = np.zeros_like(rows[0])
    parts = []
    for row in reversed(rows):
        # In the high bit of each byte: it is kept; then all before it are.
        kept = _differing(row, 10, "0") & _differing(row, 1, "_") & _differing(row, 1, "\0")
        kept = kept & _all(0x80) | kept_behind << np.uint64(56)
        for bits in (8, 16, 32):
            kept |= kept >> np.uint64(bits)
        parts.append(row & (kept >> np.uint64(7)) * np.uint64(0xFF))
        kept_behind = kept & np.uint64(0x80)
    return parts[::-1]


def _differing(words: Words, by: int, char: str) -> Words:
    """Return in the high bit of each byte whether bits of it differ from `char` by that or more."""
    differing = words ^ _all(ord(char))
    return (differing & _all(0x7F)) + _all(0x80 - by) | differing


def strings(rows: list[Words]) -> npt.NDArray[np.bytes_]:
    """Return rows of words, with NULs behind them, as strings."""
    return np.stack(rows, axis=1).view(f"S{len(rows) * WORD_BYTES}").ravel()


def before(char: bytes, words: Words) -> Places:
    """Return how many bytes precede the first `char` of each word; 8 where there is none."""
    differing = words ^ _all(ord(char))
    return lowest((differing - _all(0x01)) & ~differing & _all(0x80)) >> 3


def number(words: Words, sizes: Sizes) -> tuple[Words, Bools]:
    """Read the first 0 to 8 bytes of each word as a decimal number.

    Returns the numbers, and where they mean something: where there are digits and nothing else.
    """
    digits = (words << _TO_THE_END[sizes] | _LEADING_ZEROS[sizes]) - _all(ord("0"))
    are_digits = (digits | digits + _all(6)) & _all(0xF0) == 0
    # Each step joins neighbours: eight digits, four pairs, two fours, a number.
    for digit_bits, base, kept in (
        (8, 10, 0x00FF00FF00FF00FF),
        (16, 100, 0x0000FFFF0000FFFF),
        (32, 10_000, 0x00000000FFFFFFFF),
    ):
        digits = digits * np.uint64(base) + (digits >> np.uint64(digit_bits)) & np.uint64(kept)
    return digits, are_digits


def mixed(rows: list[Words]) -> Words:
    """Hash rows of words; NULs behind a string do not change its hash."""
    hashes = np.zeros_like(rows[0])
    for row in reversed(rows):
        # A product spreads upwards what differs: turned round, the second one spreads the rest.
        hashes = ((hashes ^ row) * _MIX).byteswap() * _MIX
    return hashes
