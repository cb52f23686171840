"""Lists of flags: triage forms and exports."""

from tests.web.reading import json_of


def post(client, path, *flags, **fields):
    """Submit the triage form; return the next page."""
    return client.post(path, {"flag": [flag.pk for flag in flags], **fields}, follow=True)


def listed(client, query=""):
    """Return the keys of the flags of a list, in order."""
    return [row["id"] for row in json_of(client.get(f"/flags/?format=json{query}"))["rows"]]
