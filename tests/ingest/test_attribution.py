"""Random small sites: every RPC is attributed by the rules, in any order of arrival.

The expected attribution comes from a second, simple implementation of the rules without a database.
"""

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from itertools import groupby

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ioportal.ingest import attribution_stage
from tests.logs import Run, at, pbs, rpc, sacct
from tests.properties import examples

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("site")]

NODE_OF = {"1@gni": "n1", "2@gni": "n2", "10.0.0.1@o2ib": "b1", "0@lo": None, "10.9.9.9@tcp": None}
UNREGISTERED = "10.9.9.9@tcp"
IDS = ("77", "78")
TEXTS = ("", *IDS, "cp.0", "kworker/3")

# Minutes around noon in steps of five seconds, so that runs and windows overlap in part.
CLOCKS = st.integers(0, 24).map(lambda step: at("12:00") + timedelta(seconds=5 * step))
STARTS = CLOCKS | st.sampled_from([at("09:00"), at("11:50"), at("12:06")])
LENGTHS = st.sampled_from([5, 10, 35, 60, 600, 7_200]).map(lambda s: timedelta(seconds=s))

RECORDS = st.lists(
    st.tuples(CLOCKS, st.sampled_from([*NODE_OF]), st.sampled_from(TEXTS)), min_size=1, max_size=12
)


@st.composite
def jobs(draw):
    """Draw jobs of both clusters: ended and perhaps running, with equal or different nodes."""
    drawn = []
    for number in range(draw(st.integers(0, 4))):
        cluster, nodes = draw(
            st.sampled_from([("anvil", ("n1", "n2", "n1,n2", "n3")), ("birch", ("b1", "b2"))])
        )
        start = draw(STARTS)
        ended = Run(
            draw(st.sampled_from(IDS)), start=start, end=start + draw(LENGTHS),
            submit=at("07:00") + timedelta(minutes=number), nodes=draw(st.sampled_from(nodes)),
            cluster=cluster,
        )  # fmt: skip
        runs = replace(ended.running(), nodes=draw(st.sampled_from(nodes)))
        drawn.append((ended, runs if draw(st.booleans()) else None))
    return drawn


def expected(records, ended):
    """Return the number of records by kind and name of principal."""
    total = Counter()

    def window(record):
        moment, nid, text = record
        return moment.replace(second=moment.second // 10 * 10, microsecond=0), nid, text

    for (start, nid, text), group in groupby(sorted(records, key=window), window):
        moments = [moment for moment, _, _ in group]
        end = start + timedelta(seconds=10)
        principal = _named(nid, text, start, end, min(moments), ended) if text in IDS else None
        if principal is None:
            principal = _on_node(nid, text, min(moments), max(moments), ended)
        total[principal] += len(moments)
    return dict(total)


def _named(nid, text, start, end, first, ended):
    """Return the principal that a job id names; None if the node contradicts all its claims."""
    near = [
        job
        for job in ended
        if job.batch_id == text
        if job.start - timedelta(minutes=5) < end and job.end + timedelta(hours=1) > start
    ]
    running = [job for job in near if job.start < end and job.end > start]
    node = NODE_OF[nid]
    if node:
        proven = [job for job in near if node in job.nodes.split(",")]
        if near and not proven:
            return None
        candidates = [job for job in proven if job in running] or proven
        if any(job.start <= first < job.end for job in ended if node in job.nodes.split(",")):
            # The node of a job that is over may be another job's.
            over = all(job.end + timedelta(minutes=1) <= start for job in candidates)
            if candidates and over:
                return None
    else:
        since_end = [job for job in near if job.end + timedelta(minutes=1) > start]
        candidates = running or since_end
    if not candidates:
        return "pending", text
    if len(candidates) > 1:
        return "ambiguous", text
    return "job", _name(candidates[0])


def _on_node(nid, text, first, last, ended):
    node = NODE_OF[nid]
    jobs_on_node = [job for job in ended if node in job.nodes.split(",")]
    holders = [job for job in jobs_on_node if job.start <= first < job.end]
    changes = any(first < moment <= last for job in jobs_on_node for moment in (job.start, job.end))
    if len(holders) == 1 and not changes:
        return "job", _name(holders[0])
    if text in IDS:
        return "contradicted", text
    if text:
        return ("process", text) if text.endswith(".0") else ("host", nid)
    if len(holders) > 1 or changes:
        return "ambiguous", nid
    return ("unattributed" if nid == UNREGISTERED else "host"), nid


def _name(job):
    return f"{job.cluster} {job.batch_id}"


@settings(
    max_examples=examples(25),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking would take too long
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_every_rpc_is_attributed_by_the_rules(logs, ingest, attribution, reconcile, data):
    drawn_jobs = data.draw(jobs(), label="jobs")
    records = {
        server: data.draw(RECORDS, label=server)
        for server in data.draw(st.sampled_from([["mds1"], ["mds1", "mds2"]]))
    }
    arrivals = [
        *(("trace", server) for server in records),
        *(("job", run) for versions in drawn_jobs for run in versions if run),
    ]
    order = data.draw(st.permutations(arrivals), label="order")
    stages = data.draw(st.lists(st.integers(0, 2), min_size=len(order), max_size=len(order)))

    with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)
        for number, ((kind, arrival), limit) in enumerate(zip(order, stages, strict=True)):
            name = f"{number}"
            if kind == "trace":
                text = "\n".join(
                    rpc(moment, nid, job=job)
                    for moment, nid, job in sorted(records[arrival], key=lambda record: record[0])
                )
                ingest("rpctrace", logs(name, text), server=arrival)
            elif arrival.cluster == "anvil":
                ingest("sacct", logs(name, sacct(arrival)), cluster="anvil")
            else:
                record = pbs(("S" if arrival.end is None else "E", arrival))
                ingest("pbs", logs(name, record), cluster="birch")
            if limit:
                attribution_stage.attribute_pending(limit)
        reconcile()
        stored = attribution()
        transaction.set_rollback(True)

    total = Counter()
    for server_records in records.values():
        total.update(expected(server_records, [ended for ended, _ in drawn_jobs]))
    assert stored == dict(total)
