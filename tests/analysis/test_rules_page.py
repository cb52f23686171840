"""docs/rules.md says what the rules are."""

from pathlib import Path

from ioportal.analysis import rules_page

PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_is_written_from_the_rules():
    assert PAGE.read_text() == rules_page.page()
