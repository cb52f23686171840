"""Properties of all batch parsers, for any input."""

from functools import partial
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from collectors.batch import alps, hostlists, htcondor, lsf, pbs, sacct, sge, states
from tests.properties import examples

BERLIN = ZoneInfo("Europe/Berlin")
CASES = [
    pytest.param((partial(sacct.parse, zone=BERLIN), "slurm_sacct", name), id=f"sacct {name}")
    for name in ("header.txt", "no_header.txt", "closed.txt")
]
CASES += [
    pytest.param((partial(pbs.parse, zone=BERLIN), "pbs_accounting", name), id=f"pbs {name}")
    for name in ("openpbs.txt", "torque.txt", "wrapped.txt")
]
CASES += [
    pytest.param((parse, form, name), id=f"{form} {name}")
    for parse, form, name in (
        (alps.parse, "alps", "messages.txt"),
        (htcondor.parse, "htcondor_history", "history"),
        (htcondor.parse, "htcondor_history", "long.txt"),
        (lsf.parse, "lsf_acct", "lsb.acct"),
        (sge.parse, "sge_accounting", "accounting"),
    )
]

PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")  # gzip and zstd: tested with the source
SHARP = [b"|", b"\n", b";", b"\0", b'"', b"[0-9", b"9" * 30, b"=", b" end=1 ", b"node_list=1, "]
DAMAGE = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 200), st.binary(max_size=5) | st.sampled_from(SHARP)),
    max_size=8,
)


@pytest.fixture(scope="session", params=CASES)
def case(request, source, whole, fixture_text):
    """A parser, as a function of bytes, and a valid file."""
    parse, form, name = request.param

    def parsed(text, chunk_bytes=1 << 20):
        return whole(parse(source(text, chunk_bytes=chunk_bytes)))

    return parsed, fixture_text(form, name)


def damaged(text, damage):
    """Replace some bytes, but not the first, which could make it a gzip file."""
    for where, length, other in damage:
        at = 1 + int(where * len(text))
        text = text[:at] + other + text[at + length :]
    return text


def assert_sound(parsed, text):
    """Every line is accounted for, and accepted rows can be stored."""
    account = parsed.account
    assert account.lines == text.count(b"\n") + (not text.endswith(b"\n") and text != b"")
    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert account.accepted == parsed.table.height
    assert account.rejected == parsed.rejects.height
    for row in parsed.table.to_dicts():
        assert row["batch_id"].isascii()
        assert row.get("state", states.UNKNOWN) in states.STATES
        if row["started_at"] and row["ended_at"]:
            assert row["started_at"] <= row["ended_at"]
        hostlists.expand(row["nodes"])


@given(damage=DAMAGE)
@settings(max_examples=examples(50))
def test_every_line_of_a_damaged_file_is_accounted_for(case, damage):
    parse, good = case
    text = damaged(good, damage)

    assert_sound(parse(text), text)


@given(text=st.binary(max_size=300))
@settings(max_examples=examples(50))
def test_arbitrary_bytes_are_accounted_for(case, text):
    assume(not text.startswith(PACKED))
    assume(text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in {b"{", b"["})  # JSON has no lines
    parse, _ = case

    assert_sound(parse(text), text)


@given(damage=DAMAGE, chunk_bytes=st.integers(1, 3_000))
@settings(max_examples=examples(20))
def test_chunk_boundaries_do_not_matter(case, damage, chunk_bytes):
    parse, good = case
    text = damaged(good, damage)

    at_once = parse(text)
    in_chunks = parse(text, chunk_bytes)

    assert in_chunks.table.equals(at_once.table)
    assert in_chunks.rejects.equals(at_once.rejects)
    assert in_chunks.account == at_once.account


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"|" * 500_000, id="bars"),
        pytest.param(b";" * 500_000, id="semicolons"),
        pytest.param(b"[" * 500_000, id="brackets"),
        pytest.param(b"\n" * 100_000, id="newlines"),
        pytest.param(b"\x7fELF\x02\x01\x01\0" * 50_000, id="binary"),
    ],
)
def test_nonsense_is_accounted_for(case, text):
    parse, _ = case

    assert_sound(parse(text), text)
