"""Names from outside as labels of charts."""

from __future__ import annotations

from ioportal.display import visible


def plotly_text(name: str) -> str:
    """Return a name as Plotly draws it: no markup in it, every character shown."""
    return visible(name).replace("<", "&lt;")
