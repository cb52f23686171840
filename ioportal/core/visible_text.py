"""External text: NUL characters for the database, control and invisible ones for display.

Stored values and JSON exports keep the original characters.
"""

from __future__ import annotations

from unicodedata import category

# Invisible letters and symbols that Unicode classes as printable.
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_LAYOUT = frozenset("\t\n")  # not the carriage return, which overwrites a terminal line


def storable(text: str) -> str:
    """Replace NUL characters and lone surrogates, which PostgreSQL does not accept."""
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")


def visible(text: str) -> str:
    r"""Return a name or value with every character visible.

    Line breaks and unusual spaces become codes as well: an escape character becomes ``\x1b``, a
    right-to-left override ``\u202e``.
    """
    return "".join(c if c.isprintable() and c not in _BLANK else _code(c) for c in text)


def visible_text(text: str) -> str:
    """Return a text of several lines with the codes of `visible` and unchanged layout."""
    return text.translate({ord(c): _code(c) for c in set(text) if is_hidden(c)})


def is_hidden(character: str) -> bool:
    """Return whether a character is invisible and not a space, tab or line feed."""
    if character in _BLANK:
        return True
    return not (character.isprintable() or character in _LAYOUT or category(character) == "Zs")


def _code(character: str) -> str:
    return character.encode("unicode_escape").decode()
