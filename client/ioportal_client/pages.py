"""Answers of the portal as lines of text."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from ioportal_client import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ioportal_client.answers import Case, Comparison, Figures, Job, Load

_LABEL = 21  # width
_KINDS_OF_OPERATIONS = 4
_SIMULATED = "Simulated data."
_CASE_COLUMNS = (
    *("case", "severity", "rule", "subject", "application"),
    *("jobs", "highest", "threshold", "last"),
)
_COMPARED: tuple[tuple[str, Callable[[Job], float | None], Callable[[float | None], str]], ...] = (
    ("nodes", lambda job: job["nodes"], text.number),
    ("metadata operations", lambda job: job["mdops_total"], text.number),
    ("peak rate per second", lambda job: job["mdops_rate_max"], text.number),
    ("opens", lambda job: job["open_total"], text.number),
    ("closes", lambda job: job["close_total"], text.number),
    ("read", lambda job: job["read_bytes"], text.size),
    ("written", lambda job: job["write_bytes"], text.size),
    ("extra wait of others (s)", lambda job: job["impact_s"], text.number),
)


def job(found: Job) -> Iterator[str]:
    """Yield the figures of a job, at most 30 lines."""
    yield _title(found)
    if found["simulated"]:
        yield _SIMULATED
    rows = [("User", _user(found)), ("Run", _run(found)), ("Nodes", text.number(found["nodes"]))]
    if found["batch_job"] is None:
        rows.append(("Batch job", "not known yet: there are no figures"))
    else:
        rows += _figures(found)
    yield from (f"{label:<{_LABEL}} {text.visible(value)}".rstrip() for label, value in rows)
    if found["url"]:
        yield text.visible(found["url"])


def load(title: str, answer: Load, limit: int) -> Iterator[str]:
    """Yield the busiest users, jobs or projects in a range."""
    yield f"{title}, {text.utc(answer['start'])} to {text.utc(answer['end'])}"
    if answer["simulated"]:
        yield _SIMULATED
    if not answer["attributed_s"]:
        yield "No data in this range. Give a longer one with --last."
        return
    unit = answer["unit"]
    rows = [
        (
            consumer["principal"],
            *map(text.number, (consumer["latest_per_second"], consumer["mean_per_second"])),
            text.percent(consumer["share"]),
            text.number(consumer["nodes"]) if consumer["nodes"] else "",
        )
        for consumer in answer["top"][:limit]
    ]
    if rows:
        yield from text.table(("name", f"latest {unit}", f"mean {unit}", "share", "nodes"), rows)
    else:
        yield "No activity in this range."


def cases(found: Sequence[Case], limit: int) -> Iterator[str]:
    """Yield cases, worst first."""
    if not found:
        yield "No cases."
        return
    rows = [
        (
            str(case["id"]),
            case["severity"],
            case["title"],
            case["name"],
            case["application"],
            str(case["jobs"]),
            text.number(case["highest"]),
            text.number(case["threshold"]),
            text.utc(case["until"]),
        )
        for case in found[:limit]
    ]
    yield from text.table(_CASE_COLUMNS, rows, left=5)
    if len(found) > limit:
        yield f"{len(found) - limit:,} more. Show more with --limit."


def comparison(answer: Comparison) -> Iterator[str]:
    """Yield the arms, conclusions and table of a comparison."""
    for arm in answer["arms"]:
        name, filters = text.visible(arm["name"]), text.visible(arm["filters"])
        yield f"{name}: {arm['jobs']:,} {answer['counted']} on {arm['days']} days ({filters})"
    if answer["simulated"]:
        yield _SIMULATED
    for name, sentences in answer["conclusions"].items():
        yield ""
        yield f"{text.visible(name)}:"
        yield from (f"  {text.visible(sentence)}" for sentence in sentences)
    yield from (f"Warning: {text.visible(warning)}" for warning in answer["warnings"])
    yield ""
    names = [arm["name"] for arm in answer["arms"]]
    metrics: dict[str, dict[str, Figures]] = {}
    for row in answer["rows"]:
        metrics.setdefault(row["metric"], {})[row["arm"]] = row
    header = ("metric", *names, *(f"effect: {name}" for name in names[1:]))
    rows, refused = [], defaultdict(list)
    for metric, arms in metrics.items():
        title = metric.replace("_", " ")
        if all(arms[name]["refusal"] for name in names[1:]):
            refused[arms[names[1]]["refusal"]].append(title)
        else:
            medians = (_median(arms[name]) for name in names)
            rows.append((title, *medians, *(_effect(arms[name]) for name in names[1:])))
    if rows:
        yield "Medians, and their ratio or difference with its 95 % interval"
        yield from text.table(header, rows)
    for reason, titles in refused.items():
        yield f"Not compared, {text.visible(str(reason))}: {', '.join(titles)}"


def two_jobs(one: Job, other: Job) -> Iterator[str]:
    """Yield the figures of two jobs side by side."""
    for found in (one, other):
        quality = text.visible(found["quality"] or text.UNKNOWN)
        yield f"{_title(found)}, {text.visible(_run(found))}, quality {quality}"
    yield "Two single jobs: differences have no interval. Compare filters for conclusions."
    yield ""
    rows = []
    for title, figure, written in _COMPARED:
        before, after = figure(one), figure(other)
        ratio = text.number(after / before) if before and after is not None else ""
        rows.append((title, written(before), written(after), ratio))
    yield from text.table(("figure", _id(one), _id(other), "ratio"), rows)


def _title(found: Job) -> str:
    name = found.get("jobname") or found.get("computingsite") or ""
    kind = "PanDA job" if "pandaid" in found else "Job"
    title = f"{kind} {_id(found)} on {found['cluster']}"
    return text.visible(f"{title}: {name}" if name else title)


def _id(found: Job) -> str:
    return str(found.get("pandaid", found["batchid"]))


def _user(found: Job) -> str:
    if "pandaid" in found:
        return found.get("produsername", "")
    parts = (found.get("owner", ""), f"project {found.get('project') or text.UNKNOWN}")
    return ", ".join((*parts, f"queue {found.get('queue') or text.UNKNOWN}"))


def _run(found: Job) -> str:
    start, end = text.moment(found["starttime"]), text.moment(found["endtime"])
    if start is None:
        return f"not started, {found['jobstatus']}"
    length = f" ({text.duration((end - start).total_seconds())})" if end else ""
    return f"from {text.utc(found['starttime'])}{length}, {found['jobstatus']}"


def _figures(found: Job) -> Iterator[tuple[str, str]]:
    """Yield labels and values of the figures of a batch job."""
    if "pandaid" in found:
        shared = ", shared with other PanDA jobs" if found["shared_batch"] else ""
        yield "Figures of batch job", f"{found['batch_job']}{shared}"
    yield "Metadata operations", text.number(found["mdops_total"])
    mix = sorted((found["op_mix"] or {}).items(), key=lambda item: -item[1])
    yield from (("", f"{text.percent(part)} {kind}") for kind, part in mix[:_KINDS_OF_OPERATIONS])
    rate, interval_s = found["mdops_rate_max"], found["mdops_rate_max_interval_s"]
    over = f" over {text.duration(interval_s)}" if interval_s else ""
    yield "Peak rate", text.UNKNOWN if rate is None else f"{text.number(rate)} per second{over}"
    opens, closes = (text.number(found[name]) for name in ("open_total", "close_total"))
    yield "Opens and closes", f"{opens} and {closes}"
    if (share := found["mdt_share_max_pct"]) is not None:
        yield "Largest share of an MDT", f"{share:.3g} %"
    yield "Read", text.size(found["read_bytes"])
    yield "Written", text.size(found["write_bytes"])
    if (waiting_s := found["impact_s"]) is not None:
        source = "estimated" if found["impact_is_estimated"] else "measured"
        yield "Impact", f"{text.number(waiting_s)} s of extra wait of others ({source})"
    qualities = (found[name] or text.UNKNOWN for name in ("quality", "bytes_quality"))
    yield "Quality", "{}; of bytes: {}".format(*qualities)
    yield "Flags", ", ".join(found["flags"]) or "none"
    if found["npandajobs"]:
        yield "PanDA jobs inside", text.number(found["npandajobs"])


def _median(row: Figures) -> str:
    write = text.size if row["unit"] == "bytes" else text.number
    return write(row["median"])


def _effect(row: Figures) -> str:
    """Return the effect of an arm as text, or why there is none."""
    if row["estimate"] is None:
        return row["refusal"] or text.UNKNOWN
    sign = "\N{MULTIPLICATION SIGN}" if row["scale"] == "ratio" else ""
    low, high = (text.number(row[bound]) for bound in ("low", "high"))
    return f"{sign}{text.number(row['estimate'])} ({low} to {high})"
