"""Host lists such as "n[01-04],login1".

ClusterShell folds and expands the ranges. Its parser of complete lists is not used: it treats "@",
"!", "&", "^" and blanks as operators, looks up groups in files, and expands before it counts. Here
the grammar and the number of names are checked before any expansion.
"""

import re
from collections.abc import Iterable, Sequence
from itertools import chain, product, zip_longest
from math import prod

from ClusterShell.RangeSet import RangeSet  # type: ignore[import-untyped]  # it ships no types

from collectors.batch.values import Unreadable, quoted

NODES_MAX = 200_000  # ten times the largest machines

_NAME_CHARACTERS = 255
_NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{_NAME_CHARACTERS}}}")
_RANGES = r"\[\d{1,9}(?:-\d{1,9})?(?:,\d{1,9}(?:-\d{1,9})?)*\]"
_BRACKETS = re.compile(_RANGES, re.ASCII)
# An atomic group, not nested possessive repeats: Python 3.11.2 takes "n[1" for a match of those.
_ITEM = re.compile(rf"(?>(?:[A-Za-z0-9._-]+|{_RANGES})+)", re.ASCII)
_LIST = re.compile(rf"{_ITEM.pattern}(?:,{_ITEM.pattern})*", re.ASCII)
# Hosts of a kind differ in the last number before the domain.
_NUMBERED = re.compile(r"(|[^.]*[^.\d])(\d{1,9})([^.\d]*(?:\..*)?)", re.ASCII)


def fold(names: Iterable[str]) -> str:
    """Return host names as a folded list: n01, n02, n03 are "n[01-03]".

    Names are folded along a single number, so that the time is linear in the number of names.

    Raises:
        Unreadable: a name is no host name, or there are more than `NODES_MAX`.
    """
    numbers: dict[tuple[str, str], list[str]] = {}
    plain = []
    unique = dict.fromkeys(names)
    _check_size(len(unique))
    for name in unique:
        if not _NAME.fullmatch(name):
            raise Unreadable(f"{quoted(name)} is not a host name")
        if numbered := _NUMBERED.fullmatch(name):
            head, number, tail = numbered.groups()
            numbers.setdefault((head, tail), []).append(number)
        else:
            plain.append(name)
    folded = [f"{head}{_ranges(group)}{tail}" for (head, tail), group in numbers.items()]
    return ",".join(folded + plain)


def expand(text: str) -> list[str]:
    """Return the distinct names of a host list; none for "".

    Raises:
        Unreadable: it is not a host list, or has more than `NODES_MAX` names.

    Source: docs/formats.md, "Host lists".
    """
    names: dict[str, None] = {}
    for item in _items(text):
        names.update(dict.fromkeys(_names(item)))
    return list(names)


def count(text: str) -> int:
    """Return an upper bound of the number of names; a repeated name counts twice.

    Raises:
        Unreadable: as `expand`.
    """
    return sum(_size(item) for item in _items(text))


def _items(text: str) -> Sequence[str]:
    if not text:
        return []
    if _NAME.fullmatch(text):  # most jobs have one node
        return [text]
    if not _LIST.fullmatch(text):
        raise Unreadable(f"{quoted(text)} is not a host list")
    items = _ITEM.findall(text)
    _check_size(sum(_size(item) for item in items))
    return items


def _size(item: str) -> int:
    brackets = _BRACKETS.findall(item)
    if len(item) - sum(map(len, brackets)) > _NAME_CHARACTERS:
        raise Unreadable(f"{quoted(item)} is longer than a host name")
    return prod(
        sum(_range_size(*part.partition("-")[::2]) for part in bracket[1:-1].split(","))
        for bracket in brackets
    )


def _range_size(first: str, last: str) -> int:
    if not last:
        return 1
    padded = any(bound.startswith("0") and bound != "0" for bound in (first, last))
    if int(last) < int(first) or (padded and len(first) != len(last)):
        raise Unreadable(f"[{first}-{last}] is not a range of hosts")
    return int(last) - int(first) + 1


def _check_size(nodes: int) -> None:
    if nodes > NODES_MAX:
        raise Unreadable(f"the host list names {nodes} hosts, more than {NODES_MAX}")


def _names(item: str) -> Iterable[str]:
    texts = _BRACKETS.split(item)
    numbers = [RangeSet(bracket[1:-1]).striter() for bracket in _BRACKETS.findall(item)]
    for choice in product(*numbers):
        yield "".join(chain.from_iterable(zip_longest(texts, choice, fillvalue="")))


def _ranges(numbers: list[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    ranges = RangeSet()
    ranges.update(numbers)
    return f"[{ranges}]"
