import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.byte_scan import (
    Marks,
    Text,
    before,
    cut,
    lowest,
    mixed,
    number,
    strings,
    without_number,
)

eight_bytes = st.binary(min_size=8, max_size=8)
WORDS = 8
names = st.binary(max_size=8 * WORDS).filter(lambda name: b"\0" not in name)


def word(text):
    return np.frombuffer(text, np.uint64)


def of(*sizes):
    return np.array(sizes, np.intp)


def test_words_begin_at_any_byte():
    text = Text(b"abcdefghijkl")

    assert text.words(of(0, 3, 4)).tobytes() == b"abcdefghdefghijkefghijkl"


@given(st.binary(min_size=100, max_size=110), st.integers(0, 10), names)
def test_a_literal_is_found_where_it_stands_and_nowhere_else(text, place, literal):
    literal = literal or b"x"
    written = text[:place] + literal + text[place:]

    found, words = Text(written).after(literal, of(place), words=2)

    assert found.tolist() == [True]
    assert b"".join(word.tobytes() for word in words) == text[place : place + 16]
    found, _ = Text(text).after(literal, of(place), words=0)
    assert found.tolist() == [text.startswith(literal, place)]


def test_where_the_text_ends_it_does_not_go_on():
    text = Text(b"a colon: and 8 more")

    found, _ = text.after(b":", of(7, 10, 18, 19, 1_000), words=1)

    assert found.tolist() == [True, False, False, False, False]


def test_a_byte_is_marked_wherever_it_stands():
    text = b"a:bc::d" + b"." * 45 + b":" + b"." * 80
    marks = Marks(np.frombuffer(text, np.uint8), b":")

    for place in range(53):
        (bits,) = marks.behind(of(place)).tolist()
        assert [n for n in range(57) if bits >> n & 1] == [
            n for n in range(57) if text[place + n : place + n + 1] == b":"
        ]


@given(st.lists(st.sampled_from([b":", b"a", b"." * 90]), max_size=90).map(b"".join))
def test_all_places_of_a_byte_are_told_in_order(text):
    marks = Marks(np.frombuffer(text, np.uint8), b":")

    assert marks.places().tolist() == [place for place, byte in enumerate(text) if byte == ord(":")]


@given(st.integers(0, 2**64 - 1))
def test_the_lowest_bit_is_found(bits):
    preceding = f"{bits:064b}"[::-1].find("1")

    assert lowest(np.array([bits], np.uint64)).tolist() == [preceding if bits else 64]


@given(names, names)
def test_strings_come_back_from_their_words(name, other):
    text = Text(b"<" + name + b">" + other + bytes(8 * WORDS))

    _, rows = text.after(b"<", of(0, 0), WORDS)
    _, other_rows = text.after(b">", of(len(name) + 1), WORDS)

    assert strings(cut(rows, of(len(name), 0))).tolist() == [name, b""]
    assert strings(cut(other_rows, of(len(other)))).tolist() == [other]


@given(eight_bytes, st.integers(0, 255))
def test_the_first_of_a_byte_is_found(text, char):
    place = text.find(char)

    assert before(bytes([char]), word(text)).tolist() == [place if place >= 0 else 8]


@given(st.one_of(names, st.text("0_a9\x7f", max_size=24).map(str.encode)))
def test_a_number_at_the_end_is_left_out(name):
    rows = list(np.frombuffer(name.ljust(8 * WORDS, b"\0"), np.uint64).reshape(WORDS, 1))

    assert strings(without_number(rows)).tolist() == [name.rstrip(b"0123456789_")]


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
