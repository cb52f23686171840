"""The compiled path for job_stats gives the rows of the exact path."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from collectors.lustre import job_stats
from collectors.tables import JOB_COUNTERS
from tests.collectors.lustre.counters import read
from tests.collectors.lustre.test_job_stats import FOLDER, SOUND
from tests.properties import examples

job_stats_plain = pytest.importorskip("collectors.lustre.job_stats_plain")

TEXTS = [path.read_bytes()[:3_000] for path in SOUND]
MUTATIONS = st.tuples(
    st.sampled_from(TEXTS),
    st.lists(
        st.tuples(
            st.floats(0, 1),  # place
            st.sampled_from([0, 1, 1, 9, 200]),  # removed bytes
            st.sampled_from([b"", *(bytes([char]) for char in b'0 ,:{}\n\t-"_ax\\\x00\xff')]),
        ),
        max_size=3,
    ),
)


def mutated(text, mutations):
    for place, removed, inserted in mutations:
        at = int(place * len(text))
        text = text[:at] + inserted + text[at + removed :]
    return text


def exact(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job_stats, "_plain_path", lambda: None)  # as without numba
        return read(job_stats, JOB_COUNTERS, *arguments)


def assert_same(text, chunk_bytes):
    rows, rejects, account = read(job_stats, JOB_COUNTERS, text, chunk_bytes)
    exact_rows, exact_rejects, exact_account = exact(text, chunk_bytes)

    assert_frame_equal(rows, exact_rows)
    assert_frame_equal(rejects, exact_rejects)
    assert account == exact_account


@pytest.mark.parametrize(
    "name", ["mdt_2.8.txt", "mdt_2.14.txt", "ost_2.5.txt", "get_param_2.16.txt"]
)
def test_whole_files_are_plain(name):
    text = (FOLDER / name).read_bytes()

    assert job_stats_plain.read(text) is not None
    assert_same(text, 1 << 25)


@given(MUTATIONS, st.sampled_from([300, 2_000, 1 << 25]))
@settings(max_examples=examples(60))
def test_damaged_texts_give_the_same(mutations, chunk_bytes):
    assert_same(mutated(*mutations), chunk_bytes)


def test_a_second_header_concerns_the_next_chunks_too():
    entry = b"- job_id: %d\n  open: { samples: 1, unit:  reqs }\n"
    text = b"job_stats:\n" + entry % 1 + b"job_stats:\n" + b"".join(entry % n for n in range(2, 9))

    assert_same(text, 60)
