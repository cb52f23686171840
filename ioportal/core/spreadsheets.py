"""Text in CSV files that a spreadsheet opens: users choose the names of their jobs."""

from __future__ import annotations

from ioportal.core.visible_text import is_hidden

# Spreadsheets may skip leading blanks, and treat full-width forms like ASCII.
_FORMULA_STARTS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")


def is_formula(text: str) -> bool:
    """Return whether a spreadsheet may evaluate a text, or lose a leading line break or tab."""
    if text[:1].isascii() and text[:1].isalnum():  # spares most texts the search
        return False
    first = next((c for c in text if not (c.isspace() or is_hidden(c))), "")
    return first in _FORMULA_STARTS or text.startswith(("\t", "\r", "\n"))
