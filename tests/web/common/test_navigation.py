"""The site's navigation: sections, and the pages of the current section."""

import re

from tests.web.reading import text_of


def links(answer, label):
    nav = re.search(rf'<nav[^>]*aria-label="{label}">(.*?)</nav>', text_of(answer), re.DOTALL)
    return re.findall(r">([^<>]+)</a>", nav[1]) if nav else None


def test_staff_see_all_sections_and_the_pages_of_the_current_one(as_staff):
    answer = as_staff.get("/rules/")

    assert links(answer, "Site") == ["Live", "Flags", "Jobs", "Analyse", "Admin"]
    assert links(answer, "Flags") == ["Cases", "Mails", "Rules"]
    assert links(as_staff.get("/"), "Flags") is None


def test_users_see_their_sections_only(as_alice):
    answer = as_alice.get("/incidents/")

    assert links(answer, "Site") == ["Live", "Flags", "Jobs", "Analyse"]
    assert links(answer, "Live") == ["Overview", "Incidents"]
