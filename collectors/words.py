"""Read fields at many places of a text at once, eight bytes at a time.

A word is eight bytes of text as one number, the first byte lowest. Arithmetic on an array of words
treats the same field of thousands of lines, and is several times faster than cutting strings.
"""

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8

Places: TypeAlias = npt.NDArray[np.intp]  # offsets in a text
Sizes: TypeAlias = npt.NDArray[np.integer] | int  # numbers of bytes
Words: TypeAlias = npt.NDArray[np.uint64]
Bools: TypeAlias = npt.NDArray[np.bool_]

_MOST_WORDS = 8  # in a string

_EVERY = 0x0101010101010101  # times a byte: a word of that byte
_LOW_BITS, _HIGH_BIT = 0x7F * _EVERY, 0x80 * _EVERY
_MIX = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: its multiples spread well


def _by_size(words: Iterable[int]) -> Words:
    return np.array([word % 2**64 for word in words], dtype=np.uint64)


_SIZES = range(WORD_BYTES + 1)
# What to keep of a row of words, by the bytes of the string that are left for it: many below zero.
_KEPT = _by_size(
    2 ** (8 * min(max(n, 0), 8)) - 1 for n in range(-8 * _MOST_WORDS, 8 * _MOST_WORDS + 1)
)
_TO_THE_END = _by_size(8 * min(8 - n, 7) for n in _SIZES)  # how far to shift n bytes
_LEADING_ZEROS = _by_size(int.from_bytes(b"0" * (8 - n), "little") if n else -1 for n in _SIZES)


class Text:
    """A text to read words from. What is read must be inside."""

    def __init__(self, text: bytes | memoryview) -> None:
        self._text = text
        self._words: Words = self._at_every_byte("<u8", WORD_BYTES)

    def words(self, places: Places) -> Words:
        """Return the words that begin at `places`."""
        return self._words[places]

    def string(self, places: Places, size: Places, words: int) -> list[Words]:
        """Return strings as rows of words with NULs behind them.

        Args:
            places: where the strings begin.
            size: how many bytes they have, 0 to 8 * `words`.
            words: how many rows to return.
        """
        return [
            self.words(places + WORD_BYTES * row) & _KEPT[size + WORD_BYTES * (_MOST_WORDS - row)]
            for row in range(words)
        ]

    def says(self, literal: bytes, places: Places) -> Bools:
        """Return where the text goes on with `literal`."""
        found: Bools = self._at_every_byte(f"S{len(literal)}", len(literal))[places] == literal
        return found

    def _at_every_byte(self, dtype: str, size: int) -> npt.NDArray[Any]:
        """View the text as items that begin at every byte, and overlap."""
        return np.ndarray(max(len(self._text) - size + 1, 0), dtype, self._text, strides=1)


def strings(rows: list[Words]) -> npt.NDArray[np.bytes_]:
    """Return what `Text.string` found, as strings."""
    joined = np.stack(rows, axis=1)
    return joined.view(f"S{len(rows) * WORD_BYTES}").ravel()


def before(char: bytes, words: Words) -> Places:
    """Return how many bytes precede the first `char` of each word; 8 where there is none."""
    differing = words ^ ord(char) * _EVERY
    found = (differing - _EVERY) & ~differing & _HIGH_BIT  # its lowest bit is where it is
    places: Places = np.bitwise_count((found - 1) & ~found).astype(np.intp) >> 3
    return places


def before_number(words: Words) -> Places:
    """Return how many bytes precede the digits and underscores at the end of each word."""
    from_zero, from_underscore = words ^ ord("0") * _EVERY, words ^ ord("_") * _EVERY
    no_digit = (from_zero & _LOW_BITS) + 0x76 * _EVERY | from_zero  # in the high bit, 10 or more
    no_underscore = (from_underscore & _LOW_BITS) + _LOW_BITS | from_underscore  # 1 or more
    others = no_digit & no_underscore & _HIGH_BIT
    for bits in (8, 16, 32):
        others |= others >> bits  # and all that precede them
    places: Places = np.bitwise_count(others).astype(np.intp)
    return places


def number(words: Words, size: Sizes) -> tuple[Words, Bools]:
    """Read the first `size` (0 to 8) bytes of each word as a decimal number.

    Returns the numbers, and where they mean something: where there are digits and nothing else.
    """
    digits = (words << _TO_THE_END[size] | _LEADING_ZEROS[size]) - ord("0") * _EVERY
    are_digits: Bools = (digits | digits + 6 * _EVERY) & 0xF0 * _EVERY == 0
    pairs = digits * 10 + (digits >> 8) & 0x00FF00FF00FF00FF
    fours = pairs * 100 + (pairs >> 16) & 0x0000FFFF0000FFFF
    eights: Any = fours * 10_000 + (fours >> 32) & 0xFFFFFFFF
    return eights, are_digits  # numpy's stubs lose the sign in shifts


def mixed(words: Iterable[Words]) -> Words:
    """Hash rows of words; NULs behind a string do not change its hash."""
    hashes: Any = 0
    for word in reversed(list(words)):
        hashes = _mix(hashes ^ word)
    return hashes  # type: ignore[no-any-return]  # an array


def _mix(words: Words) -> Words:
    products: Words = words * _MIX
    folded: Any = products ^ products >> 32
    return folded  # type: ignore[no-any-return]  # likewise
