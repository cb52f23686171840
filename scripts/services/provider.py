"""Definition of a provider of PostgreSQL and Valkey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from scripts.services.daemons import Programs


@dataclass(frozen=True)
class Provider:
    """Provides the two servers."""

    name: str
    addresses: Callable[
        [], Mapping[str, str]
    ]  # settings by name, as ioportal/settings.py reads them
    start: Callable[[], None]  # returns when both answer; safe to repeat
    prepare: Callable[[], None] = lambda: None  # a long first part of the start; safe to repeat
    programs: tuple[str, ...] = ()  # needed on PATH to start them
    # The servers' own programs, for separate instances in another folder.
    servers: Callable[[Path], Programs] | None = None
