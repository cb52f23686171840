"""Evidence of one subject, and what a rule says of it."""

import polars as pl
import pytest

from ioportal.analysis.rules.evidence import EVIDENCE


@pytest.fixture
def found():
    """Judge a subject of which only some figures are known; return the numbers, or None."""

    def run(rule, **figures):
        evidence = pl.DataFrame([{"subject": "one", **figures}], schema=EVIDENCE[rule.subject])
        findings = rule.check(evidence, rule.defaults)
        return findings["numbers"].to_list()[0] if findings.height else None

    return run
