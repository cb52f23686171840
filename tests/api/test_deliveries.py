"""Deliveries: each batch is stored once and completely, and invalid batches are refused."""

import io
import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction

from collectors import tables
from collectors.panda import jobs as panda_jobs
from collectors.source import Source as Text
from ioportal.ingest.models import Batch, DirtyTrace, Segment
from ioportal.site.models import Server, Source
from tests import contents
from tests.batches import ARROW, NDJSON, STREAM, arrow, batch, delta, ndjson, traced, window
from tests.logs import Run, at, panda, panda_job, sacct

pytestmark = pytest.mark.usefixtures("sources")

BATCH = traced(
    1, "12:00", "12:00:10", window("12:00:03", count=5), window("12:00:09", "2@gni", job="77")
)


def test_a_batch_is_attributed_and_reconciles(deliver, logs, ingest, attribution, reconcile):
    ingest("sacct", logs("s", sacct(Run("77", nodes="n[1-2]", node_count=2))), cluster="anvil")

    assert deliver(BATCH) == (202, {"already": False})
    assert attribution() == {("job", "77"): 6}
    assert reconcile() == "2 segments reconcile."


def test_every_format_of_rows_gives_the_same_tables(deliver, token):
    token("mds1-trace")
    stored = []
    for kind in (ARROW, NDJSON):
        with transaction.atomic():
            deliver(BATCH, kind=kind)
            stored.append(
                contents.rows("telemetry_rpcwindow", "telemetry_coverage", "ingest_segment")
            )
            transaction.set_rollback(True)

    assert stored[0] == stored[1]
    assert len(stored[0]["telemetry_rpcwindow"]) == 2


def test_a_repeated_batch_changes_nothing(deliver):
    manifest, rows = BATCH
    deliver(BATCH)
    before = contents.everything()
    later = {"sent_at": at("13:00").isoformat(), "spool": {"batches": 9}, "agent": {"host": "m"}}

    assert deliver((manifest | later, rows)) == (202, {"already": True})
    assert contents.everything() == before


def test_a_different_batch_with_the_same_key_is_a_conflict(deliver):
    deliver(BATCH)
    before = contents.everything()

    status, answer = deliver(traced(1, "12:00", "12:00:10", window("12:00:03", count=6)))

    assert (status, answer["code"]) == (409, "conflict")
    assert contents.everything() == before


def test_the_state_of_the_agent_is_stored(deliver):
    manifest, rows = BATCH
    now = datetime.now(UTC)
    deliver(
        (
            manifest
            | {
                "sent_at": (now - timedelta(hours=1)).isoformat(),
                "spool": {"batches": 7, "bytes": 900, "oldest_at": at("11:00").isoformat()},
                "agent": {"version": "1.2", "host": "mds1.example.org"},
            },
            rows,
        )
    )

    source = Source.objects.get(name="mds1-trace")
    assert (source.spool_batches, source.spool_bytes) == (7, 900)
    assert (source.spool_oldest_at, source.agent_version) == (at("11:00"), "1.2")
    assert source.clock_offset_s == pytest.approx(-3600, abs=60)
    assert source.last_batch_at >= now


def test_a_batch_without_rows_extends_coverage(deliver, queries, reconcile):
    assert deliver(traced(1, "12:00", "12:00:10"))[0] == 202
    assert deliver(traced(2, "12:00:10", "12:00:20"), kind=NDJSON)[0] == 202

    assert queries('SELECT start, "end" FROM telemetry_coverage') == [(at("12:00"), at("12:00:20"))]
    assert reconcile()


def test_rejects_are_stored_and_counted(deliver, queries, reconcile):
    counts = {
        "account": {"lines": 9, "accepted": 1, "rejected": 3, "irrelevant": 5},
        "rejects": [{"line": 4, "text": "torn\x00", "reason": "too short"}],
        "rejected_by_reason": {"too short": 2},
    }

    assert deliver(traced(1, "12:00", "12:00:10", window("12:00:03"), **counts))[0] == 202
    assert queries("SELECT line, text, reason FROM ingest_reject") == [
        (4, "torn\ufffd", "too short")
    ]
    assert Segment.objects.get().rejected_by_reason == {"too short": 2, "other reasons": 1}
    assert reconcile()


FRAME = tables.RPC_WINDOWS.frame([window("12:00:03"), window("12:00:04")])
NANOSECONDS = FRAME.cast({"start": pl.Datetime("ns", "UTC")})
DICTIONARY = FRAME.cast({"nid": pl.Categorical})
FAR = datetime.now(UTC) + timedelta(days=3)


