"""Records in JSON texts of any size: told apart one by one, whatever stands around them.

A text is any number of JSON values: records as objects, lists of them, or frames, which are objects
that hold records under some names. An *element* is what an account counts: a record; another member
of a frame, or each element of one that is a list; and a stretch that is not readable.
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

LONGEST = 1024 * 1024  # characters of an element, unless told; real ones have a few thousand
CUT = "the text ends inside a list: more records may be missing"
FLAW = "not a JSON object, or one of more than {:,} characters"

_SOMETHING = re.compile(r"[^ \t\r\n,\ufeff]")  # a byte order mark may begin the text
_NAME = re.compile(r'"([^"\\]{0,100})"[ \t\r\n]{0,100}:')
# An object where the next record would stand: after another, or on a line of its own. Blanks are
# bounded, for a text may hold nothing else.
_BEFORE_RECORD = re.compile(r'[},\n]\s{0,100}(?=\{\s{0,100}")')
_BEFORE_RECORD_CHARACTERS = 300  # no less than it looks at
_DECODER = json.JSONDecoder()

Members: TypeAlias = dict[str, Any]
_Found: TypeAlias = tuple[str, Members | None, str]


@dataclass(frozen=True)
class Element(Record):
    """An element; its `line` is its number in the text."""

    members: Members | None = None  # of a record, by names in lower case; None: it is none
    flaw: str = ""  # why it cannot be read; "": it can


def elements(source: Source, names: Collection[str], longest: int = LONGEST) -> Iterator[Element]:
    """Yield the elements of a text in order; where its blocks are cut changes nothing.

    Args:
        source: bytes that are not UTF-8, and NUL, which no database stores, become U+FFFD.
        names: of the members that hold a record or a list of records, in lower case.
        longest: characters of an element that is read; as much of the text is held in memory.

    Raises:
        SourceUnavailable: the source cannot be read to its end.
    """
    found = _Walk(_Text(source, longest), frozenset(names)).found()
    for number, (text, members, flaw) in enumerate(found, start=1):
        yield Element(number, text, members=members, flaw=flaw)


class _Walk:
    """A way through a text, from element to element: text, members and flaw of each."""

    def __init__(self, text: "_Text", names: frozenset[str]) -> None:
        self._text = text
        self._names = names
        self._frame = re.compile(rf'"(?:{"|".join(names)})"\s{{0,100}}:', re.IGNORECASE)
        self._depth = 0  # of lists around the place, as far as all of them were readable
        self._aside = 0  # the depth of the list that holds no records; 0: there is none
        self._flawed = False

    def found(self) -> Iterator[_Found]:
        while char := self._text.next_character():
            if char in "[]}":
                self._pass_bracket(char)
            elif self._aside:
                yield self._irrelevant()
            elif (name := self._text.take_name()) is None:
                yield from self._record(char)
            elif name.lower() not in self._names:
                if self._text.next_character() == "[":
                    self._aside = self._depth + 1
                else:
                    yield self._irrelevant()
        if self._depth and not self._flawed:
            yield "", None, CUT

    def _pass_bracket(self, bracket: str) -> None:
        self._text.take(1)
        self._depth = max(self._depth + {"[": 1, "]": -1, "}": 0}[bracket], 0)
        if self._aside > self._depth:
            self._aside = 0

    def _irrelevant(self) -> _Found:
        _, size = self._text.value()
        return (self._text.take(size), None, "") if size else self._unreadable()

    def _record(self, char: str) -> Iterator[_Found]:
        """Yield the record that begins here; nothing, and go inside, where it is a frame."""
        value, size = self._text.value()
        if isinstance(value, dict):
            members = {name.lower(): member for name, member in value.items()}
            if self._names.isdisjoint(members):
                yield self._text.take(size), members, ""
            else:
                self._text.take(1)
        elif size:
            yield self._text.take(size), None, self._text.flaw
        elif char == "{" and not self._depth and self._text.tells(self._frame):
            self._text.take(1)  # too long to be seen whole
        else:
            yield self._unreadable()

    def _unreadable(self) -> _Found:
        self._flawed = True
        self._aside = 0  # what comes may be a record: better a reject too many than one unseen
        return self._text.take_to_next_record(), None, self._text.flaw


class _Text:
    """A text at a place; as much as an element can have is seen ahead."""

    def __init__(self, source: Source, longest: int) -> None:
        self.flaw = FLAW.format(longest)
        self._longest = longest
        self._blocks = source.blocks()
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._ended = False
        self._window = ""
        self._at = 0

    def next_character(self) -> str:
        """Go to what comes next behind blanks and commas; "" at the end."""
        while not (found := _SOMETHING.search(self._window, self._at)) and not self._ended:
            self._at = len(self._window)
            self._see_ahead()
        self._at = found.start() if found else len(self._window)
        self._see_ahead()
        return self._window[self._at : self._at + 1]

    def value(self) -> tuple[Any, int]:
        """Return the JSON value that begins here and its size; 0: there is none."""
        try:
            value, end = _DECODER.raw_decode(self._window, self._at)
        except (ValueError, RecursionError):  # a ValueError, too: numbers of 4,301 digits
            return None, 0
        size = end - self._at
        return (value, size) if size <= self._longest else (None, 0)

    def tells(self, pattern: re.Pattern[str]) -> bool:
        """Tell whether an element that begins here might have the pattern in it."""
        return bool(pattern.search(self._window, self._at, self._at + self._longest))

    def take(self, size: int) -> str:
        """Go on, and return what was passed."""
        self._at += size
        return self._window[self._at - size : self._at]

    def take_name(self) -> str | None:
        """Go past the name of a member and return it; None: there is none."""
        found = _NAME.match(self._window, self._at)
        if found is None:
            return None
        self._at = found.end()
        return found[1]

    def take_to_next_record(self) -> str:
        """Go to where the next record seems to begin, and return what was passed first."""
        passed = ""
        while not (found := _BEFORE_RECORD.search(self._window, self._at)) and not self._ended:
            searched = max(len(self._window) - self._at - _BEFORE_RECORD_CHARACTERS, 0)
            passed = (passed + self.take(searched))[:REJECT_TEXT_CHARACTERS]
            self._see_ahead()
        end = found.end() if found else len(self._window)
        return passed + self.take(end - self._at)

    def _see_ahead(self) -> None:
        while len(self._window) - self._at <= self._longest and not self._ended:
            block = next(self._blocks, b"")
            self._ended = not block
            text = self._decode(block, final=self._ended).replace("\0", "\ufffd")
            self._window = self._window[self._at :] + text
            self._at = 0
