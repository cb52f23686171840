"""Evaluation of a rule for one subject."""

import polars as pl
import pytest

from ioportal.rules.evidence import EVIDENCE


@pytest.fixture
def evaluate():
    """Evaluate a rule for a subject with some figures; return the numbers of a finding, or None."""

    def run(rule, **figures):
        evidence = pl.DataFrame([{"subject": "job 1", **figures}], schema=EVIDENCE[rule.subject])
        findings = rule.check(evidence, rule.defaults)
        return findings["numbers"].to_list()[0] if findings.height else None

    return run
