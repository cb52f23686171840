"""Names and texts from outside, as they are displayed."""

import pytest

from ioportal.display import visible, visible_text


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("plain ünïcode", "plain ünïcode"),
        ("\x1b[31m\x07", "\\x1b[31m\\x07"),
        ("a\u202eb", "a\\u202eb"),
        ("line\nline", "line\\nline"),
        ("no-break\u00a0space \u3164", "no-break\\xa0space \\u3164"),
    ],
)
def test_what_prints_nothing_is_shown_as_a_code(hostile, shown):
    assert visible(hostile) == shown


def test_a_text_keeps_its_lines_and_spaces():
    text = "two\u00a0words\n\tindented\u202e\r\n"

    assert visible_text(text) == "two\u00a0words\n\tindented\\u202e\\r\n"
