"""Use of pages by keyboard."""

import pytest

MOST_TABS = 150  # from the top of a page to the target
FOCUSED = "(document.activeElement.innerText || '').trim()"


def go(page, text):
    """Press Tab until the element with this text has the focus, then Enter."""
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == text:
            page.keyboard.press("Enter")
            return
    pytest.fail(f"{text!r} was not reached by Tab")