@pytest.mark.parametrize(
    ("frame", "code", "column", "row"),
    [
        pytest.param(FRAME.drop("nid"), "columns", None, None, id="a column is missing"),
        pytest.param(FRAME.with_columns(x=1), "columns", None, None, id="a column too many"),
        pytest.param(FRAME.cast({"count": pl.Int32}), "type", "count", None, id="another type"),
        pytest.param(NANOSECONDS, "type", "start", None, id="another unit of time"),
        pytest.param(DICTIONARY, "unreadable", None, None, id="a dictionary"),
        pytest.param(FRAME.with_columns(nid=["a"]), "unreadable", None, None, id="a list"),
        pytest.param(
            FRAME.with_columns(nid=pl.Series(["1@gni", None])), "values", "nid", 2, id="no NID"
        ),
        pytest.param(
            FRAME.with_columns(count=pl.Series([1, -1])), "values", "count", 2, id="negative"
        ),
        pytest.param(
            FRAME.with_columns(count=pl.lit(2**62)), "values", "count", 1, id="too large a count"
        ),
        pytest.param(
            FRAME.with_columns(timed=pl.col("count") + 1), "values", "timed", 1, id="too many timed"
        ),
        pytest.param(
            FRAME.with_columns(start=FAR, first=FAR, last=FAR), "values", "start", 1, id="future"
        ),
        pytest.param(
            FRAME.with_columns(start=pl.lit(0).cast(tables.UTC_US)), "values", "start", 1, id="1970"
        ),
        pytest.param(
            FRAME.with_columns(start=pl.col("first")), "values", "start", 1, id="no window start"
        ),
        pytest.param(
            FRAME.with_columns(last=at("12:00:10")), "values", "last", 1, id="beyond its window"
        ),
        pytest.param(
            tables.RPC_WINDOWS.frame([window("12:00"), window("900:00")]),
            "values", "start", None, id="more than a month",
        ),
        pytest.param(
            FRAME.with_columns(nid=pl.lit("x" * (1 << 21))), "values", "nid", 1, id="too long"
        ),
    ],
)  # fmt: skip
def test_invalid_rows_are_refused_with_column_and_row(deliver, frame, code, column, row):
    status, answer = deliver(traced(1, "12:00", "12:00:10"), content=arrow("", frame))

    assert status == 422
    assert (answer["code"], answer.get("column"), answer.get("row")) == (code, column, row)
    assert not Segment.objects.exists()


def test_counters_whose_sums_would_stop_the_stages_are_refused(deliver):
    row = delta("12:00", "12:01", job="77", open=2**53, close=2**62)
    poll = batch(1, "job_deltas", [row], [("lake-MDT0000", "12:00", "12:01")])

    status, answer = deliver(poll, source="mds1-jobs")

    assert (status, answer["column"], answer["row"]) == (422, "open", 1)


def test_an_earlier_agent_delivers_without_new_columns(deliver, queries):
    row = delta("12:00", "12:01", job="77", open=5, open_us=50)
    frame = tables.JOB_DELTAS.frame([row]).drop(tables.TIMES)
    poll = batch(1, "job_deltas", [row], [("lake-MDT0000", "12:00", "12:01")])

    status, answer = deliver(poll, source="mds1-jobs", content=arrow("", frame))

    assert status == 202, answer
    assert queries("SELECT open, open_us FROM telemetry_jobdelta") == [(5, None)]


