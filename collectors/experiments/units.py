"""Units in the names of metrics: values are stored in the base unit of their suffix."""

from collectors.batch.values import Unreadable

# Suffix of a column to the suffix of the stored metric, and the factor. The longest suffix applies.
_CONVERSIONS = {
    "_us": ("_s", 1e-6),
    "_ms": ("_s", 1e-3),
    "_min": ("_s", 60.0),
    "_h": ("_s", 3_600.0),
    "_percent": ("_share", 0.01),
    **{
        f"_{name}{rate}": (f"_bytes{rate}", factor)
        for rate in ("", "_per_s")
        for name, factor in (
            ("kb", 1e3),
            ("mb", 1e6),
            ("gb", 1e9),
            ("tb", 1e12),
            ("kib", 2.0**10),
            ("mib", 2.0**20),
            ("gib", 2.0**30),
            ("tib", 2.0**40),
        )
    },
}
_WHOLE_NAMES = {"seconds": "duration_s"}
_LONGEST_NAME = 64


def metric(name: str) -> tuple[str, float]:
    """Return the stored name of a metric, and the factor of its values.

    Args:
        name: lower-case letters, digits and ``_``; its suffix is the unit: ``wall_ms``.

    Returns:
        The name with a base unit (``_s``, ``_bytes``, ``_bytes_per_s``, ``_share``), and base
        units per unit. Names without a known suffix stay as they are.

    Raises:
        Unreadable: the name has another form.

    Source: docs/formats.md, "Run table".
    """
    if not is_name(name):
        raise Unreadable(
            f"column name {name[:_LONGEST_NAME]!r} is not in lower-case letters, digits and _, "
            "with the unit at its end (wall_s)"
        )
    if name in _WHOLE_NAMES:
        return _WHOLE_NAMES[name], 1.0
    fitting = [suffix for suffix in _CONVERSIONS if name.endswith(suffix)]
    if not fitting:
        return name, 1.0
    suffix = max(fitting, key=len)
    base, factor = _CONVERSIONS[suffix]
    return name.removesuffix(suffix) + base, factor


def is_name(text: str) -> bool:
    """Return whether a text can name a metric or label."""
    return len(text) <= _LONGEST_NAME and text.isidentifier() and text.isascii() and text.islower()
