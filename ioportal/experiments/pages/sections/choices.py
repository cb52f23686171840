"""Choices of a section that stay in the address of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ioportal.web.common import requests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import QueryDict


@dataclass(frozen=True)
class Choice:
    """A select field: its parameter, label, options (value and title), and the selected value."""

    name: str
    label: str
    options: Sequence[tuple[str, str]]
    selected: str


def choice(
    query: QueryDict, name: str, label: str, options: Sequence[tuple[str, str]], default: str
) -> Choice:
    """Return a field with the value of the query if it is an option, else the default."""
    wanted = query.get(name)
    known = {value for value, _ in options}
    return Choice(
        name, label, options, wanted if wanted is not None and wanted in known else default
    )


def other_parameters(query: QueryDict, choices: Sequence[Choice]) -> list[tuple[str, str]]:
    """Return the parameters of the page that a form with these fields must repeat."""
    return requests.other_parameters(query, {choice.name for choice in choices})
