"""Storage of frames that belong to a checkpoint and are too large for it."""

from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from collectors.agent import durable, logs

_LOG = logs.Log(__name__)


class FrameStore:
    """The frame of a source's checkpoint.

    A new frame is stored next to the old one, which is deleted once a checkpoint refers to the new.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, checkpoint: Mapping[str, Any]) -> pl.DataFrame | None:
        """Return the frame of a checkpoint, if any, and delete all others."""
        name = checkpoint.get("frame")
        for path in self._folder.glob("frame-*.arrow"):
            if path.name != name:
                path.unlink()
        return pl.read_ipc(self._folder / name) if name else None

    def save(self, frame: pl.DataFrame, checkpoint: Mapping[str, Any]) -> str:
        """Store the frame that follows a checkpoint's frame; return its name."""
        previous = checkpoint.get("frame", "frame-0.arrow")
        number = int(previous.removeprefix("frame-").removesuffix(".arrow")) + 1
        name = f"frame-{number}.arrow"
        content = BytesIO()
        frame.write_ipc(content, compression="zstd")
        durable.write(self._folder / name, content.getvalue())
        return name
