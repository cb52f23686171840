"""The query of a look-up, with the parameter names and habits of PanDA's monitor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import BooleanField, DateTimeField, F, Func, Q, TextField
from django.utils.dateparse import parse_date, parse_datetime

from ioportal.api.problems import Problem, invalid
from ioportal.core.postgres.compiled import Parameter
from ioportal.jobs.expressions import KEYS, EachOf
from ioportal.jobs.panda_jobs import valid_ids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_IDS_IN_URL = 2_000
MOST_IDS = 20_000
MOST_RECORDS = 20_000
DEFAULT_SPAN = timedelta(hours=12)  # as PanDA's monitor
_DEFAULT_LIMIT = 1_000
_NUMBER_DIGITS = 6
_MOST_CHARACTERS = 200  # of a value with wildcards: longer expressions are slow
_MOST_TEXTS, _MOST_PATTERNS, _MOST_STARS = 1_000, 20, 4
_STARS = re.compile(r"\*+")
_SEPARATOR = re.compile(r"[,|]")
_IDS = ("pandaid", "jeditaskid", "batchid")
_TEXTS = {"computingsite": "site", "produsername": "user", "jobstatus": "state"}
_TIMES = ("hours", "days", "date_from", "date_to")
# `json` and `timestamp` are part of most addresses of PanDA's monitor.
PARAMETERS = frozenset({*_IDS, *_TEXTS, *_TIMES, "fields", "limit", "form", "json", "timestamp"})
FORMS = ("dict", "list")


def _any(field: str, operator: str, name: str) -> Q:
    """Return a condition: a text compares with any text of a parameter."""
    texts = Func(Parameter(name, ArrayField(TextField())), function="ANY")
    parts = {"template": "(%(expressions)s)", "arg_joiner": f" {operator} "}
    return Q(Func(F(field), texts, output_field=BooleanField(), **parts))


# Conditions on PanDA jobs, with parameters, by the attribute of `LookUpQuery` or the field.
CONDITIONS = {
    "panda_ids": Q(panda_id__in=EachOf(Parameter("panda_ids", KEYS))),
    "task_ids": Q(task_id__in=EachOf(Parameter("task_ids", KEYS))),
    "batch_ids": _any("reported_batch_id", "=", "batch_ids") | _any("batch_id", "=", "batch_ids"),
    "since": Q(modified_at__gte=Parameter("since", DateTimeField())),
    "until": Q(modified_at__lt=Parameter("until", DateTimeField())),
    **{
        field: _any(field, "=", field) | _any(field, "~", f"{field}_patterns")
        for field in _TEXTS.values()
    },
}
IDS = frozenset({"panda_ids", "task_ids", "batch_ids"})  # conditions that few jobs meet


@dataclass(frozen=True)
class LookUpQuery:
    """A look-up of PanDA jobs, or of batch jobs if it has batch ids only."""

    panda_ids: list[str]
    task_ids: list[str]
    batch_ids: list[str]
    texts: dict[str, list[str]]  # values by field of `WorkloadJob`; `*` stands for any characters
    since: datetime | None
    until: datetime | None
    fields: list[str]  # empty: all
    limit: int
    form: str
    warnings: list[str]

    @property
    def is_of_batch_jobs(self) -> bool:
        """Whether the records are batch jobs."""
        return bool(self.batch_ids) and not (self.panda_ids or self.task_ids or self.texts)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The names of the conditions on PanDA jobs."""
        return tuple(name for name in CONDITIONS if name in self.texts or getattr(self, name, None))

    @property
    def values(self) -> dict[str, Any]:
        """The values of the parameters of the conditions."""
        values = {
            "panda_ids": valid_ids(self.panda_ids),
            "task_ids": valid_ids(self.task_ids),
            "batch_ids": self.batch_ids,
            "since": self.since,
            "until": self.until,
        }
        for field, texts in self.texts.items():
            values[field] = [text for text in texts if "*" not in text]
            values[f"{field}_patterns"] = [_pattern(text) for text in texts if "*" in text]
        return values


