"""Tables of runs: labels, metrics in base units, and refused input."""

import json
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.experiments import run_table
from collectors.parsed import Account
from tests.properties import examples

UTC = ZoneInfo("UTC")


@pytest.fixture
def read(source, whole):
    return lambda *lines: whole(run_table.parse(source(*lines), UTC))


def named(pairs, value="value"):
    return {pair["name"]: pair[value] for pair in pairs}


def test_a_scaling_test_has_a_scale_and_a_time_for_each_run(read, fixture_text):
    parsed = read(fixture_text("runs", "scaling.csv"))

    assert parsed.account == Account(lines=26, accepted=25, rejected=0, irrelevant=1)
    assert parsed.table["scale"].value_counts(sort=True)["count"].to_list() == [5] * 5
    first = parsed.table.row(0, named=True)
    assert named(first["metrics"]) == {"duration_s": 7.8}
    assert named(first["labels"]) == {"repetition": "1"}


def test_text_is_a_label_and_numbers_are_metrics_in_base_units(read, fixture_text):
    parsed = read(fixture_text("runs", "access.csv"))

    first = parsed.table.row(0, named=True)
    assert named(first["labels"]) == {"protocol": "dcap", "locality": "local"}
    assert named(first["metrics"]) == {"read_ahead_bytes": 32_768, "cpu_s": 2_006, "wall_s": 3_400}
    # A hung run has no times, and counts.
    assert parsed.table.filter(state="hung").height == 1


def test_objects_have_steps_and_times_with_offsets(read, fixture_text):
    parsed = read(fixture_text("runs", "stage_in.json"))

    first, *_, last = parsed.table.rows(named=True)
    assert named(first["steps"], "seconds") == {"write": 40, "checksum": 25, "read": 60}
    assert first["started_at"].isoformat() == "2010-09-21T08:00:00+00:00"
    assert (first["events"], named(first["labels"])) == (5_000, {"release": "15.6.9"})
    assert (last["state"], last["metrics"]) == ("hung", [])


def test_each_damaged_line_is_rejected_with_its_reason(read, fixture_text):
    parsed = read(fixture_text("runs", "damaged.csv"))

    assert parsed.table["run"].to_list() == ["r1", "r4", "r8"]
    assert [(line, reason) for line, _, reason in parsed.rejects.rows()] == [
        (3, "run 'r1' is the same as in line 2"),
        (4, "wall_s '-3' is negative"),
        (5, "wall_s is empty: only a run whose state is failed or hung has no time"),
        (
            7,
            (
                "wall_s '3 min' is not a number, unlike earlier values; for text, name the column "
                "label:wall_s"
            ),
        ),
        (8, "3 cells instead of 7"),
        (9, "wall_s '9e999' is not a finite number"),
        (11, "a quotation mark has no counterpart on its line"),
        (12, "nodes 'one' is not a number; the unit belongs to the column"),
        (13, "started_at 'yesterday' is not a time"),
        (14, "state 'asleep' is none of finished, failed, hung"),
    ]


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        pytest.param("wall_s,wall_ms", "both give 'wall_s'", id="one quantity in two units"),
        pytest.param("nodes,scale,wall_s", "both give 'scale'", id="two scales"),
        pytest.param("wall_s,wall_s", "both give 'wall_s'", id="a column twice"),
        pytest.param("wall time,arm", "'wall time'", id="a name with a blank"),
    ],
)
def test_a_header_that_is_not_valid_rejects_the_file(read, header, reason):
    parsed = read(header, "1,2,3", "2,3,4")

    assert parsed.table.is_empty()
    assert parsed.account == Account(lines=3, accepted=0, rejected=3, irrelevant=0)
    assert reason in parsed.rejects["reason"][0]


@given(
    st.dictionaries(
        st.sampled_from(["wall_s", "io_ms", "size_mib", "rate_gb_per_s", "cpu_percent", "retries"]),
        st.floats(0, 1e9),
        min_size=1,
    )
)
@settings(max_examples=examples(50))
def test_csv_and_json_give_the_same_metrics(source, whole, values):
    header, line = ",".join(values), ",".join(map(repr, values.values()))

    of_csv = whole(run_table.parse(source(header, line), UTC))
    of_json = whole(run_table.parse(source(json.dumps([values])), UTC))

    assert of_csv.table["metrics"].to_list() == of_json.table["metrics"].to_list()
