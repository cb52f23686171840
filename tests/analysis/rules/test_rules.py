"""What holds of every rule."""

import string

import polars as pl
import pytest

from ioportal.analysis.rules import RULES, examples
from ioportal.analysis.rules.evidence import EVIDENCE, USUAL_VALUES
from ioportal.analysis.rules.rule import Severity, advise

ALL = [pytest.param(rule, id=rule.code) for rule in RULES]


def fields(text):
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def numbers_of(rule):
    """The numbers that a finding has, from a frame without rows."""
    findings = rule.check(pl.DataFrame(schema=EVIDENCE[rule.subject]), rule.defaults)
    return {field.name for field in findings.schema["numbers"].fields}


@pytest.mark.parametrize("rule", ALL)
def test_what_is_not_known_is_over_no_limit(found, rule):
    assert found(rule) is None


@pytest.mark.parametrize("rule", ALL)
def test_a_finding_shows_each_limit_beside_the_number_that_it_thresholds(rule):
    assert rule.measure == next(iter(rule.thresholds))
    assert set(rule.thresholds) <= numbers_of(rule)
    assert all(rule.unit(number) for number in numbers_of(rule))


@pytest.mark.parametrize("rule", ALL)
def test_advice_names_the_subject_s_numbers_and_its_thresholds(rule):
    known = numbers_of(rule) | {f"threshold_{name}" for name in rule.thresholds}

    assert rule.measure in fields(rule.advice)
    assert fields(rule.advice) <= known


@pytest.mark.parametrize("rule", ALL)
def test_advice_says_what_is_not_known(rule):
    assert "unknown" in rule.advise(dict.fromkeys(numbers_of(rule)), rule.defaults)


@pytest.mark.parametrize("rule", ALL)
def test_a_rule_finds_its_example_by_no_more_than_is_told_of_it(found, rule):
    told = rule.example.evidence

    assert found(rule, **told) is not None
    assert "unknown" not in examples.advice(rule)
    assert set(told) <= EVIDENCE[rule.subject].keys()


@pytest.mark.parametrize("rule", ALL)
def test_a_rule_says_what_it_needs_to_know_of_other_jobs(rule):
    others = USUAL_VALUES.keys() - set(rule.usual)
    known = pl.DataFrame(schema=EVIDENCE[rule.subject]).drop(others, strict=False)

    assert rule.check(known, rule.defaults).is_empty()


def test_codes_are_unique():
    assert len({rule.code for rule in RULES}) == len(RULES)


def test_what_an_advice_names_and_is_no_number_of_the_rule_any_more_is_unknown():
    assert advise("{opens:.0f} of {nothing:,.0f}", {"opens": 1.0}, {}) == "1 of unknown"


@pytest.mark.parametrize(
    ("size", "words"),
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
def test_bytes_are_told_as_people_say_them(size, words):
    assert advise("{read_bytes:B}", {"read_bytes": size}, {}) == words


def test_abuse_takes_a_multiple_of_the_limit_and_a_while():
    rule = next(rule for rule in RULES if rule.abuse_times == 5)
    threshold = rule.defaults[rule.measure]

    assert rule.severity_at(5 * threshold, rule.defaults, has_lasted=True) is Severity.ABUSE
    assert rule.severity_at(5 * threshold, rule.defaults, has_lasted=False) is rule.severity
    assert rule.severity_at(4.9 * threshold, rule.defaults, has_lasted=True) is rule.severity
