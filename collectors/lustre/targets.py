"""Names of Lustre targets: FILESYSTEM-MDTxxxx and FILESYSTEM-OSTxxxx, with hexadecimal index.

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
    """The parts of a target's name."""

    filesystem: str
    kind: str  # MDT or OST
    index: int
    text: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Parse a name; return None if it is not a target's."""
        match = _NAME.fullmatch(text)
        return cls(match[1], match[2], int(match[3], 16), text) if match else None

    def follows(self, other: "TargetName") -> bool:
        """Whether this target has the next index."""
        key = (self.filesystem, self.kind, self.index)
        return key == (other.filesystem, other.kind, other.index + 1)


def folded(names: Collection[str]) -> str:
    """Return names as ranges: ``lake-MDT0000, lake-OST[0000-03ef]``.

    After `RANGES_SHOWN` ranges only the number of remaining names is given.
    """
    remaining = len(names)
    ranges: list[str] = []
    for text, count in _ranges(names):
        if len(ranges) == RANGES_SHOWN:
            return f"{', '.join(ranges)} and {remaining:,} more"
        ranges.append(text)
        remaining -= count
    return ", ".join(ranges)


def _ranges(names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield ranges and the number of names in each."""
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
