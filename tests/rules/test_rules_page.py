"""Consistency of docs/rules.md with the rules."""

from pathlib import Path

from ioportal.rules import rules_document

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == rules_document.page()


def test_thresholds_have_their_units():
    for cell in ("| 2.5 ratio |", "| 1.5 ratio |", "| 5% |", "| 2,000,000 operations |"):
        assert cell in PAGE.read_text()
