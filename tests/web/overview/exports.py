"""Exports of the overview's sections."""

from tests.web.reading import json_of

RANGE = "start=2017-07-05T12:00:00Z&end=2017-07-05T13:00:00Z"


def top(client, name, query=RANGE):
    return json_of(client.get(f"/overview/{name}/?{query}&format=json"))