def parsed(parameters: Mapping[str, str], most_ids: int, now: datetime) -> LookUpQuery:
    """Parse parameters; lists are separated by commas or bars.

    Raises:
        Problem: an unknown parameter or an invalid value.
    """
    if unknown := sorted(set(parameters) - PARAMETERS):
        raise invalid(unknown[0], f"It is not known. Known are {', '.join(sorted(PARAMETERS))}.")
    ids = {name: _values(parameters.get(name, "")) for name in _IDS}
    for name in _IDS:
        if name in parameters and not ids[name]:
            raise invalid(name, "It has no ids.")
    if (count := sum(map(len, ids.values()))) > most_ids:
        raise Problem(
            400,
            "too_many_ids",
            f"{count:,} ids were sent; at most {most_ids:,} are allowed here.",
            remedy=f"POST the same parameters: up to {MOST_IDS:,} ids."
            if most_ids < MOST_IDS
            else "Send several requests.",
        )
    texts = {
        field: values
        for name, field in _TEXTS.items()
        # Names of users contain commas.
        if (values := _values(parameters.get(name, ""), by_comma=name != "produsername"))
    }
    _expect_few(texts)
    since, until = _span(parameters, now)
    warnings = []
    has_ids = any(ids.values())
    if not has_ids and since is None and until is None:
        since = now - DEFAULT_SPAN
        warnings.append("Only jobs modified in the last 12 hours: no ids and no time were sent.")
    form = parameters.get("form") or FORMS[0]
    if form not in FORMS:
        raise invalid("form", f"Choose one of {', '.join(FORMS)}.")
    return LookUpQuery(
        panda_ids=ids["pandaid"],
        task_ids=ids["jeditaskid"],
        batch_ids=ids["batchid"],
        texts=texts,
        since=since,
        until=until,
        fields=_values(parameters.get("fields", "")),
        limit=_limit(parameters, MOST_RECORDS if has_ids else _DEFAULT_LIMIT),
        form=form,
        warnings=warnings,
    )


def _expect_few(texts: Mapping[str, Sequence[str]]) -> None:
    """Refuse more texts and wildcards than the database compares quickly."""
    for name, field in _TEXTS.items():
        values = texts.get(field, ())
        if len(values) > _MOST_TEXTS:
            raise invalid(name, f"It has more than {_MOST_TEXTS:,} values.")
        stars = [len(_STARS.findall(value)) for value in values]
        lengths = [len(_STARS.sub("*", value)) for value in values if "*" in value]
        if max(lengths, default=0) > _MOST_CHARACTERS:
            raise invalid(name, f"A value with a '*' has at most {_MOST_CHARACTERS} characters.")
        if max(stars, default=0) > _MOST_STARS or len(lengths) > _MOST_PATTERNS:
            raise invalid(
                name,
                f"At most {_MOST_PATTERNS} values have a '*', and none more than {_MOST_STARS}.",
            )


def _values(text: str, *, by_comma: bool = True) -> list[str]:
    """Return the distinct values of a list, in its order."""
    parts = _SEPARATOR.split(text) if by_comma else text.split("|")
    return list(dict.fromkeys(part.strip() for part in parts if part.strip()))


def _pattern(text: str) -> str:
    """Return a regular expression of a text in which `*` stands for any characters."""
    return "^" + ".*".join(map(re.escape, _STARS.split(text))) + "$"


def _span(parameters: Mapping[str, str], now: datetime) -> tuple[datetime | None, datetime | None]:
    since, until = _time(parameters, "date_from"), _time(parameters, "date_to")
    for name, unit in (("days", timedelta(days=1)), ("hours", timedelta(hours=1))):
        if text := parameters.get(name):
            since = now - _number(name, text, 100_000) * unit
    if since and until and since >= until:
        raise invalid("date_to", "It is not later than the start.")
    return since, until


def _time(parameters: Mapping[str, str], name: str) -> datetime | None:
    """Return a time; without a zone it is in UTC, as in PanDA. A date is its midnight."""
    text = parameters.get(name, "")
    if not text:
        return None
    try:
        if day := parse_date(text):
            return datetime(day.year, day.month, day.day, tzinfo=UTC)
        if moment := parse_datetime(text):
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        pass  # a month 13, or a time outside of the calendar
    raise invalid(name, "Send a time like 2017-08-18 or 2017-08-18T12:00:00.")


def _limit(parameters: Mapping[str, str], default: int) -> int:
    text = parameters.get("limit", "")
    return _number("limit", text, MOST_RECORDS) if text else default


def _number(name: str, text: str, most: int) -> int:
    is_number = text.isascii() and text.isdecimal() and len(text) <= _NUMBER_DIGITS
    if not is_number or not 0 < int(text) <= most:
        raise invalid(name, f"Send a whole number from 1 to {most:,}.")
    return int(text)
