"""Vectorized reading of fields at many offsets of a text, eight bytes at a time.

A word is eight bytes of text as one little-endian number. Arithmetic on an array of words
processes the same field of thousands of lines, several times faster than slicing strings.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8
_WORD_BITS = 8 * WORD_BYTES

Offsets: TypeAlias = npt.NDArray[np.intp]  # in a text, bytes
Sizes: TypeAlias = Offsets | int  # bytes
Words: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]


def _repeat(byte: int) -> np.uint64:
    """Return the word with `byte` in all eight places."""
    return np.uint64(byte * 0x0101010101010101)


def _words(values: Iterable[int]) -> Words:
    return np.array([value % 2**64 for value in values], dtype=np.uint64)


# By number of digits n: the shift that right-aligns them, and the padding before them. Zero digits
# are padded with bytes that are not digits.
_ALIGNMENT_SHIFTS = _words(8 * min(8 - n, 7) for n in range(9))
_LEADING_ZEROS = _words(int.from_bytes(b"0" * (8 - n), "little") if n else -1 for n in range(9))
_PREFIX_MASKS = _words(2 ** (8 * n) - 1 for n in range(9))  # by number of bytes

_ONE = np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: its multiples are well spread


class Text:
    """A text to read words from, at least as long as one read."""

    def __init__(self, text: bytes | memoryview) -> None:
        self._text = text

    def words(self, offsets: Offsets) -> Words:
        """Return the words at `offsets`, undefined beyond the end of the text."""
        return self._items("<u8", WORD_BYTES, offsets)

    def words_after(
        self, literal: bytes, offsets: Offsets, words: int
    ) -> tuple[Bools, list[Words]]:
        """Return which offsets start with `literal`, and the `words` words after it.

        Literal and words are read together, because random access dominates the cost.
        """
        parts = range(0, len(literal), WORD_BYTES)
        fields = [*parts, *(len(literal) + WORD_BYTES * n for n in range(words))]
        names = [f"word {n}" for n in range(len(fields))]
        layout = np.dtype({"names": names, "formats": ["<u8"] * len(fields), "offsets": fields})
        size = layout.itemsize
        items = self._items(f"V{size}", size, offsets).view(layout)
        columns = [items[name].copy() for name in names]
        differing = np.zeros(len(offsets), np.uint64)
        for field, column in zip(parts, columns, strict=False):
            part = literal[field : field + WORD_BYTES]
            difference = column ^ np.uint64(int.from_bytes(part, "little"))
            differing |= difference << np.uint64(8 * (WORD_BYTES - len(part)))
        matches = (differing == 0) & (offsets + size <= len(self._text))
        return matches, columns[len(parts) :]

    def _items(self, dtype: str, size: int, offsets: Offsets) -> npt.NDArray[Any]:
        last = len(self._text) - size
        every_offset = np.ndarray(last + 1, dtype, self._text, strides=1)  # overlapping items
        items: npt.NDArray[Any] = every_offset[np.minimum(offsets, last)]
        return items


class ByteIndex:
    """Bitmap of the occurrences of a byte in a text."""

    def __init__(self, text: npt.NDArray[np.uint8], char: bytes) -> None:
        bits = np.packbits(text == ord(char), bitorder="little")
        padding = -len(bits) % WORD_BYTES + WORD_BYTES
        self._words = np.append(bits, np.zeros(padding, np.uint8)).view(np.uint64)
        self._bits = Text(self._words.view(np.uint8).data)

    def offsets(self) -> Offsets:
        """Return all offsets in ascending order; fast where they are sparse."""
        at = np.flatnonzero(self._words)
        bits = self._words[at]
        offsets = [at[:0]]
        while at.size:  # one bit of each word per pass, the lowest first
            offsets.append(at * _WORD_BITS + trailing_zeros(bits))
            bits &= bits - _ONE
            at, bits = at[bits > 0], bits[bits > 0]
        return np.sort(np.concatenate(offsets))

    def bits_from(self, offsets: Offsets) -> Words:
        """Return the bitmap of 57 bytes from each offset, lowest bit first.

        The bits are undefined beyond the end of the text.
        """
        return self._bits.words(offsets >> 3) >> (offsets & 7).view(np.uint64)


def trailing_zeros(bits: Words) -> Offsets:
    """Return the number of zero bits below the lowest set bit of each word; 64 without any."""
    preceding: Offsets = np.bitwise_count((bits - _ONE) & ~bits).astype(np.intp)
    return preceding


def truncated(rows: list[Words], sizes: Offsets) -> list[Words]:
    """Return rows of words with NULs after the first `sizes` bytes."""
    return [
        row & _PREFIX_MASKS[np.clip(sizes - WORD_BYTES * n, 0, WORD_BYTES)]
        for n, row in enumerate(rows)
    ]


def without_number(rows: list[Words]) -> list[Words]:
    """Return strings without trailing digits and underscores."""
    base_in_next_row = np.zeros_like(rows[0])
    parts = []
    for row in reversed(rows):
        # The high bit of a byte marks it as part of the base, then all bytes before it too.
        base = _differing(row, 10, "0") & _differing(row, 1, "_") & _differing(row, 1, "\0")
        base = base & _repeat(0x80) | base_in_next_row << np.uint64(56)
        for bits in (8, 16, 32):
            base |= base >> np.uint64(bits)
        parts.append(row & (base >> np.uint64(7)) * np.uint64(0xFF))
        base_in_next_row = base & np.uint64(0x80)
    return parts[::-1]


def _differing(words: Words, by: int, char: str) -> Words:
    """Set the high bit of each byte whose XOR with `char` is at least `by`."""
    differing = words ^ _repeat(ord(char))
    return (differing & _repeat(0x7F)) + _repeat(0x80 - by) | differing


def strings(rows: list[Words]) -> npt.NDArray[np.bytes_]:
    """Return NUL-padded rows of words as strings."""
    return np.stack(rows, axis=1).view(f"S{len(rows) * WORD_BYTES}").ravel()


def index_of(char: bytes, words: Words) -> Offsets:
    """Return the index of the first `char` in each word; 8 without any."""
    differing = words ^ _repeat(ord(char))
    return trailing_zeros((differing - _repeat(0x01)) & ~differing & _repeat(0x80)) >> 3


def number(words: Words, sizes: Sizes) -> tuple[Words, Bools]:
    """Read the first `sizes` (0 to 8) bytes of each word as a decimal number.

    Returns:
        The numbers, and where they are valid: one or more digits and no other byte.
    """
    digits = (words << _ALIGNMENT_SHIFTS[sizes] | _LEADING_ZEROS[sizes]) - _repeat(ord("0"))
    are_digits = (digits | digits + _repeat(6)) & _repeat(0xF0) == 0
    # Each step joins neighbours: 8 digits, 4 pairs, 2 groups of four, 1 number.
    for digit_bits, base, mask in (
        (8, 10, 0x00FF00FF00FF00FF),
        (16, 100, 0x0000FFFF0000FFFF),
        (32, 10_000, 0x00000000FFFFFFFF),
    ):
        digits = digits * np.uint64(base) + (digits >> np.uint64(digit_bits)) & np.uint64(mask)
    return digits, are_digits


def mixed(rows: list[Words]) -> Words:
    """Hash rows of words; trailing NULs do not change the hash."""
    hashes = np.zeros_like(rows[0])
    for row in reversed(rows):
        # A product mixes bits upwards only; after a byte swap the second one mixes the others.
        hashes = ((hashes ^ row) * _MIX).byteswap() * _MIX
    return hashes
