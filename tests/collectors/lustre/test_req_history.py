import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.lustre import req_history
from collectors.parsed import Account
from collectors.source import Source
from collectors.tables import REJECTS, REQUEST_WINDOWS
from tests.collectors.lustre.counters import FIXTURES, awk, read
from tests.properties import examples

FOLDER = FIXTURES / "lustre_req_history"

NAME = "mds.MDS.mdt.req_history="
# Before the reply is sent, the printed difference is the negative arrival time.
REQUEST = (
    "6439256775345733632:lake-MDT0000:12345-1@gni:x1510963712345678:520:Interpret:"
    "1499256300.000500:-1499256300.999500s(-7.0s) opc 101"
)
COUNT = r"""
    /^[A-Za-z][^ =]*=/ { relevant = /req_history=/; named = 1; irrelevant++; next }
    named && !relevant { irrelevant++; next }
    / opc / { if (seen[$1]++) irrelevant++; else requests++; next }
    { irrelevant++ }
    END { printf "%d %d", requests, irrelevant }
"""


def parse(*lines, chunk_bytes=1 << 25):
    text = "".join(f"{line}\n" for line in lines).encode()
    return read(req_history, REQUEST_WINDOWS, text, chunk_bytes)


def test_a_request_is_counted_by_nid_service_and_opcode():
    rows, rejects, account = parse(NAME, REQUEST)

    [row] = rows.to_dicts()
    assert (row["nid"], row["service"], row["opcode"], row["count"]) == ("1@gni", "mdt", 101, 1)
    assert row["start"].isoformat() == "2017-07-05T12:05:00+00:00"
    assert row["first"].microsecond == 500
    assert dict(rows.schema) == REQUEST_WINDOWS.columns
    assert dict(rejects.schema) == REJECTS.columns
    assert account == Account(lines=2, accepted=1, irrelevant=1)


@pytest.mark.parametrize("chunk_bytes", [1, 300, 1 << 25])
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_counts_of_every_file_agree_with_awk(path, chunk_bytes):
    requests, irrelevant = awk(COUNT, path.read_bytes())

    rows, rejects, account = read(req_history, REQUEST_WINDOWS, path.read_bytes(), chunk_bytes)

    assert rejects.rows() == []
    assert rows["count"].sum() == requests == account.accepted
    assert account.irrelevant == irrelevant


def test_services_are_named_after_their_threads():
    text = (FOLDER / "get_param_2.12.txt").read_bytes()

    rows, _, _ = read(req_history, REQUEST_WINDOWS, text)
    [plain] = req_history.parse(Source(io.BytesIO(REQUEST.encode()), "a text"), "mdt_readpage")

    assert set(rows["service"]) == {"mdt", "mdt_rdpg"}
    assert set(plain.table["service"]) == {"mdt_rdpg"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (REQUEST[:90], req_history.NOT_A_REQUEST),
        (REQUEST.replace("opc 101", "opc 99999"), req_history.OUT_OF_RANGE),
        (REQUEST.replace("1499256300.000500", "12.000500"), req_history.OUT_OF_RANGE),
        ("something else", req_history.NOT_A_REQUEST),
    ],
)
def test_unreadable_lines_are_rejected(line, reason):
    rows, rejects, account = parse(NAME, line, REQUEST)

    assert rows["count"].sum() == 1
    assert rejects.select("line", "reason").rows() == [(2, reason)]
    assert account == Account(lines=3, accepted=1, rejected=1, irrelevant=1)


@settings(max_examples=examples(60))
@given(st.binary(max_size=200), st.integers(0, 200))
def test_random_bytes_never_raise(noise, offset):
    text = f"{NAME}\n{REQUEST}\n".encode()

    _, _, account = read(req_history, REQUEST_WINDOWS, text[:offset] + noise + text[offset:])

    assert account.lines == account.accepted + account.rejected + account.irrelevant
