"""The site's navigation: five sections, each with its pages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.urls import reverse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import AnonymousUser, User


@dataclass(frozen=True)
class Page:
    """A page in the navigation.

    Args:
        key: `section` in the context of its views.
        title: text of the link.
        view: name of its URL.
        for_staff: whether only staff see it.
    """

    key: str
    title: str
    view: str
    for_staff: bool = False

    @property
    def url(self) -> str:
        """Its address."""
        return reverse(self.view)


@dataclass(frozen=True)
class Section:
    """A section of the navigation, with its pages; its link opens the first."""

    title: str
    pages: tuple[Page, ...]

    @property
    def url(self) -> str:
        """The address of its first page."""
        return self.pages[0].url

    @property
    def keys(self) -> set[str]:
        """The keys of its pages."""
        return {page.key for page in self.pages}


CASES = "cases"
_SECTIONS = (
    Section(
        "Live",
        (
            Page("overview", "Overview", "overview"),
            Page("incidents", "Incidents", "incident_list"),
            Page("servers", "Servers", "server_list", for_staff=True),
        ),
    ),
    Section(
        "Flags",
        (
            Page(CASES, "Cases", "case_list"),
            Page("mails", "Mails", "mail_list"),
            Page("rules", "Rules", "rule_list", for_staff=True),
        ),
    ),
    Section(
        "Jobs",
        (
            Page("jobs", "Jobs", "job_list"),
            Page("users", "Users", "users"),
            Page("projects", "Projects", "projects"),
        ),
    ),
    Section(
        "Analyse",
        (
            Page("ranking", "Ranking", "ranking"),
            Page("populations", "Populations", "populations"),
            Page("trends", "Trends", "trends"),
            Page("compare", "Compare", "compare"),
            Page("load_ramp", "Load ramp", "load_ramp"),
            Page("mitigations", "Mitigations", "mitigation_list"),
            Page("experiments", "Experiments", "experiment_list"),
            Page("model", "Latency model", "model"),
        ),
    ),
    Section(
        "Admin",
        (
            Page("ingest", "Data", "health", for_staff=True),
            Page("site", "Site", "admin:index", for_staff=True),
            Page("tokens", "Tokens", "token_list", for_staff=True),
        ),
    ),
)


def sections(user: User | AnonymousUser) -> Iterator[Section]:
    """Yield the sections with the pages that a user may open."""
    for section in _SECTIONS:
        pages = tuple(page for page in section.pages if user.is_staff or not page.for_staff)
        if pages:
            yield Section(section.title, pages)
