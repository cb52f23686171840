"""Addresses that channels may call: public addresses, and those allowed by the operator.

Staff enter the URLs of channels: without this rule they could reach services of the worker's host
and of its network that trust it.
"""

from __future__ import annotations

import socket
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.core.throttling.addresses import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable

_GLOBAL_IPV6 = IPv6Network("2000::/3")  # others are local, or contain IPv4 addresses
_NOT_PUBLIC = (  # though Python's `is_global` says so
    IPv4Network("192.0.0.0/24"),  # among them metadata services of clouds
    IPv4Network("224.0.0.0/4"),  # multicast
    IPv6Network("2002::/16"),  # contain IPv4 addresses
)


def resolved(host: str, port: int, flags: int = 0) -> list[str]:
    """Return all addresses of a host, each once.

    Raises:
        OSError: there are none.
    """
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return list(dict.fromkeys(str(where[0]) for *_, where in answers))


def literal(host: str) -> list[str]:
    """Return the address that a host's name is in any spelling (``0x7f.1``), asking no server."""
    with suppress(OSError, UnicodeError):  # also for names that DNS does not allow
        return resolved(host, 0, socket.AI_NUMERICHOST)
    return []


def objection(addresses: Iterable[str]) -> str:
    """Return why channels must not call one of the addresses; "" if they may call all."""
    for address in addresses:
        if not _is_allowed(address):
            return (
                f"{address} is not a public address. If channels may call it, its network must be "
                "in IOPORTAL_CHANNEL_NETWORKS."
            )
    return ""


def _is_allowed(text: str) -> bool:
    address = parsed(text)
    if address is None:
        return False
    if any(address in network for network in settings.CHANNEL_NETWORKS):
        return True
    is_local = isinstance(address, IPv6Address) and address not in _GLOBAL_IPV6
    return address.is_global and not is_local and not any(address in each for each in _NOT_PUBLIC)
