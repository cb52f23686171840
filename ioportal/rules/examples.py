"""Advice for the examples of rules."""

import polars as pl

from ioportal.rules.evidence import EVIDENCE
from ioportal.rules.rule import Rule


def advice(rule: Rule) -> str:
    """Return the advice for the rule's example with the default thresholds.

    Raises:
        ValueError: the rule does not flag its example.
    """
    row = {"subject": rule.example.title, **rule.example.evidence}
    findings = rule.check(pl.DataFrame([row], schema=EVIDENCE[rule.subject]), rule.defaults)
    if findings.is_empty():
        raise ValueError(f"{rule.code} does not flag its example: {rule.example.title}")
    return rule.advise(findings["numbers"].to_list()[0], rule.defaults)
