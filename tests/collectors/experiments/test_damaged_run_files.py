"""Properties of the parsers of runs and transfers, for any input."""

from functools import partial
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.experiments import ior, pair_series, run_table
from tests.properties import examples

UTC = ZoneInfo("UTC")
CASES = {
    "runs/scaling.csv": partial(run_table.parse, zone=UTC),
    "runs/stage_in.json": partial(run_table.parse, zone=UTC),
    "ior/version_3.1.txt": partial(ior.parse, zone=UTC),
    "ior/results.csv": partial(ior.parse, zone=UTC),
    "ior/verbose.json": partial(ior.parse, zone=UTC),
    "pair_series/series.csv": pair_series.parse,
}
SHARP = [b",", b"\n", b"\0", b'"', b"{", b"[" * 500, b"9" * 400, b"-", b"nan", b"inf", b"\xff"]
DAMAGE = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 200), st.binary(max_size=5) | st.sampled_from(SHARP)),
    max_size=8,
)


@pytest.fixture(scope="session", params=CASES)
def case(request, fixture_text):
    return CASES[request.param], fixture_text(*request.param.split("/"))


@given(damage=DAMAGE)
@settings(max_examples=examples(40))
def test_everything_is_accounted_for_and_accepted_figures_are_finite(case, source, whole, damage):
    parse, text = case
    for where, length, other in damage:
        at = 1 + int(where * len(text))
        text = text[:at] + other + text[at + length :]

    parsed = whole(parse(source(text)))

    account = parsed.account
    assert account.lines == account.accepted + account.rejected + account.irrelevant
    assert (account.accepted, account.rejected) == (parsed.table.height, parsed.rejects.height)
    for row in parsed.table.rows(named=True):
        figures = [each["value"] for each in row.get("metrics", [])]
        figures += [row[name] for name in ("bytes", "duration_s") if name in row]
        assert np.isfinite(figures).all()
        assert min(figures, default=0) >= 0
