"""Mail addresses from a command of the site, such as a look-up in LDAP.

`IOPORTAL_ADDRESS_COMMAND` runs without a shell, with a user name as its last argument. Source of
the format of its output: docs/operations.md, "Addresses from a directory".
"""

from __future__ import annotations

import base64
import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from select import select
from time import monotonic
from typing import TYPE_CHECKING, Final

import structlog
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Case, F, Value, When
from django.utils import timezone

from ioportal.core.visible_text import visible
from ioportal.site.models import UserAccount

if TYPE_CHECKING:
    from collections.abc import Iterable

log = structlog.get_logger()

VALID_FOR: Final = timedelta(days=1)  # also of the answer that a user is unknown
RETRY_AFTER: Final = timedelta(minutes=10)
_TIMEOUT_S = 10.0
_PROMPTLY_S = 1.0  # from the end of its output to its own end
_LOOK_S = 0.1
_LONGEST_ANSWER = 65_536  # bytes
# Names come from accounting: no options, and nothing that LDAP or a script could interpret.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_LINE = re.compile(r"(mail|name|cn):(:?) *(.+)", re.IGNORECASE)
_NAME_CHARACTERS = 128
_ADDRESS_CHARACTERS = 254


class CommandFailed(Exception):  # noqa: N818  (a result)
    """The command did not run, took too long, failed, or printed too much."""


@dataclass(frozen=True)
class Person:
    """What the command knows about a user; "": nothing."""

    email: str
    full_name: str


def look_up_next(names: Iterable[str]) -> int:
    """Look up one of some users whose address is unknown or outdated; return how many are done."""
    if not settings.ADDRESS_COMMAND:
        return 0
    now = timezone.now()
    valid = {name for name in names if _NAME.fullmatch(name)}
    accounts = UserAccount.objects.filter(name__in=valid)
    outdated = accounts.to_look_up().exclude(next_lookup_at__gt=now)
    new = valid - set(accounts.values_list("name", flat=True))
    due = new | set(outdated.values_list("name", flat=True))
    if not due:
        return 0
    name = min(due)
    UserAccount.objects.bulk_create([UserAccount(name=name)], ignore_conflicts=True)
    # Not if an address was registered meanwhile.
    account = UserAccount.objects.filter(name=name).to_look_up()
    try:
        person = look_up(name)
    except CommandFailed as error:
        log.warning("address_command_failed", user=name, error=str(error))
        account.update(next_lookup_at=now + RETRY_AFTER)
    else:
        unnamed = When(full_name="", then=Value(person.full_name))
        account.update(
            email=person.email,
            full_name=Case(unnamed, default=F("full_name")),
            next_lookup_at=now + VALID_FOR,
        )
    return 1


def look_up(name: str) -> Person:
    """Run the command for a user.

    Raises:
        CommandFailed: it did not answer.
    """
    text = re.sub(r"\r?\n ", "", _output([*settings.ADDRESS_COMMAND, name]))  # LDIF folds lines
    values: dict[str, str] = {}
    for line in text.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            key, is_encoded, value = match.groups()
            key = "mail" if key.lower() == "mail" else "name"
            values.setdefault(key, _decoded(value) if is_encoded else value)
    full_name = visible(values.get("name", ""))[:_NAME_CHARACTERS]
    return Person(_valid_address(values.get("mail", "")), full_name)


def _output(command: list[str]) -> str:
    """Return what a command prints; it and its children end after a time."""
    # Without the portal's environment, which has passwords.
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    try:
        process = subprocess.Popen(  # noqa: S603  (the site's command, without a shell)
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandFailed(str(error)) from error
    try:
        output = _read(process)
        status = process.wait(_PROMPTLY_S)
    except subprocess.TimeoutExpired as error:  # its output has ended
        raise _too_long() from error
    finally:
        _end(process)
    if status:
        raise CommandFailed(f"Exit status {status}.")
    return output.decode("utf-8", "replace")


def _read(process: subprocess.Popen[bytes]) -> bytes:
    """Return the output of a command until it ends: a child that continues is not waited for."""
    assert process.stdout is not None  # noqa: S101  (a pipe)
    deadline = monotonic() + _TIMEOUT_S
    output = b""
    while monotonic() < deadline:
        has_ended = process.poll() is not None  # checked before its output
        is_readable, _, _ = select([process.stdout], [], [], 0 if has_ended else _LOOK_S)
        part = os.read(process.stdout.fileno(), _LONGEST_ANSWER) if is_readable else b""
        output += part
        if len(output) > _LONGEST_ANSWER:
            raise CommandFailed(f"It printed more than {_LONGEST_ANSWER:,} bytes.")
        if not part and (is_readable or has_ended):
            return output
    raise _too_long()


def _too_long() -> CommandFailed:
    return CommandFailed(f"It took longer than {_TIMEOUT_S:.0f} s.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a command that has not ended, and its children; close its output."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    with process:  # closes its output, and waits
        pass


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode("utf-8", "replace")
    except ValueError:
        return ""


def _valid_address(address: str) -> str:
    """Return an address, or "" if mail servers may not accept it."""
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address if address.isascii() and len(address) <= _ADDRESS_CHARACTERS else ""