@pytest.mark.parametrize("is_earlier_first", [True, False])
def test_an_earlier_agent_does_not_remove_times_of_pilots(
    deliver, logs, ingest, queries, is_earlier_first
):
    text = panda(panda_job(1, pilottiming="2|14|2900|1|40", maxpss=1_000, transfertype="fax"))
    [part] = panda_jobs.parse(Text(io.BytesIO(text.encode()), "panda"))
    frame = part.table.select(list(part.table.columns)[:-8])
    sent = batch(1, "workload_jobs", frame.to_dicts())
    loads = [
        lambda: deliver(sent, source="anvil-panda", content=arrow("", frame)),
        lambda: ingest("panda", logs("w", text), cluster="anvil"),
    ]
    stored = "SELECT setup_s, stage_in_s, max_pss_bytes, transfer_type FROM jobs_workloadjob"

    for load in loads if is_earlier_first else reversed(loads):
        load()
        if is_earlier_first and load is loads[0]:
            assert queries(stored) == [(40, None, None, "")]

    assert queries(stored) == [(40, 14, 1_024_000, "fax")]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        pytest.param(b"\x00\xff", "unreadable", id="noise"),
        pytest.param(b"[" * 100_000, "unreadable", id="nested too deeply"),
        pytest.param(b"[1]", "unreadable", id="no object"),
        pytest.param(b'{"start": 1}', "columns", id="columns are missing"),
        pytest.param({"count": "5"}, "type", id="a text for a number"),
        pytest.param({"count": True}, "type", id="true for a number"),
        pytest.param({"count": 2**70}, "type", id="too large a number"),
        pytest.param({"opcode": 40_000}, "type", id="too large for a small number"),
        pytest.param({"start": "2017-07-05T12:00:00"}, "type", id="a time without a zone"),
        pytest.param({"start": "0001-01-01T00:00:00+14:00"}, "type", id="before the calendar"),
        pytest.param({"nid": None}, "values", id="null"),
    ],
)
def test_invalid_json_lines_are_refused(deliver, line, code):
    if isinstance(line, dict):
        line = ndjson("", [window("12:00:03") | line])

    status, answer = deliver(traced(1, "12:00", "12:00:10"), content=line, kind=NDJSON)

    assert (status, answer["code"]) == (422, code)
    assert not Segment.objects.exists()


def test_text_may_contain_any_characters(deliver, queries, reconcile):
    text = "a\x00b\ud800" + "ü" * 300

    answers = [
        deliver(traced(1, "12:00", "12:00:10", window("12:00:03", job="a\x00b")))[0],
        deliver(traced(2, "12:00:10", "12:00:20", window("12:00:13", job=text)), kind=NDJSON)[0],
    ]

    assert answers == [202, 202]
    assert {len(text) for (text,) in queries("SELECT text FROM site_sourcejobid")} == {3, 255}
    assert reconcile()


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        pytest.param({"stream": "x"}, "stream", id="no UUID"),
        pytest.param({"sequence": 0}, "sequence", id="sequences begin with 1"),
        pytest.param({"account": None}, "account", id="no account"),
        pytest.param(
            {"account": {"lines": 9, "accepted": 1, "rejected": 1, "irrelevant": 1}}, "account",
            id="an account that does not add up",
        ),
        pytest.param({"rejected_by_reason": {"torn": 1}}, "", id="too many rejects"),
        pytest.param(
            {"coverage": [{"start": "2017-07-05T12:00:00", "end": "2017-07-05T12:00:00Z"}]},
            "coverage.0.start", id="a time without a zone",
        ),
        pytest.param(
            {"coverage": [{"start": "2017-07-05T12:00:00Z", "end": "2017-07-05T11:00:00Z"}]},
            "coverage.0", id="coverage that ends before it begins",
        ),
    ],
)  # fmt: skip
def test_inconsistent_manifests_are_refused(deliver, changes, column):
    manifest, rows = BATCH

    status, answer = deliver((manifest | changes, rows))

    assert (status, answer["code"], answer["column"]) == (422, "batch", column)


@pytest.mark.parametrize("start", ["2099-01-01T00:00:00Z", "1970-01-01T00:00:00Z"])
def test_coverage_in_the_future_or_distant_past_is_refused(deliver, start):
    manifest, rows = BATCH
    coverage = [{"start": start, "end": "2099-01-01T00:00:00Z"}]

    status, answer = deliver((manifest | {"coverage": coverage}, rows))

    assert (status, answer["column"]) == (422, "coverage")


def test_the_idempotency_key_must_match_the_batch(deliver):
    assert deliver(BATCH, Idempotency_Key=f"{STREAM}/2")[1]["code"] == "idempotency_key"


def test_the_table_must_match_the_source(deliver):
    assert deliver(batch(1, "jobs", []))[1]["code"] == "table"


def test_rows_of_an_unknown_content_type_are_refused(deliver):
    status, answer = deliver(BATCH, kind="text/csv", content=b"start,nid\n")

    assert (status, answer["code"]) == (415, "content_type")


@pytest.mark.parametrize("parts", [{}, {"batch": "{}"}, {"batch": "{}", "rows": "text"}])
def test_both_parts_are_required(client, token, parts):
    answer = client.post(
        "/api/v1/ingest/batches",
        parts,
        headers={"Authorization": f"Token {token('mds1-trace')}"},
    )

    assert (answer.status_code, answer.json()["code"]) == (422, "parts")


