"""Tables of NIDs, nodes, users and projects, converted to documents for `registration.register`.

Source: docs/operations.md, "Tables".
"""

from __future__ import annotations

import csv
import re
import tomllib
from typing import TYPE_CHECKING, Any

from django.db import models

from ioportal.site.document_keys import InvalidDocument
from ioportal.site.job_id_pattern import LARGEST_UID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

LARGEST_BYTES = 32 * 1024 * 1024

_USER_COLUMNS = {
    "name": "name",
    "user": "name",
    "login": "name",
    "full_name": "full_name",
    "uid": "uid",
    "email": "email",
    "mail": "email",
    "projects": "projects",
    "team": "team",
}
_PROJECT_COLUMNS = {
    "name": "name",
    "project": "name",
    "contact": "contact",
    "email": "email",
    "mail": "email",
    "user": "user",
    "login": "user",
}
_SEPARATOR = re.compile(r"[\s,;]+")
_DELIMITERS = ",;\t|"
_LOOPBACK = "@lo"


class Table(models.TextChoices):
    """Kinds of tables."""

    SITE = "site", "a site (TOML)"
    NIDS = "nids", "NIDs and their nodes"
    NODES = "nodes", "nodes"
    USERS = "users", "users (CSV)"
    PROJECTS = "projects", "projects and their contacts (CSV)"


def document(table: Table, text: str, cluster: str = "") -> dict[str, Any]:
    """Return a file as a document to register.

    Args:
        table: kind of the table.
        text: content of the file.
        cluster: cluster of the NIDs or nodes.

    Raises:
        InvalidDocument: the file is malformed.
    """
    if table is Table.SITE:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidDocument(str(error)) from error
    if table is Table.USERS:
        return {"user": list(_users(text))}
    if table is Table.PROJECTS:
        return {"project": [row for _, row in _rows(text, _PROJECT_COLUMNS)]}
    if not cluster:
        raise InvalidDocument(f"Name the cluster of the {table}.")
    if table is Table.NODES:
        nodes = ",".join(
            node for _, line in _lines(text) for node in _SEPARATOR.split(line) if node
        )
        return {"cluster": [{"name": cluster, "nodes": nodes}]}
    return {"cluster": [{"name": cluster, "nid": list(_nids(text))}]}


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield line numbers and lines without comments; empty lines are skipped."""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        if content := line.partition("#")[0].strip():
            yield number, content


def _nids(text: str) -> Iterator[dict[str, str]]:
    """Yield NIDs and their nodes. Each line has a node and its NIDs, in any order."""
    is_first = True
    for number, line in _lines(text):
        names = [name.removesuffix(":") for name in _SEPARATOR.split(line)]
        nids = [name for name in names if "@" in name]
        nodes = [name for name in names if name and "@" not in name]
        is_header = is_first and not nids
        is_first = False
        if is_header:
            continue
        if len(nodes) != 1 or not nids:
            raise InvalidDocument(f"line {number}: expected one node and its NIDs: {line[:64]!r}.")
        yield from ({"nid": nid, "node": nodes[0]} for nid in nids if not nid.endswith(_LOOPBACK))


def _uid(cell: str, line: int) -> dict[str, int]:
    if not cell:
        return {}
    if not (cell.isascii() and cell.isdecimal() and len(cell) <= len(str(LARGEST_UID))):
        raise InvalidDocument(f"line {line}: {cell[:64]!r} is not a numeric user id.")
    return {"uid": int(cell)}


def _users(text: str) -> Iterator[dict[str, Any]]:
    """Yield users."""
    for line, row in _rows(text, _USER_COLUMNS):
        user: dict[str, Any] = {**row}
        if "uid" in user:
            user |= _uid(user.pop("uid"), line)
        if "projects" in user:
            user["projects"] = [name for name in _SEPARATOR.split(user["projects"]) if name]
        yield user


def _rows(text: str, names: Mapping[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield line numbers and rows of a CSV table, whose first line has the columns.

    Args:
        text: the table.
        names: key of a row by column name.
    """
    text = text.removeprefix("\ufeff")
    head = text.partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    rows = csv.reader(text.splitlines(), delimiter=delimiter)
    try:
        header = [name.strip().lower() for name in next(rows, [])]
        columns = [names.get(name, "") for name in header]
        if "name" not in columns or "" in columns:
            _, *optional = dict.fromkeys(names.values())
            raise InvalidDocument(
                f"line 1: unknown columns: {head[:64]!r}. Use name and, if present, "
                f"{', '.join(optional[:-1])} and {optional[-1]}."
            )
        for cells in rows:
            if not any(cells):
                continue
            if len(cells) != len(columns):
                raise InvalidDocument(
                    f"line {rows.line_num}: expected {len(columns)} cells, got {len(cells)}."
                )
            yield (
                rows.line_num,
                {name: cell.strip() for name, cell in zip(columns, cells, strict=True)},
            )
    except csv.Error as error:
        raise InvalidDocument(f"line {rows.line_num}: {error}.") from error
