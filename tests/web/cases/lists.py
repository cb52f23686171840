"""Lists of cases: triage forms and exports."""

from tests.web.reading import json_of


def post(client, path, *cases, **fields):
    """Submit the triage form; return the next page."""
    return client.post(path, {"case": [case.pk for case in cases], **fields}, follow=True)


def listed(client, query=""):
    """Return the keys of the cases of a list, in order."""
    return [row["id"] for row in json_of(client.get(f"/cases/?format=json{query}"))["rows"]]
