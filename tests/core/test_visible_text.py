"""Display of external names and texts."""

import pytest

from ioportal.core.visible_text import visible, visible_text


@pytest.mark.parametrize(
    ("hostile", "displayed"),
    [
        ("plain ünïcode", "plain ünïcode"),
        ("\x1b[31m\x07", "\\x1b[31m\\x07"),
        ("a\u202eb", "a\\u202eb"),
        ("line\nline", "line\\nline"),
        ("no-break\u00a0space \u3164", "no-break\\xa0space \\u3164"),
    ],
)
def test_unprintable_characters_are_displayed_as_escapes(hostile, displayed):
    assert visible(hostile) == displayed


def test_line_breaks_and_spaces_are_preserved():
    text = "two\u00a0words\n\tindented\u202e\r\n"

    assert visible_text(text) == "two\u00a0words\n\tindented\\u202e\\r\n"
