"""What a way to PostgreSQL and Valkey is, whoever runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scripts.services.daemons import Programs


@dataclass(frozen=True)
class Way:
    """How the two servers are had, under a name for people."""

    name: str
    addresses: Callable[
        [], Mapping[str, str]
    ]  # settings by name, as ioportal/settings.py reads them
    start: Callable[[], None]  # returns when both answer; safe to call when they already do
    programs: tuple[str, ...] = ()  # needed on PATH to start them
    # The servers' own programs, for whoever wants a pair of them in a folder of its own.
    servers: Callable[[Path], Programs] | None = None
