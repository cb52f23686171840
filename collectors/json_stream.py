"""Streaming of records from JSON inputs of any size.

An input is any number of JSON values: records (objects), lists of records, or frames (objects that
hold records under certain names). An *element* is the unit of the account: a record; any other
member of a frame, or each of its items if it is a list; or an unreadable span.
"""

import codecs
import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from collectors.batch.records import Record
from collectors.parsed import REJECT_TEXT_CHARACTERS
from collectors.source import Source

LONGEST = 1024 * 1024  # default limit of an element's characters; typical elements have thousands
CUT = "file ends inside a list: records may be missing"
FLAW = "not a JSON object, or an object of more than {:,} characters"

_TOKEN = re.compile(r"[^ \t\r\n,\ufeff]")  # joined files may have byte order marks between them
_NAME = re.compile(r'"([^"\\]{0,100})"[ \t\r\n]{0,100}:')
# The start of the next record: an object after another one, or on a new line. Blanks are bounded,
# because an input may consist of blanks.
_BEFORE_RECORD = re.compile(r'[},\n]\s{0,100}(?=\{\s{0,100}")')
_BEFORE_RECORD_CHARACTERS = 300  # at least the longest match
_DECODER = json.JSONDecoder()

Members: TypeAlias = dict[str, Any]
_Parts: TypeAlias = tuple[str, Members | None, str]  # text, members and flaw of an element


@dataclass(frozen=True)
class Element(Record):
    """An element; its `line` is its number in the input."""

    members: Members | None = None  # of a record, by lower-case name; None: not a record
    flaw: str = ""  # reason why it is unreadable


def elements(source: Source, names: Collection[str], longest: int = LONGEST) -> Iterator[Element]:
    """Yield the elements of an input in order, independent of block boundaries.

    Args:
        source: invalid UTF-8, and NUL, which PostgreSQL cannot store, become U+FFFD.
        names: of the members that hold a record or a list of records, in lower case.
        longest: limit of an element's characters; this much of the input is held in memory.

    Raises:
        SourceUnavailable: the source cannot be read to its end.
    """
    parts = _Walk(_Window(source, longest), frozenset(names)).elements()
    for number, (text, members, flaw) in enumerate(parts, start=1):
        yield Element(number, text, members=members, flaw=flaw)


class _Walk:
    """A walk through an input, element by element."""

    def __init__(self, text: "_Window", names: frozenset[str]) -> None:
        self._text = text
        self._names = names
        self._frame = re.compile(rf'"(?:{"|".join(names)})"\s{{0,100}}:', re.IGNORECASE)
        self._depth = 0  # of enclosing lists, exact until the first flaw
        self._irrelevant_depth = 0  # of the enclosing list that holds no records; 0: none
        self._flawed = False

    def elements(self) -> Iterator[_Parts]:
        while char := self._text.next_character():
            if char in "[]}":
                self._pass_bracket(char)
            elif self._irrelevant_depth:
                yield self._irrelevant()
            elif (name := self._text.take_name()) is None:
                yield from self._record(char)
            elif name.lower() not in self._names:
                if self._text.next_character() == "[":
                    self._irrelevant_depth = self._depth + 1
                else:
                    yield self._irrelevant()
        if self._depth and not self._flawed:
            yield "", None, CUT

    def _pass_bracket(self, bracket: str) -> None:
        self._text.take(1)
        self._depth = max(self._depth + {"[": 1, "]": -1, "}": 0}[bracket], 0)
        if self._irrelevant_depth > self._depth:
            self._irrelevant_depth = 0

    def _irrelevant(self) -> _Parts:
        _, size = self._text.value()
        return (self._text.take(size), None, "") if size else self._unreadable()

    def _record(self, char: str) -> Iterator[_Parts]:
        """Yield the record that begins here, or enter it without yielding if it is a frame."""
        value, size = self._text.value()
        if isinstance(value, dict):
            members = {name.lower(): member for name, member in value.items()}
            if self._names.isdisjoint(members):
                yield self._text.take(size), members, ""
            else:
                self._text.take(1)
        elif size:
            yield self._text.take(size), None, self._text.flaw
        elif char == "{" and not self._depth and self._text.may_contain(self._frame):
            self._text.take(1)  # longer than the window
        else:
            yield self._unreadable()

    def _unreadable(self) -> _Parts:
        self._flawed = True
        self._irrelevant_depth = 0  # records may follow: a surplus reject beats a missed record
        return self._text.take_to_next_record(), None, self._text.flaw


class _Window:
    """The part of an input from the current position, at least as long as an element."""

    def __init__(self, source: Source, longest: int) -> None:
        self.flaw = FLAW.format(longest)
        self._longest = longest
        self._blocks = source.blocks()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._ended = False
        self._window = ""
        self._at = 0

    def next_character(self) -> str:
        """Skip blanks and commas, and return the next character; "" at the end."""
        while not (token := _TOKEN.search(self._window, self._at)) and not self._ended:
            self._at = len(self._window)
            self._fill()
        self._at = token.start() if token else len(self._window)
        self._fill()
        return self._window[self._at : self._at + 1]

    def value(self) -> tuple[Any, int]:
        """Return the JSON value that begins here and its size; 0 if it is unreadable."""
        try:
            value, end = _DECODER.raw_decode(self._window, self._at)
        except (ValueError, RecursionError):  # ValueError: also numbers of more than 4,300 digits
            return None, 0
        size = end - self._at
        return (value, size) if size <= self._longest else (None, 0)

    def may_contain(self, pattern: re.Pattern[str]) -> bool:
        """Search the pattern within the limit of an element that begins here."""
        return bool(pattern.search(self._window, self._at, self._at + self._longest))

    def take(self, size: int) -> str:
        """Advance, and return the text passed."""
        self._at += size
        return self._window[self._at - size : self._at]

    def take_name(self) -> str | None:
        """Advance past a member's name and return it; None if there is no name here."""
        name = _NAME.match(self._window, self._at)
        if name is None:
            return None
        self._at = name.end()
        return name[1]

    def take_to_next_record(self) -> str:
        """Advance to the likely start of the next record, and return the text passed."""
        passed = ""
        while not (gap := _BEFORE_RECORD.search(self._window, self._at)) and not self._ended:
            searched = max(len(self._window) - self._at - _BEFORE_RECORD_CHARACTERS, 0)
            passed = (passed + self.take(searched))[:REJECT_TEXT_CHARACTERS]
            self._fill()
        end = gap.end() if gap else len(self._window)
        return passed + self.take(end - self._at)

    def _fill(self) -> None:
        while len(self._window) - self._at <= self._longest and not self._ended:
            block = next(self._blocks, b"")
            self._ended = not block
            text = self._decode(block, final=self._ended).replace("\0", "\ufffd")
            self._window = self._window[self._at :] + text
            self._at = 0
