"""What rules say of their examples."""

import polars as pl

from ioportal.analysis.rules.evidence import OF_SUBJECT
from ioportal.analysis.rules.rule import Rule


def advice(rule: Rule) -> str:
    """Return what the example's subject is told by the rule's own limits.

    Raises:
        ValueError: the rule does not find its example.
    """
    row = {"subject": rule.example.who, **rule.example.evidence}
    findings = rule.check(pl.DataFrame([row], schema=OF_SUBJECT[rule.subject]), rule.defaults)
    if findings.is_empty():
        raise ValueError(f"{rule.code} does not find its example: {rule.example.who}")
    return rule.advise(findings["numbers"].to_list()[0], rule.defaults)
