"""The agent's configuration file, agent.toml, validated before anything starts.

Source: docs/operations.md, "Agents".
"""

import os
import re
import stat
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from collectors.format import AgentInput, Format, Origin
from collectors.formats import BY_NAME, FORMATS
from collectors.tables import RPC_WINDOWS

KINDS: tuple[AgentInput, ...] = get_args(AgentInput)
_LOG_EVERY_S = 5.0
_TRACE_EVERY_S = 1.0  # a window is read as soon as it is complete
_POLL_EVERY_S = 60.0
_SPOOL_BYTES = 1_000_000_000

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_UNIT_S = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZE = re.compile(r"(\d+)(kB|MB|GB|TB)")
_UNIT_BYTES = {"kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_OWN_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


class ConfigError(Exception):
    """An error in agent.toml; the message says where, and gives valid values."""


@dataclass(frozen=True)
class SourceConfig:
    """One source."""

    name: str
    format: Format
    kind: AgentInput
    path: str  # of a file, a pipe, or a pattern of paths; "": it is a command
    command: tuple[str, ...]
    token_file: Path
    every_s: float
    origin: Origin
    timeout_s: float  # of a command
    look_back_s: float  # from the last run of a command to its `{since}`
    idle_s: float  # of job_stats: Lustre's job_cleanup_interval
    settled_s: float  # a file is finished after this time without writes


@dataclass(frozen=True)
class Config:
    """All of agent.toml."""

    url: str
    ca_file: Path | None
    state: Path
    metrics: Path | None
    spool_bytes: int  # of each source
    sources: tuple[SourceConfig, ...]


def load(path: Path) -> Config:
    """Read and validate a configuration.

    Raises:
        ConfigError: the file cannot be read or is invalid.
    """
    try:
        with path.open() as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise ConfigError(f"{path}: other users can write to it: chmod 644 {path}")
            content = tomllib.loads(file.read())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error
    top = _Section(str(path), content)
    portal = top.section("portal")
    agent = top.section("agent")
    sources = top.sections("source")
    metrics, ca_file = agent.text("metrics", ""), portal.text("ca_file", "")
    config = Config(
        url=_url(portal),
        ca_file=Path(ca_file) if ca_file else None,
        state=Path(agent.text("state")),
        metrics=Path(metrics) if metrics else None,
        spool_bytes=agent.size("spool_max", _SPOOL_BYTES),
        sources=tuple(_source(section, path.parent) for section in sources),
    )
    names = [source.name for source in config.sources]
    if len(set(names)) < len(names) or not names:
        raise ConfigError(f"{path}: at least one [[source]] is required, each with a unique name")
    for section in (top, portal, agent, *sources):
        section.end()
    return config


def _url(portal: "_Section") -> str:
    url = portal.text("url").rstrip("/")
    parts = urlsplit(url)
    is_own = parts.hostname in _OWN_HOSTS
    if parts.scheme != "https" and not (parts.scheme == "http" and is_own):
        raise portal.invalid("url", "must start with https:// (every batch carries a token)")
    return url


def _source(section: "_Section", folder: Path) -> SourceConfig:
    name = section.text("name")
    if not _NAME.fullmatch(name):
        raise section.invalid("name", "must be 1 to 64 letters, digits, '_', '.' and '-'")
    kinds = [kind for kind in KINDS if section.has(kind)]
    if len(kinds) != 1:
        raise ConfigError(f"{section.name}: {name} needs one of {', '.join(KINDS)}")
    [kind] = kinds
    name_of_format = section.text("format")
    accepted = [form.name for form in FORMATS if kind in form.agent_inputs]
    if name_of_format not in accepted:
        raise section.invalid("format", f"must be one of {', '.join(accepted)} for a {kind}")
    form = BY_NAME[name_of_format]
    return SourceConfig(
        name=name,
        format=form,
        kind=kind,
        path="" if kind == "command" else _absolute(section, kind),
        command=section.texts(kind) if kind == "command" else (),
        token_file=folder / section.text("token_file"),
        every_s=section.duration("every", _every_s(form, kind)),
        origin=_origin(section, needs_zone=form.has_local_times),
        timeout_s=section.duration("timeout", 60.0),
        look_back_s=section.duration("look_back", 3600.0),
        idle_s=section.duration("job_cleanup_interval", 600.0),
        settled_s=section.duration("settled", 60.0 if kind == "folder" else 5.0),
    )


def _every_s(form: Format, kind: AgentInput) -> float:
    if kind not in {"file", "pipe"}:
        return _POLL_EVERY_S
    return _TRACE_EVERY_S if form.table is RPC_WINDOWS else _LOG_EVERY_S


def _absolute(section: "_Section", kind: str) -> str:
    path = section.text(kind)
    if not path.startswith("/"):
        raise section.invalid(kind, "must be an absolute path")
    return path


def _origin(section: "_Section", *, needs_zone: bool) -> Origin:
    default = Origin()
    zone = section.text("zone", "") if not needs_zone else section.text("zone")
    try:
        return Origin(
            zone=ZoneInfo(zone) if zone else default.zone,
            columns=section.texts("columns") if section.has("columns") else None,
            exec_hosts_are_compute_nodes=section.flag(
                "exec_hosts_are_compute_nodes", default=default.exec_hosts_are_compute_nodes
            ),
        )
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise section.invalid(
            "zone", f"must be a time zone such as Europe/Berlin ({error})"
        ) from error


class _Section:
    """A table of the file; keys that are never read are errors."""

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self._values = values
        self._read_keys: set[str] = set()

    def end(self) -> None:
        """Raise `ConfigError` if there is an unknown key."""
        for key in self._values.keys() - self._read_keys:
            raise ConfigError(f"{self.name}: unknown key {key!r}")

    def has(self, key: str) -> bool:
        return key in self._values

    def invalid(self, key: str, expected: str) -> ConfigError:
        return ConfigError(f"{self.name}: {key} = {self._values.get(key)!r}: {expected}")

    def text(self, key: str, default: str | None = None) -> str:
        value = self._get(key, default)
        if not isinstance(value, str) or (not value and default is None):
            raise self.invalid(key, "must be a non-empty string")
        return value

    def texts(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        value = self._get(key, default)
        if (
            not isinstance(value, Collection)
            or not value
            or not all(isinstance(item, str) for item in value)
            or isinstance(value, str)
        ):
            raise self.invalid(key, "must be a non-empty list of strings")
        return tuple(value)

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise self.invalid(key, "must be true or false")
        return value

    def duration(self, key: str, default: float) -> float:
        """Return seconds."""
        if not self.has(key):
            self._read_keys.add(key)
            return default
        match = _DURATION.fullmatch(self.text(key))
        if not match or not float(match[1]):
            raise self.invalid(key, 'must be a duration such as "500ms", "10s", "5m" or "2h"')
        return float(match[1]) * _UNIT_S[match[2]]

    def size(self, key: str, default: int) -> int:
        """Return bytes."""
        if not self.has(key):
            self._read_keys.add(key)
            return default
        match = _SIZE.fullmatch(self.text(key))
        if not match:
            raise self.invalid(key, 'must be a size such as "500MB" or "2GB"')
        return int(match[1]) * _UNIT_BYTES[match[2]]

    def section(self, key: str) -> "_Section":
        value = self._get(key, None)
        if not isinstance(value, dict):
            raise self.invalid(key, f"must be a section [{key}]")
        return _Section(f"{self.name}: [{key}]", value)

    def sections(self, key: str) -> "list[_Section]":
        value = self._get(key, None)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.invalid(key, f"must be a list of sections [[{key}]]")
        return [_Section(f"{self.name}: [[{key}]] {n}", item) for n, item in enumerate(value, 1)]

    def _get(self, key: str, default: Any) -> Any:
        self._read_keys.add(key)
        if default is None and key not in self._values:
            raise ConfigError(f"{self.name}: {key} is missing")
        return self._values.get(key, default)
