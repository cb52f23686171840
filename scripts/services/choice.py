"""Selection of a provider of PostgreSQL and Valkey on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scripts.services import compose, daemons, debian_root, external, installed

if TYPE_CHECKING:
    from scripts.services.provider import Provider


def choose() -> Provider:
    """Return the first available provider: external, installed, private Debian root, containers.

    An existing private root is always used, because its PostgreSQL owns the data below var/.
    It is also used if none is available: its missing programs are then reported.
    """
    ours = [*daemons.addresses().values(), *compose.addresses().values()]
    if provider := external.provider(ours):
        return provider
    if debian_root.ROOT.exists():
        return debian_root.provider()
    if provider := installed.provider():
        return provider
    if not debian_root.is_possible() and (provider := compose.provider()):
        return provider
    return debian_root.provider()
