"""Endings of findings: each names its cause."""

import polars as pl
import pytest

from ioportal.findings.flags import endings
from ioportal.findings.flags.flag_lifecycle import HYSTERESIS
from ioportal.rules import BY_CODE
from ioportal.rules.evidence import EVIDENCE
from ioportal.rules.rule import Subject


@pytest.mark.parametrize(
    ("code", "kind", "changes", "expected"),
    [
        pytest.param(
            "impact-of-many-jobs",
            Subject.USER,
            {"peak_impact_s": 7.5},
            "Below the thresholds again: Extra wait of others within five minutes "
            "7.5 s (ends below 8 s).",
            id="the measure is below",
        ),
        pytest.param(
            "impact-of-many-jobs",
            Subject.USER,
            {"impact_times": 1.5},
            "Below the thresholds again: Time of others' RPCs within these five minutes, relative "
            "to usual 1.5 times (ends below 1.6 times).",
            id="another figure is below",
        ),
        pytest.param(
            "impact-of-many-jobs",
            Subject.USER,
            {"parts_impact_s": 198_755.0},
            endings.NARROWER_GROUP,
            id="all thresholds are exceeded: a part is flagged instead",
        ),
        pytest.param(
            "impact-of-many-jobs",
            Subject.USER,
            {"impact_times": None},
            "Unknown in the latest data: Time of others' RPCs within these five minutes, relative "
            "to usual.",
            id="a figure is unknown",
        ),
        pytest.param(
            "metadata-operations",
            Subject.JOB,
            {"metadata_operations": 1_000.0},
            "Recomputed with changed data: below the thresholds: Metadata operations of the job "
            "1,000 operations (ends below 1,600,000 operations).",
            id="a total of a job only falls by another computation",
        ),
        pytest.param(
            "low-cpu-efficiency",
            Subject.JOB,
            {"has_ended": False},
            endings.NOT_APPLICABLE,
            id="the rule does not apply",
        ),
    ],
)
def test_an_ending_names_its_cause(code, kind, changes, expected):
    rule = BY_CODE[code]
    evidence = {"subject": "7", **rule.example.evidence, **changes}
    schema = EVIDENCE[rule.subject]
    row = {name: evidence.get(name) for name in schema}
    frame = pl.DataFrame([row], schema=schema)

    thresholds = rule.relaxed(rule.defaults, HYSTERESIS)

    assert endings.of_evidence(rule, kind, thresholds, frame) == {"7": expected}
