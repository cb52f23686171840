"""The mitigations of the simulated year, shifted to the year of the demo."""

from __future__ import annotations

import tomllib
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.conf import settings

from ioportal.changes import mitigations
from ioportal.changes.models import Mitigation
from ioportal.demo.centre import PILOTS, shifted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILE: Path = settings.BASE_DIR / "ioportal/demo/mitigations.toml"
_KEY_PREFIX = "demo:"


def log() -> None:
    """Log the mitigations; logged ones are skipped."""
    mitigations.log_once(_mitigations())


def _mitigations() -> Iterator[Mitigation]:
    for facts in tomllib.loads(_FILE.read_text())["mitigation"]:
        values = {name: _value(value) for name, value in facts.items()}
        key = f"{_KEY_PREFIX}{values.pop('key')}"
        yield Mitigation(**values, key=key, scope=urlencode(PILOTS), is_public=True, simulated=True)


def _value(value: Any) -> Any:
    return shifted(value) if isinstance(value, datetime) else value
