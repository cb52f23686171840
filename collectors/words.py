"""Read fields at many places of a text at once, eight bytes at a time.

A word is eight bytes of text as one number, the first byte lowest. Arithmetic on an array of words
treats the same field of thousands of lines, and is several times faster than cutting strings.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8
MOST_WORDS = 8  # in a string

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
# What to keep of a word when n bytes of a string are left for it: from -64, none, to 64, all.
_KEPT = _words(2 ** (8 * min(max(n, 0), 8)) - 1 for n in range(-8 * MOST_WORDS, 8 * MOST_WORDS + 1))

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: its multiples spread well


class Text:
    """A text to read words from. What is read must be inside."""

    def __init__(self, text: bytes | memoryview) -> None:
        self._text = text
        self._words: Words = self._at_every_byte("<u8", WORD_BYTES)

    def words(self, places: Places) -> Words:
        """Return the words that begin at `places`."""
        return self._words[places]

    def string(self, places: Places, sizes: Places, words: int) -> list[Words]:
        """Return strings as rows of words with NULs behind them.

        Args:
            places: where the strings begin.
            sizes: how many bytes they have, 0 to 8 * `words`.
            words: how many rows to return, up to `MOST_WORDS`.
        """
        return [
            self.words(places + WORD_BYTES * row) & _KEPT[sizes + WORD_BYTES * (MOST_WORDS - row)]
            for row in range(words)
        ]

    def says(self, literal: bytes, places: Places) -> Bools:
        """Return where the text goes on with `literal`."""
        size = len(literal)
        found: Bools
        if size > WORD_BYTES:
            found = self._at_every_byte(f"S{size}", size)[places] == literal
        else:  # twice as fast
            differing = self.words(places) ^ np.uint64(int.from_bytes(literal, "little"))
            found = differing << np.uint64(8 * (WORD_BYTES - size)) == 0
        return found

    def _at_every_byte(self, dtype: str, size: int) -> npt.NDArray[Any]:
        """View the text as items that begin at every byte, and overlap."""
        return np.ndarray(max(len(self._text) - size + 1, 0), dtype, self._text, strides=1)


def strings(rows: list[Words]) -> npt.NDArray[np.bytes_]:
    """Return what `Text.string` found, as strings."""
    return np.stack(rows, axis=1).view(f"S{len(rows) * WORD_BYTES}").ravel()


def before(char: bytes, words: Words) -> Places:
    """Return how many bytes precede the first `char` of each word; 8 where there is none."""
    differing = words ^ _all(ord(char))
    found = (differing - _all(0x01)) & ~differing & _all(0x80)  # its lowest bit is where it is
    return _bits((found - np.uint64(1)) & ~found) >> 3


def before_number(words: Words) -> Places:
    """Return how many bytes precede the digits and underscores at the end of each word."""
    from_zero, from_underscore = words ^ _all(ord("0")), words ^ _all(ord("_"))
    # In the high bit of each byte: it differs by 10 or more; by 1 or more.
    no_digit = (from_zero & _all(0x7F)) + _all(0x76) | from_zero
    no_underscore = (from_underscore & _all(0x7F)) + _all(0x7F) | from_underscore
    kept = no_digit & no_underscore & _all(0x80)
    for bits in (8, 16, 32):
        kept |= kept >> np.uint64(bits)  # and all that precede it
    return _bits(kept)


def _bits(words: Words) -> Places:
    return np.bitwise_count(words).astype(np.intp)


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
