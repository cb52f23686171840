"""docs/rules.md says what the rules are."""

from pathlib import Path

from ioportal.analysis import rules_page

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_is_written_from_the_rules():
    assert PAGE.read_text() == rules_page.page()


def test_limits_are_written_as_they_are():
    for told in ("| 2.5 ratio |", "| 1.5 ratio |", "| 5% |", "| 2,000,000 operations |"):
        assert told in PAGE.read_text()
