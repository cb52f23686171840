"""The names of Lustre's targets: FILESYSTEM-MDTxxxx and FILESYSTEM-OSTxxxx, numbered in hex.

Source: docs/operations.md, "Registration".
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Self

RANGES_SHOWN = 20
_NAME_CHARACTERS = 64
_NAME = re.compile(
    rf"(?=.{{1,{_NAME_CHARACTERS}}}$)([\w.-]+)-(MDT|OST)([0-9a-fA-F]{{4}})", re.ASCII
)


@dataclass(frozen=True, order=True)
class TargetName:
    """A target's name, taken apart."""

    filesystem: str
    kind: str  # MDT or OST
    index: int
    text: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the parts of a name; None if it is no target's."""
        match = _NAME.fullmatch(text)
        return cls(match[1], match[2], int(match[3], 16), text) if match else None

    def follows(self, other: "TargetName") -> bool:
        """Tell whether it has the next number."""
        here = (self.filesystem, self.kind, self.index)
        return here == (other.filesystem, other.kind, other.index + 1)


def folded(names: Collection[str]) -> str:
    """Return names in ranges, as ``lake-MDT0000, lake-OST[0000-03ef]``.

    After `RANGES_SHOWN` ranges the rest is counted.
    """
    left = len(names)
    shown: list[str] = []
    for text, count in _ranges(names):
        if len(shown) == RANGES_SHOWN:
            return f"{', '.join(shown)} and {left:,} more"
        shown.append(text)
        left -= count
    return ", ".join(shown)


def _ranges(names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield texts for ranges of names, and how many names each holds."""
    parsed = {name: TargetName.parse(name) for name in names}
    run: list[TargetName] = []
    for name in sorted(filter(None, parsed.values())):
        if run and not name.follows(run[-1]):
            yield _range(run), len(run)
            run = []
        run.append(name)
    if run:
        yield _range(run), len(run)
    for text in sorted(text for text, name in parsed.items() if name is None):
        yield repr(text[:_NAME_CHARACTERS]), 1


def _range(run: list[TargetName]) -> str:
    first, last = run[0], run[-1]
    if first is last:
        return first.text
    return f"{first.filesystem}-{first.kind}[{first.text[-4:]}-{last.text[-4:]}]"
