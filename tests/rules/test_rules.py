"""Properties of all rules."""

import re
import string

import polars as pl
import pytest

from ioportal.core.units import Source, Unit
from ioportal.rules import BY_CODE, RULES, examples
from ioportal.rules.evidence import EVIDENCE, USUAL_VALUES
from ioportal.rules.rule import Severity, advise, refuse_unusable

ALL = [pytest.param(rule, id=rule.code) for rule in RULES]


def fields(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def numbers_of(rule):
    """Return the names of a finding's numbers."""
    findings = rule.check(pl.DataFrame(schema=EVIDENCE[rule.subject]), rule.defaults)
    return {field.name for field in findings.schema["numbers"].fields}


@pytest.mark.parametrize("rule", ALL)
def test_unknown_figures_exceed_no_threshold(evaluate, rule):
    assert evaluate(rule) is None


@pytest.mark.parametrize("rule", ALL)
def test_each_threshold_has_a_number_with_a_unit(rule):
    assert rule.measure == next(iter(rule.thresholds))
    assert set(rule.thresholds) <= numbers_of(rule)
    assert all(rule.unit(number) for number in numbers_of(rule))


@pytest.mark.parametrize("rule", ALL)
def test_shares_have_thresholds_up_to_the_whole(rule):
    for threshold in rule.thresholds.values():
        if threshold.unit == Unit.SHARE:
            assert threshold.maximum == 1


@pytest.mark.parametrize("rule", ALL)
def test_advice_contains_only_numbers_and_thresholds(rule):
    available = numbers_of(rule) | {f"threshold_{name}" for name in rule.thresholds}

    assert rule.measure in fields(rule.advice)
    assert fields(rule.advice) <= available


@pytest.mark.parametrize("rule", ALL)
def test_advice_reports_unknown_numbers(rule):
    assert "unknown" in rule.advise(dict.fromkeys(numbers_of(rule)), rule.defaults)


@pytest.mark.parametrize("rule", ALL)
def test_a_rule_flags_its_example(evaluate, rule):
    figures = rule.example.evidence

    assert evaluate(rule, **figures) is not None
    assert "unknown" not in examples.advice(rule)
    assert set(figures) <= EVIDENCE[rule.subject].keys()


@pytest.mark.parametrize("rule", ALL)
def test_a_rule_declares_its_usual_values(rule):
    undeclared = USUAL_VALUES.keys() - set(rule.usual)
    evidence = pl.DataFrame(schema=EVIDENCE[rule.subject]).drop(undeclared, strict=False)

    assert rule.check(evidence, rule.defaults).is_empty()


def test_codes_are_unique():
    assert len({rule.code for rule in RULES}) == len(RULES)


def test_usable_advice_is_accepted():
    refuse_unusable("{opens:,.0f} opens, {share:.0%} of all; plain text", {"opens", "share"})


@pytest.mark.parametrize(
    ("advice", "message"),
    [
        ("{opnes:,.0f}", "{opnes} is unknown. Use one of: opens, share."),
        ("text {opens:x}", "{opens:x}: invalid format. Example: {opens:,.0f}."),
        ("{opens!r:,.0f}", "{opens:,.0f}: invalid format."),
    ],
)
def test_unusable_advice_is_refused(advice, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        refuse_unusable(advice, {"share", "opens"})


def test_advice_with_a_removed_number_shows_unknown():
    assert advise("{opens:.0f} of {nothing:,.0f}", {"opens": 1.0}, {}) == "1 of unknown"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (999.7, "1 kB"),
        (16_384, "16.4 kB"),
        (276_001_980_416, "276 GB"),
        (2e18, "2 EB"),
        (None, "unknown"),
    ],
)
def test_bytes_have_decimal_prefixes(size, text):
    assert advise("{read_bytes:B}", {"read_bytes": size}, {}) == text


def test_abuse_needs_a_multiple_of_the_threshold_and_a_duration():
    rule = next(rule for rule in RULES if rule.abuse_times == 5)

    def severity(times, *, has_lasted):
        value = times * rule.defaults[rule.measure]
        return rule.severity_at(value, rule.defaults, harm_s=60, has_lasted=has_lasted)

    assert severity(5, has_lasted=True) is Severity.ABUSE
    assert severity(9.9, has_lasted=False) is rule.severity
    assert severity(10, has_lasted=False) is Severity.ABUSE
    assert severity(4.9, has_lasted=True) is rule.severity


@pytest.mark.parametrize(
    ("harm_s", "severity"),
    [
        (59, Severity.NOTICE),
        (60, Severity.ABUSE),
        pytest.param(None, Severity.WARNING, id="unknown harm is no abuse"),
    ],
)
@pytest.mark.parametrize("code", ["metadata-rate", "impact"])
def test_findings_are_notices_without_harm(code, harm_s, severity):
    rule = BY_CODE[code]
    value = rule.abuse_times * rule.defaults[rule.measure]

    assert rule.severity_at(value, rule.defaults, harm_s=harm_s, has_lasted=True) is severity


@pytest.mark.parametrize(
    ("share", "severity"), [(0.19, Severity.WARNING), (0.2, Severity.ABUSE), (None, Severity.ABUSE)]
)
def test_a_small_part_of_a_crowd_is_no_abuse(share, severity):
    rule = BY_CODE["impact"]
    value = rule.abuse_times * rule.defaults[rule.measure]
    harm = {"harm_s": 600.0, "has_lasted": True}

    assert rule.severity_at(value, rule.defaults, share=share, **harm) is severity


def test_findings_about_load_are_notices_where_the_impact_is_flagged():
    rule = BY_CODE["metadata-rate"]
    harm = {"harm_s": 500.0, "harm_is_flagged": True}
    assert rule.severity_at(rule.defaults[rule.measure], rule.defaults, **harm) is Severity.NOTICE


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.needs_harm], ids=lambda rule: rule.code
)
def test_rules_that_accuse_judge_harm_or_the_share_of_the_capacity(rule):
    """Lock contention blocks threads, however large the server is."""
    assert "capacity_share" in rule.thresholds or rule.source in {Source.IMPACT, Source.RPC_TRACE}


@pytest.mark.parametrize("code", ["open-close-imbalance", "unexplained-enqueues"])
def test_wasted_work_is_advice_and_never_called_harm(code):
    rule = BY_CODE[code]
    value = 100 * rule.defaults[rule.measure]

    assert rule.severity_at(value, rule.defaults, harm_s=600, has_lasted=True) is Severity.NOTICE


def test_rules_about_impact_are_evaluated_first():
    is_about_impact = [rule.source is Source.IMPACT for rule in RULES]
    assert is_about_impact == sorted(is_about_impact, reverse=True)
