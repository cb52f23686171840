import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.nfs import nfsd
from collectors.parsed import Account
from collectors.tables import CALLS, SERVICE_COUNTERS
from tests.collectors.lustre.counters import FIXTURES, awk, read

FOLDER = FIXTURES / "nfsd"

SUMS = r"""
    $1 == "rpc" { calls = $2; known++; next }
    $1 == "io" { bytes = $2 + $3; known++; next }
    $1 ~ /^proc(2|3|4ops)$/ { for (i = 3; i <= NF; i++) procedures += $i; known++; next }
    END { printf "%.0f %.0f %.0f %d", calls, bytes, procedures, NR - known }
"""


def parse(text):
    return read(nfsd, SERVICE_COUNTERS, text.encode())


def counters(rows):
    return dict(rows.select("counter", "samples").rows())


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.name)
def test_totals_of_every_file_agree_with_awk(path):
    calls, bytes_, procedures, irrelevant = awk(SUMS, path.read_bytes())

    rows, rejects, account = read(nfsd, SERVICE_COUNTERS, path.read_bytes())
    counted = counters(rows)

    assert rejects.is_empty()
    assert counted.pop(CALLS) == calls
    assert rows.filter(unit="bytes")["sum"].sum() == bytes_
    assert sum(counted.values()) == procedures
    assert account.irrelevant == irrelevant
    assert set(rows["service"]) == {"nfsd"}


def test_procedures_have_the_names_of_their_protocol():
    rows, _, _ = parse(
        "proc2 18 0 0 0 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        "proc3 22 0 0 0 7 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 0 0 0\n"
        "proc4ops 78 " + "0 " * 18 + "3 " + "0 " * 57 + "4 2\n"
    )

    assert counters(rows) == {
        "nfs2_lookup": 5,
        "nfs3_lookup": 7,
        "nfs3_readdirplus": 1,
        "nfs4_open": 3,
        "nfs4_op_76": 4,  # of a later version of the protocol
        "nfs4_op_77": 2,
    }


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("rpc", "'rpc' has 0 values, not 1 or more"),
        ("io 7", "'io' has 1 values, not 2 or more"),
        ("rpc many 0", "value 'many' is not a whole number"),
        ("rpc -3 0", "value -3 is negative"),
        ("rpc 9007199254740992", "value 9007199254740992 is too large"),
        ("proc3 22 1 2", "'proc3' is cut: it does not have as many values as it states"),
        ("proc3", "'proc3' is cut: it does not have as many values as it states"),
    ],
)
def test_unreadable_lines_are_rejected(line, reason):
    rows, rejects, account = parse(f"{line}\nth 8 0\n")

    assert rows.is_empty()
    assert rejects.rows() == [(1, line, reason)]
    assert account == Account(lines=2, rejected=1, irrelevant=1)


def test_counters_count_once():
    rows, rejects, account = parse("rpc 5 0 0 0 0\nrpc 5 0 0 0 0\n")

    assert counters(rows) == {CALLS: 5}
    assert rejects["reason"].to_list() == [nfsd.REPEATED]
    assert account == Account(lines=2, accepted=1, rejected=1)


@given(st.lists(st.text(alphabet="rpcio34ops 0189-\x00\n", max_size=40)))
def test_every_line_has_an_outcome(texts):
    text = "\n".join(texts)

    rows, rejects, account = parse(text)

    assert account.lines == text.count("\n") + (text[-1:] not in {"", "\n"})
    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert rejects.height == account.rejected
    assert rows["samples"].is_between(0, 2**53).all()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("io 123456789 98765", "the line is cut: its last number may be incomplete"),
        ("proc4ops 129 " + "1 " * 129 + "\n", "'proc4ops' has 130 values, more than 128"),
    ],
)
def test_cut_numbers_and_endless_lines_are_rejected(text, reason):
    rows, rejects, _ = parse(text)

    assert rows.is_empty()
    assert rejects["reason"].to_list() == [reason]


def test_the_file_of_a_client_is_refused():
    text = "net 0 0 0 0\nrpc 152 1 152\nproc3 3 0 5 6\nproc4 2 1 2\nio 5 6\n"

    rows, rejects, account = parse(text)

    assert rows.is_empty()
    assert set(rejects["reason"]) == {nfsd.CLIENT}
    assert account == Account(lines=5, rejected=3, irrelevant=2)
