"""Client addresses of requests."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, TypeAlias

from django.conf import settings

if TYPE_CHECKING:
    from django.http import HttpRequest

_Address: TypeAlias = IPv4Address | IPv6Address
_IPV6_SITE = 64  # bits; one host may use all addresses of a /64


def client_address(request: HttpRequest | None) -> str:
    """Return the address of a client; "" if the web server does not know it.

    `X-Forwarded-For` is read from the right, only as far as trusted proxies wrote it: a client can
    send any value.
    """
    if request is None:
        return ""
    address = parsed(request.META.get("REMOTE_ADDR", ""))
    for hop in reversed(request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")):
        forwarded = parsed(hop.strip())
        if address is None or forwarded is None or not _is_trusted(address):
            break
        address = forwarded
    return "" if address is None else str(address)


def network(address: str) -> str:
    """Return the key by which attempts are counted: the address, or the /64 network for IPv6."""
    if isinstance(parsed(address), IPv6Address):
        return str(ip_network((address, _IPV6_SITE), strict=False))
    return address


def parsed(text: str) -> _Address | None:
    """Return an address, as IPv4 if it is an IPv4 address within IPv6; None: it is no address."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or IPv6Address(int(address))  # without a zone
    return address


def _is_trusted(address: _Address) -> bool:
    return any(address in proxies for proxies in settings.TRUSTED_PROXIES)
