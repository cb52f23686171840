"""Metrics of runs: a name ends with its unit, so that any source may bring new ones."""

from ioportal.analysis.metrics import Metric, Source, Unit

_UNITS = {  # by the end of the name; the longest first
    "_bytes_per_s": Unit.BYTES_PER_SECOND,
    "_per_s": Unit.PER_SECOND,
    "_bytes": Unit.BYTES,
    "_share": Unit.SHARE,
    "_us": Unit.MICROSECONDS,
    "_s": Unit.SECONDS,
}
_TITLES = {
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
    title = _TITLES.get(name) or name.removesuffix(end).replace("_", " ").strip().capitalize()
    return Metric(name, title, _UNITS.get(end, Unit.RATIO), Source.EXPERIMENT, "as the run reports")
