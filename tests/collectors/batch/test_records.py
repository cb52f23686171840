import tracemalloc

from collectors.batch import records
from collectors.batch.records import Record, numbered_lines, parts
from collectors.batch.values import Unreadable
from collectors.parsed import Account
from collectors.tables import JOBS


def read(record):
    if record.text == "bad":
        raise Unreadable("it is bad")
    return {"name": record.text} if record.text else None


def test_lines_keep_their_numbers_across_chunks(source):
    lines = list(numbered_lines(source("one", "two", "", "four", chunk_bytes=5)))

    assert lines == [(1, "one"), (2, "two"), (3, ""), (4, "four")]


def test_carriage_returns_are_removed(source):
    assert list(numbered_lines(source(b"one\r\ntwo\r\n"))) == [(1, "one"), (2, "two")]


def test_unstorable_bytes_are_replaced(source):
    assert list(numbered_lines(source(b"a\0b\xff\n"))) == [(1, "a\ufffdb\ufffd")]


def test_leading_nuls_are_removed(source):
    assert list(numbered_lines(source(b"one\n\0\0\0two\n\0\0\n\0"))) == [
        (1, "one"),
        (2, "two"),
        (3, ""),
        (4, ""),
    ]


def test_only_a_newline_ends_a_line(source):
    assert list(numbered_lines(source("a\x0b\x0c\x1d\x85\u2028b\rc".encode()))) == [
        (1, "a\x0b\x0c\x1d\x85\u2028b\rc")
    ]


def test_every_line_is_accounted_for_and_only_first_lines_are_records():
    [part] = parts(JOBS, [Record(1, "a\nb", 2), Record(3, "bad", 3), Record(6, "")], read)

    assert part.table.select("line", "name").rows() == [(1, "a\nb")]
    assert part.rejects.rows() == [(3, "bad", "it is bad")]
    assert part.account == Account(lines=6, accepted=1, rejected=1, irrelevant=4)


def test_long_input_is_split_into_parts():
    lines = records.PART_LINES * 5 // 2

    handed = list(parts(JOBS, (Record(line, "a") for line in range(1, lines + 1)), read))

    assert [part.account.lines for part in handed] == [
        records.PART_LINES,
        records.PART_LINES,
        records.PART_LINES // 2,
    ]


def test_long_lines_make_smaller_parts():
    text = "a" * (records.PART_CHARACTERS // 2)

    handed = list(parts(JOBS, (Record(line, text) for line in range(1, 6)), read))

    assert [part.account.lines for part in handed] == [2, 2, 1]


def test_empty_input_has_no_parts():
    assert list(parts(JOBS, [], read)) == []


def test_memory_does_not_grow_with_the_number_of_bad_lines(source):
    text = b"bad\n" * 60_000
    tracemalloc.start()

    lines = (Record(line, text) for line, text in numbered_lines(source(text)))
    rejected = sum(part.account.rejected for part in parts(JOBS, lines, read))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert rejected == 60_000
    assert peak < 10_000_000
