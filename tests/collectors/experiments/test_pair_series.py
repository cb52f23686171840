"""Series of transfers between pairs."""

import csv
import io

from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.experiments import pair_series
from collectors.parsed import Account
from tests.properties import examples


def test_each_line_is_a_transfer_or_has_a_reason(source, whole, fixture_text):
    parsed = whole(pair_series.parse(source(fixture_text("pair_series", "series.csv"))))

    assert parsed.account == Account(lines=13, accepted=4, rejected=7, irrelevant=2)
    assert parsed.table.rows()[1:3] == [
        (3, 0.0, "nid00002", "OST0001", 33_554_432, 0.8, 0.0, 0.0, 2.0),
        (4, 0.01, "nid00003", "OST0002", 33_554_432, 0.41, None, None, None),
    ]
    assert [(line, reason) for line, _, reason in parsed.rejects.rows()] == [
        (7, "seconds is not a number above 0"),
        (8, "bytes is not a whole number from 0 to 2^53"),
        (9, "bytes is not a whole number from 0 to 2^53"),
        (10, "time is not a number of seconds"),
        (11, "client and target need names of 1 to 64 characters"),
        (12, "a position is not a number"),
        (13, "5 cells instead of 8"),
    ]


def test_a_file_without_a_needed_column_is_rejected(source, whole):
    parsed = whole(pair_series.parse(source("time,client,bytes,seconds", "0,c,1,1")))

    assert parsed.table.is_empty()
    assert parsed.account == Account(lines=2, accepted=0, rejected=2, irrelevant=0)
    assert "has no column target" in parsed.rejects["reason"][0]


_TRANSFER = st.tuples(
    st.floats(0, 1e6),
    st.integers(1, 99),
    st.integers(1, 99),
    st.integers(0, 2**40),
    st.floats(0.1, 9),
)


@given(st.lists(_TRANSFER, max_size=60), st.integers(20, 400))
@settings(max_examples=examples(30))
def test_transfers_do_not_depend_on_chunks(source, whole, transfers, chunk_bytes):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["client", "target", "seconds", "bytes", "time"])
    writer.writerows((f"c{c}", f"t{t}", s, size, at) for at, c, t, size, s in transfers)

    chunks = source(text.getvalue().encode(), chunk_bytes=chunk_bytes)
    parsed = whole(pair_series.parse(chunks))

    assert parsed.rejects.is_empty()
    assert parsed.table.select("start_s", "client", "target", "bytes", "duration_s").rows() == [
        (at, f"c{c}", f"t{t}", size, s) for at, c, t, size, s in transfers
    ]
