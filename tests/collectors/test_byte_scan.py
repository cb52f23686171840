import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.byte_scan import (
    ByteIndex,
    Text,
    index_of,
    mixed,
    number,
    strings,
    trailing_zeros,
    truncated,
    without_number,
)

eight_bytes = st.binary(min_size=8, max_size=8)
WORDS = 8
names = st.binary(max_size=8 * WORDS).filter(lambda name: b"\0" not in name)


def word(text):
    return np.frombuffer(text, np.uint64)


def array(*sizes):
    return np.array(sizes, np.intp)


def test_words_are_read_at_any_offset():
    text = Text(b"abcdefghijkl")

    assert text.words(array(0, 3, 4)).tobytes() == b"abcdefghdefghijkefghijkl"


@given(st.binary(min_size=100, max_size=110), st.integers(0, 10), names)
def test_a_literal_matches_at_its_offset_only(text, offset, literal):
    literal = literal or b"x"
    written = text[:offset] + literal + text[offset:]

    matches, words = Text(written).words_after(literal, array(offset), words=2)

    assert matches.tolist() == [True]
    assert b"".join(word.tobytes() for word in words) == text[offset : offset + 16]
    matches, _ = Text(text).words_after(literal, array(offset), words=0)
    assert matches.tolist() == [text.startswith(literal, offset)]


def test_words_beyond_the_end_do_not_match():
    text = Text(b"a colon: and 8 more")

    matches, _ = text.words_after(b":", array(7, 10, 18, 19, 1_000), words=1)

    assert matches.tolist() == [True, False, False, False, False]


def test_bits_mark_the_occurrences_of_a_byte():
    text = b"a:bc::d" + b"." * 45 + b":" + b"." * 80
    index = ByteIndex(np.frombuffer(text, np.uint8), b":")

    for offset in range(53):
        (bits,) = index.bits_from(array(offset)).tolist()
        assert [n for n in range(57) if bits >> n & 1] == [
            n for n in range(57) if text[offset + n : offset + n + 1] == b":"
        ]


@given(st.lists(st.sampled_from([b":", b"a", b"." * 90]), max_size=90).map(b"".join))
def test_offsets_of_a_byte_are_sorted_and_complete(text):
    index = ByteIndex(np.frombuffer(text, np.uint8), b":")

    assert index.offsets().tolist() == [at for at, byte in enumerate(text) if byte == ord(":")]


@given(st.integers(0, 2**64 - 1))
def test_trailing_zeros_are_counted(bits):
    zeros = f"{bits:064b}"[::-1].find("1")

    assert trailing_zeros(np.array([bits], np.uint64)).tolist() == [zeros if bits else 64]


@given(names, names)
def test_strings_survive_a_round_trip_through_words(first, second):
    text = Text(b"<" + first + b">" + second + bytes(8 * WORDS))

    _, first_rows = text.words_after(b"<", array(0, 0), WORDS)
    _, second_rows = text.words_after(b">", array(len(first) + 1), WORDS)

    assert strings(truncated(first_rows, array(len(first), 0))).tolist() == [first, b""]
    assert strings(truncated(second_rows, array(len(second)))).tolist() == [second]


@given(eight_bytes, st.integers(0, 255))
def test_index_of_a_byte_is_that_of_its_first_occurrence(text, char):
    index = text.find(char)

    assert index_of(bytes([char]), word(text)).tolist() == [index if index >= 0 else 8]


@given(st.one_of(names, st.text("0_a9\x7f", max_size=24).map(str.encode)))
def test_a_trailing_number_is_removed(name):
    rows = list(np.frombuffer(name.ljust(8 * WORDS, b"\0"), np.uint64).reshape(WORDS, 1))

    assert strings(without_number(rows)).tolist() == [name.rstrip(b"0123456789_")]


@given(
    st.one_of(eight_bytes, st.text("0123456789:/", min_size=8, max_size=8).map(str.encode)),
    st.integers(0, 8),
)
def test_only_digits_are_a_number(text, size):
    numbers, are_digits = number(word(text), size)

    digits = text[:size]
    assert are_digits.tolist() == [digits.isdigit()]
    if are_digits[0]:
        assert numbers.tolist() == [int(digits)]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.integers(0, 4))
def test_trailing_nuls_do_not_change_a_hash(row, nuls):
    rows = [np.array([value], np.uint64) for value in row]
    padding = [np.zeros(1, np.uint64)] * nuls

    assert mixed(rows + padding).tolist() == mixed(rows).tolist()


def test_similar_strings_have_distinct_hashes():
    texts = [
        f"10.{a}.{b}.{c}@o2ib{n}"
        for a in range(9)
        for b in range(30)
        for c in range(99)
        for n in (1, 2)
    ]
    padded = np.array(texts, "S24").view(np.uint64).reshape(-1, 3)

    hashes = mixed(list(padded.T))

    assert len(np.unique(hashes)) == len(texts)
    assert len(np.unique(hashes % 2**20)) == pytest.approx(
        2**20 * (1 - np.exp(-len(texts) / 2**20)), rel=0.02
    )
