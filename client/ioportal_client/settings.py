"""Address of the portal and token, from arguments and environment variables."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

_TOKEN_FILE = "~/.config/ioportal/token"  # noqa: S105  (a path)
_LONGEST_TOKEN = 1_000
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class SettingsError(Exception):
    """A setting is missing or invalid; the message has the remedy."""


@dataclass(frozen=True)
class Settings:
    """Address of the portal, and a token with the scope `read` or `write`.

    Raises:
        SettingsError: the token would travel without encryption.
    """

    url: str
    token: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        is_own = parts.hostname in {"localhost", "127.0.0.1", "::1"}
        if parts.scheme != "https" and not (parts.scheme == "http" and is_own):
            raise SettingsError("The address of the portal must start with https://.")

    @classmethod
    def read(cls, url: str | None = None, token_file: str | None = None) -> Settings:
        """Return the settings, by default from the environment.

        `IOPORTAL_URL`; `IOPORTAL_TOKEN`, or a file: `IOPORTAL_TOKEN_FILE`, else
        `~/.config/ioportal/token`.

        Raises:
            SettingsError: a setting is missing or invalid.
        """
        url = url or os.environ.get("IOPORTAL_URL")
        if not url:
            raise SettingsError("Give --url, or set IOPORTAL_URL.")
        token = "" if token_file else os.environ.get("IOPORTAL_TOKEN", "").strip()
        return cls(url, token or _token_in(token_file or os.environ.get("IOPORTAL_TOKEN_FILE")))


def _token_in(name: str | None) -> str:
    """Return the token in a file without access for other users."""
    path = Path(name or _TOKEN_FILE).expanduser()
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.read(_LONGEST_TOKEN).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {getattr(error, 'strerror', 'not a text')}") from error
    if mode & _OTHERS:
        raise SettingsError(f"{path}: others may read or write it (chmod 600)")
    if not token:
        raise SettingsError(f"{path}: it is empty. Create a token on the portal's account page.")
    return token
