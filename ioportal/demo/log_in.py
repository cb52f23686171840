"""The log-ins of the demo: an administrator, and a scientist whose jobs were flagged."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model

if TYPE_CHECKING:
    from pathlib import Path

_FILE: Path = settings.BASE_DIR / "var/demo_login"  # lines of "name password"
_ADMINISTRATOR, _SCIENTIST = "admin", "wuxian"


def create() -> dict[str, str]:
    """Return the passwords by user name, the administrator first; they are generated once."""
    lines = _FILE.read_text().splitlines() if _FILE.exists() else []
    passwords = dict(line.split(maxsplit=1) for line in lines)
    for name in (_ADMINISTRATOR, _SCIENTIST):
        passwords.setdefault(name, secrets.token_urlsafe(9))
    _FILE.touch(mode=0o600)
    _FILE.write_text("".join(f"{name} {password}\n" for name, password in passwords.items()))
    for name, password in passwords.items():
        is_staff = name != _SCIENTIST
        user, _ = get_user_model().objects.get_or_create(
            username=name, defaults={"is_staff": is_staff, "is_superuser": is_staff}
        )
        user.set_password(password)
        user.save()
    return passwords
