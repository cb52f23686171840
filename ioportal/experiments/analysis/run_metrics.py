"""Metrics of runs: a name ends with its unit, so that any source may bring new ones."""

from ioportal.core.units import Source, Unit
from ioportal.metrics import Metric

_UNITS = {  # by the end of the name; the longest first
    "_bytes_per_s": Unit.BYTES_PER_SECOND,
    "_per_s": Unit.PER_SECOND,
    "_bytes": Unit.BYTES,
    "_share": Unit.SHARE,
    "_us": Unit.MICROSECONDS,
    "_s": Unit.SECONDS,
}
_UNITS_OF_NAMES = {"bytes": Unit.BYTES, "cores": Unit.CORES, "events": Unit.EVENTS}
_ACRONYMS = {"cpu": "CPU", "io": "I/O", "ior": "IOR", "api": "API", "pss": "PSS", "rss": "RSS"}
_TITLES = {
    "duration_s": "Duration",
    "latency_s": "Latency",
    "cpu_s": "CPU time",
    "wall_s": "Wall time",
    "user_s": "User CPU time",
    "sys_s": "System CPU time",
    "read_bytes": "Read",
    "write_bytes": "Written",
    "efficiency_share": "CPU efficiency",
}


def run_metric(name: str) -> Metric:
    """Return the title and the unit of a metric by its name.

    Args:
        name: such as ``copy_s`` or ``bandwidth_bytes_per_s``; without a unit it is a number.

    Source: docs/experiments.md, "Metrics of runs".
    """
    end = next((end for end in _UNITS if name.endswith(end) and name != end), "")
    unit = _UNITS.get(end) or _UNITS_OF_NAMES.get(name, Unit.RATIO)
    title = _TITLES.get(name) or titled(name.removesuffix(end))
    if unit is Unit.PER_SECOND:
        title = f"{title} per second"
    if unit is Unit.SECONDS and "time" not in title and name not in _TITLES:
        title = f"{title} time"
    return Metric(name, title, unit, Source.EXPERIMENT, "as the run reports")


def titled(name: str) -> str:
    """Return the name of a metric or label as a title: ``open_files`` is "Open files"."""
    words = [_ACRONYMS.get(word, word) for word in name.split("_") if word]
    text = " ".join(words)
    return text[:1].upper() + text[1:]
