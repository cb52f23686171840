"""Which way to PostgreSQL and Valkey this machine and this environment get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.services import compose, daemons, debian_root, given, installed

if TYPE_CHECKING:
    from scripts.services.way import Way


def choose() -> Way:
    """The first way that applies: given, installed, private Debian root, containers.

    A private root stays the way once it is there, because the data below var/ is its PostgreSQL's.
    It is also the way where none applies: its programs are then asked for.
    """
    ours = [*daemons.addresses().values(), *compose.addresses().values()]
    if way := given.way(ours):
        return way
    if debian_root.ROOT.exists():
        return debian_root.way()
    if way := installed.way():
        return way
    if not debian_root.is_possible() and (way := compose.way()):
        return way
    return debian_root.way()
