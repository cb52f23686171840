import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.words import MOST_WORDS, Text, before, before_number, mixed, number, strings

eight_bytes = st.binary(min_size=8, max_size=8)
names = st.binary(max_size=8 * MOST_WORDS).filter(lambda name: b"\0" not in name)


def word(text):
    return np.frombuffer(text, np.uint64)


def of(*sizes):
    return np.array(sizes, np.intp)


def test_words_begin_at_any_byte():
    text = Text(b"abcdefghijkl")

    assert text.words(of(0, 3, 4)).tobytes() == b"abcdefghdefghijkefghijkl"


@given(st.binary(min_size=80, max_size=90), st.integers(0, 10), names)
def test_a_literal_is_found_where_it_stands_and_nowhere_else(text, place, literal):
    literal = literal or b"x"
    written = text[:place] + literal + text[place:]

    assert Text(written).says(literal, of(place)).tolist() == [True]
    assert Text(text).says(literal, of(place)).tolist() == [text.startswith(literal, place)]


@given(names, names)
def test_strings_come_back_from_their_words(name, other):
    text = Text(b"<" + name + b">" + other + bytes(8 * MOST_WORDS))

    rows = text.string(of(1, len(name) + 2), of(len(name), len(other)), MOST_WORDS)

    assert strings(rows).tolist() == [name, other]


@given(eight_bytes, st.integers(0, 255))
def test_the_first_of_a_byte_is_found(text, char):
    place = text.find(char)

    assert before(bytes([char]), word(text)).tolist() == [place if place >= 0 else 8]


@given(st.one_of(eight_bytes, st.text("0_a9\x7f", min_size=8, max_size=8).map(str.encode)))
def test_a_number_at_the_end_is_left_out(text):
    assert before_number(word(text)).tolist() == [len(text.rstrip(b"0123456789_"))]


@given(
    st.one_of(eight_bytes, st.text("0123456789:/", min_size=8, max_size=8).map(str.encode)),
    st.integers(0, 8),
)
def test_digits_and_nothing_else_are_a_number(text, size):
    numbers, are_digits = number(word(text), size)

    digits = text[:size]
    assert are_digits.tolist() == [digits.isdigit()]
    if are_digits[0]:
        assert numbers.tolist() == [int(digits)]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=4), st.integers(0, 4))
def test_nuls_behind_a_string_do_not_change_its_hash(row, nuls):
    rows = [np.array([value], np.uint64) for value in row]
    padding = [np.zeros(1, np.uint64)] * nuls

    assert mixed(rows + padding).tolist() == mixed(rows).tolist()


def test_similar_strings_have_hashes_of_their_own():
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
