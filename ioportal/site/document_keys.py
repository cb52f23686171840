"""Keys of a site's registration document, and the types of their values."""

from __future__ import annotations

from datetime import date

# Keys of each table and the types of their values.
KEYS: dict[str, dict[str, type]] = {
    "": {
        "cluster": list, "filesystem": list, "server": list, "target": list, "source": list,
        "user": list, "project": list,
    },
    "cluster": {
        "name": str, "time_zone": str, "batch": str, "simulated": bool, "nodes": str,
        "forwarding_nodes": str,
        "exec_hosts_are_compute_nodes": bool, "cores_per_node": int, "nid_rule": dict, "nid": list,
    },
    "cluster.nid_rule": {"network": str, "node": str},
    "cluster.nid": {"nid": str, "node": str},
    "filesystem": {"name": str, "clusters": list, "job_id_pattern": str, "simulated": bool},
    "server": {
        "name": str, "filesystem": str, "kind": str, "capacity_per_s": int, "version": list,
    },
    "server.version": {"version": str, "since": date},  # (a datetime is a date, too)
    "target": {
        "name": str, "filesystem": str, "server": str, "kind": str, "job_cleanup_interval": int,
    },
    "source": {
        "name": str, "format": str, "cluster": str, "filesystem": str, "server": str,
        "poll_interval_s": int,
    },
    "user": {
        "name": str, "uid": int, "full_name": str, "email": str, "projects": list, "team": str,
    },
    "project": {"name": str, "contact": str, "email": str, "user": str},
}  # fmt: skip
_TYPE_NAMES = {
    str: "a string",
    bool: "true or false",
    int: "a whole number",
    list: "a list, or tables in double brackets",
    dict: "a table",
    date: "a date",
}


class InvalidDocument(Exception):  # noqa: N818  (a state of the document)
    """The document cannot be registered; the message names the table, the key and the remedy."""


def expect_keys(place: str, entry: object, keys: dict[str, type]) -> None:
    """Raise `InvalidDocument` if an entry is no table with these keys and types of values."""
    if not isinstance(entry, dict):
        raise InvalidDocument(f"{place}: {entry!r} is not a table.")
    if unknown := sorted(entry.keys() - keys.keys()):
        raise InvalidDocument(
            f"{place}: unknown key: {', '.join(unknown)}. Keys: {', '.join(sorted(keys))}."
        )
    for key, value in entry.items():
        # In Python, true and false are numbers, too.
        if not isinstance(value, keys[key]) or isinstance(value, bool) != (keys[key] is bool):
            raise InvalidDocument(f"{place}: {key} = {value!r} is not {_TYPE_NAMES[keys[key]]}.")
        if isinstance(value, str) and "\0" in value:
            raise InvalidDocument(f"{place}: {key} = {value!r} contains a NUL character.")
