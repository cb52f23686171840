"""Random reads of counters, in any order: the windows are the differences reckoned here."""

from collections import defaultdict
from datetime import timedelta
from itertools import pairwise

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ioportal.ingest import attribution_stage
from tests.logs import at, job_stats
from tests.properties import examples

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("site")]

OSTS = ("lake-OST0000", "lake-OST0001")
TARGETS = ("lake-MDT0000", *OSTS)
DIFFERENCE, NEW_ENTRY, RESTARTED, RESET, TOTAL = 1, 2, 3, 4, 5
IDLE = timedelta(seconds=600)

ENTRIES = st.dictionaries(st.sampled_from(["77", "78", "cp.0"]), st.integers(0, 9))
# A text: when it was read, how long before its entries were used last, and what it shows.
TEXTS = st.lists(
    st.tuples(
        st.integers(0, 8).map(lambda step: at("12:00") + step * timedelta(minutes=7)),
        st.sampled_from([timedelta(0), timedelta(minutes=5)]),
        st.dictionaries(st.sampled_from(TARGETS), ENTRIES, min_size=1),
    ),
    min_size=1,
    max_size=6,
)


def expected(texts):
    """Windows: start, end, OSTs or MDT, job id -> operations and what they rest on."""
    read = defaultdict(dict)  # by target: its reads by their times
    for number, (moment, before, shown) in enumerate(texts):
        for target, entries in shown.items():
            read[target][moment] = (number, moment - before, entries)
    windows = defaultdict(lambda: [0, 0])
    for target, reads in read.items():
        folded = "" if target in OSTS else target
        moments = sorted(reads)
        for previous, moment in pairwise([None, *moments]):
            number, _, entries = reads[moment]
            _, used, old = reads[previous] if previous else (None, None, {})
            for job, shown in entries.items():
                amount, basis = _gained(job, shown, old, previous and moment - used > IDLE)
                if previous is None:
                    basis = TOTAL
                window = windows[previous or moment, moment, folded, job, number]
                window[0] += amount
                window[1] = max(window[1], basis)
    return sorted(
        (start, end, folded, job, amount, basis)
        for (start, end, folded, job, _), (amount, basis) in windows.items()
        if amount or basis == RESET  # what was cleared is told, though it shows nothing yet
    )


def _gained(job, shown, old, idled):
    if job not in old:
        return shown, NEW_ENTRY
    if shown < old[job]:
        return shown, RESTARTED if idled else RESET
    return shown - old[job], DIFFERENCE


@settings(
    max_examples=examples(20),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # each takes long; none grows smaller
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_windows_are_what_lies_between_two_reads(logs, ingest, reconcile, queries, data):
    taken = set()
    texts = []
    for moment, before, shown in data.draw(TEXTS):
        # A target is read once at a time.
        shown_once = {t: e for t, e in shown.items() if (t, moment) not in taken}
        taken |= {(target, moment) for target in shown_once}
        if shown_once:
            texts.append((moment, before, shown_once))
    order = data.draw(st.permutations(range(len(texts))))
    stages = data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))

    with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)
        for number, limit in zip(order, stages, strict=True):
            moment, before, shown = texts[number]
            dump = "".join(
                job_stats(
                    target,
                    {job: {"sync": amount} for job, amount in entries.items()},
                    snapshot=moment - before,
                )
                for target, entries in shown.items()
            )
            ingest("job_stats", logs(f"{number}", dump), at=moment.isoformat())
            if limit:
                attribution_stage.attribute_pending(limit)
        reconcile()
        found = queries(
            "SELECT w.start, w.end, coalesce(t.name, ''), s.text, w.sync, w.basis "
            "FROM telemetry_iowindow w JOIN site_sourcejobid s ON s.id = w.source_job_id "
            "LEFT JOIN site_target t ON t.id = w.target_id ORDER BY 1, 2, 3, 4, 5, 6"
        )
        transaction.set_rollback(True)

    assert found == expected(texts)


def test_a_gap_that_is_filled_in_two_charges_leaves_no_window_that_spans_it(
    logs, ingest, reconcile, queries, monkeypatch
):
    monkeypatch.setattr("ioportal.ingest.management.commands.ingest.drain", lambda _stage: None)
    windows = (
        'SELECT (w.end - w.start)::text, w.sync FROM telemetry_iowindow w ORDER BY w.start, w."end"'
    )

    def read(clock, amount):
        text = job_stats("lake-MDT0000", {"77": {"sync": amount}}, snapshot=at(clock))
        ingest("job_stats", logs(clock, text), at=at(clock).isoformat())

    read("12:00", 1)
    read("12:30", 9)
    attribution_stage.attribute_pending()
    assert queries(windows) == [("00:00:00", 1), ("00:30:00", 8)]

    read("12:10", 4)
    read("12:20", 6)
    attribution_stage.attribute_pending(limit=1)
    attribution_stage.attribute_pending(limit=1)
    assert queries(windows) == [
        ("00:00:00", 1),
        ("00:10:00", 3),
        ("00:10:00", 2),
        ("00:10:00", 3),
    ]
    reconcile()
