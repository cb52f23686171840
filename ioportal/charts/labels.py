"""Untrusted names as labels of charts."""

from __future__ import annotations

from ioportal.visible_text import visible


def plotly_text(name: str) -> str:
    """Escape a name for Plotly: no markup, every character visible."""
    return visible(name).replace("<", "&lt;")
