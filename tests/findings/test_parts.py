"""The narrowest subjects that explain a harm: on random nested jobs, users and projects."""

import numpy as np
import polars as pl
import pytest

from ioportal.findings.evidence.accused_parts import WINDOWS, explained
from ioportal.rules.rule import GROUPS, HARM_S, PART_SHARE, Subject
from tests.logs import at

SHARES = (0, 0.02, 0.2, 1)  # of a strong subject, by part of the jobs


def nested(draw):
    """Return jobs with their groups, and the harm of each in some windows."""
    count = 40
    project = draw.integers(2, size=count)
    user = 2 * project + draw.integers(2, size=count)  # in one project
    name = draw.integers(3, size=count)
    jobs = pl.DataFrame({"job": range(count), "user": user, "project": project, "name": name})
    text = pl.format("{}:{}", "user", "name")
    jobs = jobs.with_columns(
        pl.format("u{}", "user").alias("user"),
        pl.format("p{}", "project").alias("project"),
        application=text,
        campaign=pl.format("{}:{}", "project", "name"),
    )
    starts = [at(f"12:0{minute}") for minute in range(4)]
    harm_s = draw.exponential(20, (count, 4)) * draw.choice(SHARES, (count, 1))
    harm_s[draw.integers(count)] *= draw.choice([1, 50])
    rows = [
        (jobs.row(n, named=True), start, harm_s[n, window] * 1e6)
        for n in range(count)
        for window, start in enumerate(starts)
    ]
    of_jobs = pl.DataFrame(
        [(str(job["job"]), *(job[kind] for kind in GROUPS), start, us) for job, start, us in rows],
        schema=["job", *GROUPS, "start", "impact_us"],
        orient="row",
        schema_overrides={"start": WINDOWS["start"]},
    )
    windows = pl.concat(
        of_jobs.group_by("start", part=kind)
        .agg(pl.sum("impact_us"))
        .select(part_kind=pl.lit(kind), part="part", start="start", impact_us="impact_us")
        for kind in (Subject.JOB.value, *map(str, GROUPS))
    )
    return jobs, windows.select(*WINDOWS)


def members(jobs, kind):
    return jobs.select("job", *GROUPS[: GROUPS.index(kind)], key=kind)


@pytest.mark.parametrize("seed", range(20))
def test_each_harm_is_accused_once_at_its_narrowest_subject(seed):
    jobs, windows = nested(np.random.default_rng(seed))
    harm_s = {
        (kind, part): us / 1e6
        for kind, part, us in windows.group_by("part_kind", "part").agg(pl.sum("impact_us")).rows()
    }
    accused = [key for key, harm in harm_s.items() if key[0] == Subject.JOB and harm >= HARM_S]
    by_key = {(Subject.JOB, str(job)): {job} for job in jobs["job"]}
    for kind in GROUPS:
        flagged = pl.DataFrame(accused, schema=["part_kind", "part"], orient="row").cast(pl.String)
        found = dict(explained(kind, members(jobs, kind), windows, flagged).rows())
        for key, own in jobs.group_by(kind).agg("job").rows():
            by_key[kind, key] = set(own)
            harm = harm_s[kind, key]
            if harm >= HARM_S and found[key] < PART_SHARE * harm:
                accused.append((kind, key))

    for kind, key in accused:
        parts = [part for part in by_key if by_key[part] < by_key[kind, key]]
        assert all(harm_s[part] < PART_SHARE * harm_s[kind, key] for part in parts)
        own = set().union(*(by_key[part] for part in parts if part in accused))
        explained_s = sum(harm_s[Subject.JOB, str(job)] for job in own)
        assert explained_s < PART_SHARE * harm_s[kind, key]
    for (kind, key), harm in harm_s.items():  # each harmful project: itself, or parts of it
        if kind == Subject.PROJECT and harm >= HARM_S:
            parts = [part for part in by_key if by_key[part] < by_key[kind, key]]
            largest = max(harm_s[part] for part in parts)
            assert largest >= PART_SHARE * harm or {(kind, key), *parts} & set(accused)
