"""Frames that are part of the place where to read on, and too large for it."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent import durable, logs

_LOG = logs.of(__name__)


class FrameStore:
    """The frame that a source's place refers to.

    A new one lies beside the old one until the place that refers to it is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, place: Mapping[str, Any]) -> pl.DataFrame | None:
        """Return the frame of a place, and forget all others; None: it has none."""
        name = place.get("frame")
        for path in self._folder.glob("frame-*.arrow"):
            if path.name != name:
                path.unlink()
        return pl.read_ipc(self._folder / name) if name else None

    def save(self, frame: pl.DataFrame, place: Mapping[str, Any]) -> str:
        """Keep the frame that follows that of a place; return what the next place calls it."""
        number = int(place["frame"].split("-")[1].split(".")[0]) + 1 if place.get("frame") else 1
        name = f"frame-{number}.arrow"
        content = BytesIO()
        frame.write_ipc(content, compression="zstd")
        durable.write(self._folder / name, content.getvalue())
        return name