def test_a_body_that_is_too_large_is_refused(client, token):
    answer = client.generic(
        "POST",
        "/api/v1/ingest/batches",
        b"--x",
        "multipart/form-data; boundary=x",
        headers={"Authorization": f"Token {token('mds1-trace')}", "Content-Length": str(1 << 40)},
    )

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def _with_false_size(size):
    """Return an Arrow stream with a buffer that declares a false decompressed size."""
    stream = bytearray(arrow("rpc_windows", [window("12:00:03")] * 5_000))
    at_buffer = stream.index((5_000 * 8).to_bytes(8, "little") + b"\x28\xb5\x2f\xfd")  # zstd
    stream[at_buffer : at_buffer + 8] = size.to_bytes(8, "little")
    return bytes(stream)


def _equal_rows(rows):
    """Return many equal rows, compressed into few bytes."""
    return arrow("", FRAME.head(1).select(pl.all().repeat_by(rows).explode()))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(lambda: _with_false_size(1 << 40), id="a declared size of terabytes"),
        pytest.param(lambda: _equal_rows(600_000), id="too many rows"),
        pytest.param(
            lambda: arrow("", FRAME.head(1).with_columns(job=pl.lit("x" * (300 << 20)))),
            id="a text of 300 MiB in a few bytes",
        ),
    ],
)
def test_decompression_bombs_are_refused(deliver, content):
    bomb = content()

    status, answer = deliver(traced(1, "12:00", "12:00:10"), content=bomb)

    assert len(bomb) < 1 << 20
    assert (status, answer["code"]) == (413, "too_large")


def test_damaged_streams_are_refused(deliver):
    stream = arrow("rpc_windows", [window("12:00:03", f"{n}@gni") for n in range(50)])
    for position in range(0, len(stream), 61):
        garbled = bytearray(stream)
        garbled[position] ^= 0xFF

        status, _ = deliver(traced(position + 1, "12:00", "12:00:10"), content=bytes(garbled))

        assert status in {202, 413, 422}
    for size in range(0, len(stream), 97):
        status, _ = deliver(traced(10_000 + size, "12:00", "12:00:10"), content=stream[:size])

        assert status in {202, 422}


def test_deliveries_are_delayed_while_attribution_is_behind(deliver, settings):
    settings.PENDING_LIMIT = 2
    server = Server.objects.get(name="mds1")
    DirtyTrace.objects.bulk_create(
        DirtyTrace(server=server, start=at("12:00"), end=at("12:00")) for _ in range(3)
    )

    status, answer = deliver(BATCH)

    assert (status, answer["code"]) == (429, "behind")


def test_deliveries_are_delayed_while_the_database_disk_is_full(client, token, full_disk):
    header = {"Authorization": f"Token {token('mds1-trace')}"}

    answer = client.post("/api/v1/ingest/batches", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (429, "behind")
    assert answer["Retry-After"] == "30"
    assert "IOPORTAL_DATABASE_FREE" in answer.json()["detail"]


@pytest.mark.django_db(transaction=True)
def test_a_database_outage_is_answered_with_retry_after(client, token):
    header = {"Authorization": f"Token {token('mds1-trace')}"}
    port = connection.settings_dict["PORT"]
    connection.close()
    connection.settings_dict["PORT"] = "1"
    try:
        answer = client.post("/api/v1/ingest/batches", headers=header)
    finally:
        connection.settings_dict["PORT"] = port

    assert (answer.status_code, answer.json()["code"]) == (503, "database")
    assert int(answer["Retry-After"]) > 0


def test_the_openapi_schema_lists_the_status_codes(client):
    schema = client.get("/api/v1/openapi.json").json()

    answers = schema["paths"]["/api/v1/ingest/batches"]["post"]["responses"]
    assert set(answers) >= {"202", "401", "403", "409", "413", "415", "422", "429", "503"}
    assert json.dumps(schema)


def test_a_batch_may_be_sent_as_a_form_field(client, token):
    manifest, rows = BATCH
    answer = client.post(
        "/api/v1/ingest/batches",
        {
            "batch": json.dumps(manifest),
            "rows": SimpleUploadedFile("rows", ndjson("", rows), content_type=NDJSON),
        },
        headers={
            "Authorization": f"Token {token('mds1-trace')}",
            "Idempotency-Key": f"{STREAM}/1",
        },
    )

    assert answer.status_code == 202
    assert Batch.objects.get().sequence == 1
