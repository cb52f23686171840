"""A digest: a mail of sections with entries."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from django.conf import settings

from ioportal.alerts import compose
from ioportal.core.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ioportal.alerts.compose import Content


@dataclass(frozen=True)
class Entry:
    """An item of a section.

    Args:
        text: one line.
        details: further lines.
        path: of its page in the portal; "": none.
    """

    text: str
    details: Sequence[str] = ()
    path: str = ""

    @property
    def link(self) -> str:
        """The address of its page; "": none."""
        return f"{settings.PORTAL_URL}{self.path}" if self.path else ""


@dataclass(frozen=True)
class Section:
    """A part of a digest.

    Args:
        title: its heading.
        entries: the first of its items.
        count: of all items.
        none: a sentence instead of entries.
    """

    title: str
    entries: Sequence[Entry]
    count: int
    none: str

    @property
    def more(self) -> int:
        """The number of items that are not listed."""
        return self.count - len(self.entries)


@dataclass(frozen=True)
class Digest:
    """A mail of sections, in plain text.

    Args:
        subject: of the mail.
        introduction: what the digest is about.
        sections: in order.
        is_simulated: whether some of its data is simulated.
    """

    subject: str
    introduction: str
    sections: Sequence[Section] = field(default_factory=tuple)
    is_simulated: bool = False

    def mail(self, name: str) -> Content:
        """Return the mail to a recipient."""
        context = {
            "subject": self.subject,
            "name": visible(name),
            "introduction": self.introduction,
            "sections": self.sections,
            "simulated": self.is_simulated,
        }
        return compose.rendered("alerts/digest", context)
