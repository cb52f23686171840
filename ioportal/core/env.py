"""Configuration from the environment; missing and invalid values stop the start."""

import os
import re
import shlex
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

_DURATION = re.compile(r"(\d+)([smhd])")
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_SIZE = re.compile(r"(\d+)(MB|GB|TB)")
_UNIT_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12}
_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})
_SMTP_PORTS = {"smtp": 25, "smtps": 465, "smtp+starttls": 587}
_IMAP_PORTS = {"imaps": 993, "imap+starttls": 143}


def text(name: str, default: str | None = None) -> str:
    """Return a variable's value; without a default it must be set."""
    value = os.environ.get(name, default)
    if value is None:
        raise ImproperlyConfigured(f"Set {name} in the environment ('make env' prints local ones).")
    return value


def items(name: str, default: str) -> list[str]:
    """Return a comma-separated variable as a list."""
    return [item.strip() for item in text(name, default).split(",") if item.strip()]


def command(name: str) -> list[str]:
    """Return the words of a command line; empty if the variable is not set."""
    try:
        return shlex.split(text(name, ""))
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error


def networks(name: str, default: str) -> list[IPv4Network | IPv6Network]:
    """Return a comma-separated variable of addresses and networks (``10.0.0.1,fd00::/8``)."""
    try:
        return [ip_network(item) for item in items(name, default)]
    except ValueError as error:
        raise ImproperlyConfigured(f"{name}: {error}.") from error


def flag(name: str, *, default: bool) -> bool:
    """Return a yes/no variable."""
    value = os.environ.get(name, str(default)).lower()
    if value not in _TRUE | _FALSE:
        raise ImproperlyConfigured(f"{name}={value!r} is not valid. Set yes or no.")
    return value in _TRUE


def duration(name: str, default: str) -> timedelta:
    """Return a variable such as ``90s``, ``15m``, ``48h`` or ``30d``."""
    value = text(name, default)
    match = _DURATION.fullmatch(value)
    if not match:
        raise ImproperlyConfigured(
            f"{name}={value!r} is not valid. Set a number and s, m, h or d, like 48h."
        )
    return timedelta(seconds=int(match[1]) * _UNIT_SECONDS[match[2]])


def retention(name: str, default: str) -> timedelta | None:
    """Return a duration, or None for ``forever``."""
    return None if text(name, default) == "forever" else duration(name, default)


def number(name: str, default: str) -> int:
    """Return a positive integer."""
    value = text(name, default)
    if not value.isdecimal() or not int(value):
        raise ImproperlyConfigured(f"{name}={value!r} is not valid. Set a whole number above 0.")
    return int(value)


def size(name: str, default: str) -> int:
    """Return a number of bytes from a variable such as ``500MB`` or ``4GB``."""
    value = text(name, default)
    match = _SIZE.fullmatch(value)
    if not match:
        raise ImproperlyConfigured(
            f"{name}={value!r} is not valid. Set a whole number and MB, GB or TB."
        )
    return int(match[1]) * _UNIT_BYTES[match[2]]


def folders(name: str) -> list[str]:
    """Return a comma-separated list of existing folders; empty if the variable is not set."""
    paths = items(name, "")
    for path in paths:
        if not Path(path).is_dir():
            raise ImproperlyConfigured(f"{name}: {path} is not a folder on this host.")
    return paths


def file(name: str) -> str:
    """Return the path of an existing file; "" if the variable is not set."""
    path = text(name, "")
    if path and not Path(path).is_file():
        raise ImproperlyConfigured(f"{name}: {path} is not a file on this host.")
    return path


def secret(name: str) -> str:
    """Return a secret from the variable or from the file named by ``NAME_FILE``."""
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise ImproperlyConfigured(f"{name}_FILE={path}: {error.strerror}.") from error
    return text(name)


def database(name: str) -> dict[str, object]:
    """Return Django's settings for a PostgreSQL URL (``postgresql://user@host:port/name``).

    The password may be in the file named by ``NAME_PASSWORD_FILE`` instead.
    """
    try:
        parts = conninfo_to_dict(text(name))
    except ProgrammingError as error:
        raise ImproperlyConfigured(f"{name} is not a PostgreSQL URL: {error}") from error
    return {
        "ENGINE": "ioportal.core.postgres",
        "NAME": parts.get("dbname", "ioportal"),
        "USER": parts.get("user", ""),
        "PASSWORD": _password(name, parts.get("password", "")),
        "HOST": parts.get("host", ""),
        "PORT": parts.get("port", ""),
    }


def mail(name: str, default: str) -> dict[str, object]:
    """Return Django's settings for an SMTP server (``smtp://user:password@host:587``).

    The scheme selects the encryption: ``smtp`` for none, ``smtps`` for TLS, ``smtp+starttls`` for
    STARTTLS. The password may be in the file named by ``NAME_PASSWORD_FILE`` instead.
    """
    parts = urlsplit(text(name, default))
    try:
        port = parts.port or _SMTP_PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        schemes = ", ".join(f"{scheme}://host:port" for scheme in _SMTP_PORTS)
        raise ImproperlyConfigured(
            f"{name} is not the URL of a mail server ({schemes})."
        ) from error
    return {
        "EMAIL_HOST": parts.hostname or "localhost",
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": _password(name, unquote(parts.password or "")),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+starttls",
    }


@dataclass(frozen=True)
class Mailbox:
    """A folder of an IMAP server."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    folder: str
    has_starttls: bool


def mailbox(name: str) -> Mailbox | None:
    """Return the mailbox of a URL (``imaps://user:password@host/INBOX``); None: it is not set.

    The password may be in the file named by ``NAME_PASSWORD_FILE`` instead.
    """
    parts = urlsplit(text(name, ""))
    if not parts.scheme:
        return None
    try:
        port = parts.port or _IMAP_PORTS[parts.scheme]
    except (KeyError, ValueError) as error:
        schemes = ", ".join(f"{scheme}://user@host" for scheme in _IMAP_PORTS)
        raise ImproperlyConfigured(f"{name} is not the URL of a mailbox ({schemes}).") from error
    return Mailbox(
        host=parts.hostname or "localhost",
        port=port,
        user=unquote(parts.username or ""),
        password=str(_password(name, unquote(parts.password or ""))),
        folder=unquote(parts.path.strip("/")) or "INBOX",
        has_starttls=parts.scheme == "imap+starttls",
    )


def _password(name: str, password: object) -> object:
    """Return the password from the file named by ``NAME_PASSWORD_FILE``, or from the URL."""
    has_file = os.environ.get(f"{name}_PASSWORD_FILE")
    return secret(f"{name}_PASSWORD") if has_file else password
