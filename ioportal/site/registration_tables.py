"""Tables that sites have anyway, as documents that `registration.register` takes.

Source: docs/operations.md, "Tables".
"""

from __future__ import annotations

import csv
import re
import tomllib
from typing import TYPE_CHECKING, Any

from django.db import models

from ioportal.site.registration import Unusable

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_BYTES = 32 * 1024 * 1024

_USER_COLUMNS = {
    "name": "name",
    "user": "name",
    "login": "name",
    "full_name": "full_name",
    "email": "email",
    "mail": "email",
    "projects": "projects",
    "team": "team",
}
_BETWEEN = re.compile(r"[\s,;]+")
_DELIMITERS = ",;\t|"
_OWN = "@lo"  # every node's NID of itself


class Table(models.TextChoices):
    """What a file may hold."""

    SITE = "site", "a site (TOML)"
    NIDS = "nids", "NIDs and their nodes"
    NODES = "nodes", "nodes"
    USERS = "users", "users (CSV)"


def document(table: Table, text: str, cluster: str = "") -> dict[str, Any]:
    """Return what a file says as a document to register.

    Args:
        table: what it holds.
        text: of the file.
        cluster: whose NIDs or nodes they are.

    Raises:
        Unusable: it cannot be read.
    """
    if table is Table.SITE:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise Unusable(str(error)) from error
    if table is Table.USERS:
        return {"user": list(_users(text))}
    if not cluster:
        raise Unusable(f"Say of which cluster the {table} are.")
    if table is Table.NODES:
        nodes = ",".join(node for _, line in _lines(text) for node in _BETWEEN.split(line) if node)
        return {"cluster": [{"name": cluster, "nodes": nodes}]}
    return {"cluster": [{"name": cluster, "nid": list(_nids(text))}]}


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that say something, and their numbers."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        said = line.partition("#")[0].strip()
        if said:
            yield number, said


def _nids(text: str) -> Iterator[dict[str, str]]:
    """Yield NIDs and their nodes: a node and its NIDs a line, in any order."""
    is_first = True
    for number, line in _lines(text):
        words = [word.removesuffix(":") for word in _BETWEEN.split(line)]
        nids = [word for word in words if "@" in word]
        nodes = [word for word in words if word and "@" not in word]
        is_header = is_first and not nids
        is_first = False
        if is_header:
            continue
        if len(nodes) != 1 or not nids:
            raise Unusable(f"line {number}: {line[:64]!r} is not one node and its NIDs.")
        yield from ({"nid": nid, "node": nodes[0]} for nid in nids if not nid.endswith(_OWN))


def _users(text: str) -> Iterator[dict[str, Any]]:
    """Yield users as the columns that the first line names tell of them."""
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    rows = csv.reader(text.splitlines(), delimiter=delimiter)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        columns = [_USER_COLUMNS.get(name, "") for name in header]
        if "name" not in columns or "" in columns:
            raise Unusable(
                f"line 1: {head[:64]!r} does not name the columns: name, and of full_name, email, "
                "projects and team those that there are."
            )
        for cells in rows:
            if not any(cells):
                continue
            if len(cells) != len(columns):
                raise Unusable(f"line {rows.line_num}: {len(cells)} cells, not {len(columns)}.")
            user: dict[str, Any] = {
                name: cell.strip() for name, cell in zip(columns, cells, strict=True)
            }
            if "projects" in user:
                user["projects"] = [word for word in _BETWEEN.split(user["projects"]) if word]
            yield user
    except csv.Error as error:
        raise Unusable(f"line {rows.line_num}: {error}.") from error
