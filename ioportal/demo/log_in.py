"""The log-in of the demo."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.auth import get_user_model

if TYPE_CHECKING:
    from pathlib import Path

_FILE: Path = settings.BASE_DIR / "var/demo_login"  # "name password"
_ADMINISTRATOR = "admin"


def create() -> tuple[str, str]:
    """Return the administrator's name and password; they are generated in the first run."""
    if _FILE.exists():
        name, password = _FILE.read_text().split()
    else:
        name, password = _ADMINISTRATOR, secrets.token_urlsafe(9)
        _FILE.touch(mode=0o600)
        _FILE.write_text(f"{name} {password}\n")
    user, _ = get_user_model().objects.get_or_create(
        username=name, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    return name, password
