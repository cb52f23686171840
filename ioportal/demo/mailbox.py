"""The mailbox of the demo: what a local mail server received, whoever it was addressed to."""

from __future__ import annotations

import email
import mailbox
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from email import policy
from typing import TYPE_CHECKING

from ioportal.alerts.compose import with_images
from ioportal.demo import centre

if TYPE_CHECKING:
    from email.message import EmailMessage
    from pathlib import Path

FOLDER: Path = centre.TODAY / "mailbox"
_LISTED = 100
_HEADERS = ("From", "To", "Reply-To", "Message-ID")


@dataclass(frozen=True)
class Received:
    """A mail as it was received.

    Args:
        key: its name in the mailbox.
        at: when it was received.
        message: the mail.
    """

    key: str
    at: datetime
    message: EmailMessage

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers that say whose mail it is, as far as it has them."""
        return [(name, str(self.message[name])) for name in _HEADERS if self.message[name]]

    @property
    def text(self) -> str:
        """Its plain text."""
        return self._body("plain")

    @property
    def html(self) -> str:
        """Its HTML with the images inside; "": it has none."""
        images = {
            part["Content-ID"].strip("<>"): b64encode(part.get_content()).decode()
            for part in self.message.walk()
            if part.get_content_type() == "image/png" and part["Content-ID"]
        }
        addresses = {name: f"data:image/png;base64,{data}" for name, data in images.items()}
        return with_images(self._body("html"), addresses)

    def _body(self, kind: str) -> str:
        part = self.message.get_body([kind])
        return part.get_content() if part else ""


def latest() -> list[Received]:
    """Return the latest mails, latest first."""
    keys = _mailbox().keys() if FOLDER.exists() else []
    mails = [mail for key in keys if (mail := received(key))]
    return sorted(mails, key=lambda mail: mail.at, reverse=True)[:_LISTED]


def received(key: str) -> Received | None:
    """Return a mail by its key; None: there is none."""
    if not FOLDER.exists():
        return None
    box = _mailbox()
    try:
        raw, at = box.get_bytes(key), box[key].get_date()
    except (KeyError, FileNotFoundError):
        return None
    message = email.message_from_bytes(raw, policy=policy.default)
    return Received(key, datetime.fromtimestamp(at, UTC), message)


def _mailbox() -> mailbox.Maildir:
    return mailbox.Maildir(FOLDER, create=False)
