"""Password log-ins with limits and logs, for the portal and Django's admin."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import structlog
from django.contrib.auth import get_user_model
from django.contrib.auth.backends import ModelBackend
from django.utils import timezone

from ioportal.core.throttling.addresses import client_address, network
from ioportal.core.throttling.counters import Limit, TooManyAttempts, count_attempt, digest
from ioportal.core.throttling.models import Record

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from django.http import HttpRequest

_USER_AND_ADDRESS = Limit("user and address", 10, timedelta(minutes=1))
_ADDRESS = Limit("address", 100, timedelta(seconds=5))  # many users may share one
# Not counted at addresses with a recent log-in, so that others cannot lock a user out.
_USER = Limit("user", 50, timedelta(seconds=10))
_ADDRESS_KNOWN = timedelta(days=30)

log = structlog.get_logger()


class ThrottledBackend(ModelBackend):
    """Checks passwords within limits, whether or not the user exists."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Return the user if the password is correct.

        Raises:
            TooManyAttempts: the password was not checked.
        """
        if username is None or password is None:
            return None
        address = client_address(request)
        name, origin = get_user_model().normalize_username(username), network(address)
        attempt = {"user": _loggable(name), "address": address}
        recent_log_in = digest("known", name, origin)
        own_counter, *shared_counters = counters = [
            _USER_AND_ADDRESS.counter_for(name, origin),
            _ADDRESS.counter_for(origin),
            *([] if _is_valid(recent_log_in) else [_USER.counter_for(name)]),
        ]
        try:
            count_attempt(*counters)
        except TooManyAttempts as refusal:
            log.warning("log_in_throttled", **attempt, retry_after_s=refusal.retry_after_s)
            raise
        user = super().authenticate(request, username, password, **kwargs)
        if user is None:
            log.warning("log_in_failed", **attempt)
            return None
        own_counter.clear()
        for counter in shared_counters:
            counter.give_back()
        expiry = timezone.now() + _ADDRESS_KNOWN
        Record.objects.update_or_create(key=recent_log_in, defaults={"expires_at": expiry})
        log.info("log_in_accepted", **attempt)
        return user


def _loggable(name: str) -> str:
    """Return the name of an existing user, otherwise "": people type passwords as user names."""
    return name if get_user_model().objects.filter(username=name).exists() else ""


def _is_valid(key: str) -> bool:
    return Record.objects.filter(key=key, expires_at__gt=timezone.now()).exists()
