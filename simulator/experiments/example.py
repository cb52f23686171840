"""A written example of an experiment: its files, and the arm and run of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class File:
    """A file of an example; an empty arm or run is named in the file itself."""

    format: str  # as ioportal names it
    path: Path
    arm: str = ""
    run: str = ""


@dataclass
class Example:
    """An experiment."""

    name: str
    description: str
    files: list[File] = field(default_factory=list)
