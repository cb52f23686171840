"""Selection of the way to PostgreSQL and Valkey on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.services import compose, daemons, debian_root, given, installed

if TYPE_CHECKING:
    from scripts.services.way import Way


def choose() -> Way:
    """Return the first available way: given, installed, private Debian root, containers.

    An existing private root is always used, because its PostgreSQL owns the data below var/.
    It is also used if no way is available: its missing programs are then reported.
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
