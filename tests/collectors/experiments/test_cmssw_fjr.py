import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors import source as source_module
from collectors import tables
from collectors.experiments import cmssw_fjr
from collectors.parsed import Account

MIB = 2**20


@pytest.fixture(scope="session")
def parse(source, whole):
    def run(text):
        return whole(cmssw_fjr.parse(source(text)))

    return run


@pytest.fixture(scope="session")
def report(parse, fixture_text):
    """Return the row of a fixture, with names as keys."""

    def read(name):
        parsed = parse(fixture_text("cmssw_fjr", name))
        assert parsed.table.schema == tables.RUNS.columns
        [row] = parsed.table.to_dicts()
        return named(row), parsed

    return read


def named(row):
    """Return a row with labels, metrics and counters by name."""
    return {
        **row,
        "labels": {each["name"]: each["value"] for each in row["labels"]},
        "metrics": {each["name"]: each["value"] for each in row["metrics"]},
        "counters": {
            f"{each['subsystem']}/{each['counter']}": tuple(each.values())[2:]
            for each in row["counters"]
        },
    }


def test_a_report_with_counter_elements(report):
    row, parsed = report("counter_values.xml")

    assert (row["events"], row["state"]) == (10_000, "finished")
    assert row["labels"] == {
        "enabled": "true",
        "cache-hint": "application-only",
        "protocol": "rfio",
    }
    assert row["counters"]["rfio/read"] == pytest.approx(
        (63_143, 63_143, 540.754 * MIB, 79.7109, 0.00384e-3, 0.221464)
    )
    assert row["counters"]["tfile/read"] == (None, None, 540.1 * MIB, None, None, None)
    assert row["metrics"]["read_operations"] == 63_143  # of one layer only
    assert row["metrics"]["read_bytes"] == pytest.approx(540.754 * MIB)
    assert parsed.account == Account(lines=1, accepted=1)


def test_a_report_with_metrics(report):
    row, parsed = report("metrics.xml")

    assert row["events"] == 1_234  # without events of the mixed pile-up
    assert row["labels"]["cache-hint"] == "lazy-download"
    assert row["counters"]["root/readv"] == pytest.approx(
        (25, 25, 304.25 * MIB, 22.0902, 0.0241101, 3.32576)
    )
    assert row["counters"]["tstoragefile/read-via-cache"] == (0, 0, None, 0, None, None)
    assert row["counters"]["tstoragefile/seek"][0] == 1_026_920
    assert row["counters"]["local-cache/read"][:2] == (3, 3)
    assert row["metrics"] == pytest.approx(
        {
            "peak_rss_bytes": 512.5 * MIB,
            "job_s": 104.939,
            "job_cpu_s": 52.5991,
            "read_operations": 43,
            "read_bytes": 311.75 * MIB,
            "read_s": 23.082326,
        }
    )
    assert parsed.rejects.select("line", "reason").rows() == [
        (60, "tstoragefile/write: num-operations -1 is negative")
    ]
    assert parsed.account == Account(lines=2, accepted=1, rejected=1)


def test_a_report_with_plain_text(report):
    row, _ = report("text.xml")

    assert row["events"] == 100
    assert row["counters"] == {
        "dcap/open": pytest.approx((2, 1, 0, 0.1305, 0.1305, 0.1305)),
        "dcap/read": pytest.approx((49, 49, 12.5 * MIB, 0.275468, 2.816e-6, 0.0415)),
        "tstoragefile/read-via-cache": (10, 0, 0, 0, 0, 0),
    }


def test_the_steps_of_an_archived_job(parse, fixture_text):
    parsed = parse(fixture_text("cmssw_fjr", "wmarchive.json"))
    finished, failed = (named(row) for row in parsed.table.to_dicts())

    assert (finished["run"], finished["state"], finished["events"]) == (
        "77-0 cmsRun1",
        "finished",
        100,
    )
    assert finished["started_at"] == datetime(2016, 3, 18, 5, 0, 12, tzinfo=UTC)
    assert finished["metrics"] == {
        "read_operations": 97_292,
        "read_bytes": 5_632.5 * MIB,
        "write_bytes": 192 * MIB,
        "job_s": 1_561.21,
        "job_cpu_s": 1_263.55,
        "wall_s": 1_661.5,
        "user_s": 1_200.25,
        "sys_s": 63.5,
        "peak_rss_bytes": 1_484 * MIB,
    }
    assert (failed["run"], failed["state"], failed["metrics"]) == ("77-0 cmsRun2", "failed", {})
    assert parsed.account == Account(lines=3, accepted=2, irrelevant=1)


@pytest.mark.parametrize("name", ["counter_values.xml", "metrics.xml", "text.xml"])
def test_a_report_cut_anywhere_keeps_its_complete_elements(parse, report, fixture_text, name):
    text = fixture_text("cmssw_fjr", name)
    complete, _ = report(name)

    for size in range(1, text.rindex(b"</Framework"), 97):
        parsed = parse(text[:size])
        for row in map(named, parsed.table.to_dicts()):
            assert row["state"] == "failed"
            assert row["labels"]["report"] == "cut"
            assert row["counters"].items() <= complete["counters"].items()
        assert parsed.account.accepted == ("<FrameworkJobReport>" in text[:size].decode())


def test_an_error_of_the_framework_is_a_failure(parse):
    parsed = parse(
        b'<FrameworkJobReport><FrameworkError ExitStatus="8001" Type="CMSException"/>'
        b"</FrameworkJobReport>"
    )

    assert parsed.table["state"].to_list() == ["failed"]


def test_text_after_the_report_is_rejected(parse, fixture_text):
    parsed = parse(fixture_text("cmssw_fjr", "text.xml") + b"<more/>")

    assert parsed.account == Account(lines=2, accepted=1, rejected=1)
    assert parsed.rejects["reason"].to_list() == [
        "not well-formed XML: junk after document element"
    ]


DTD = b'<!DOCTYPE a [<!ENTITY x "xxxxxxxxxx"><!ENTITY y "&x;&x;&x;&x;">]>'
COUNTER = "<counter-value subsystem='rfio' counter-name='read' num-operations='{}'/>"
VALUES = "<counter-value subsystem='a' counter-name='b' num-operations='1' {}/>"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (DTD + b"<FrameworkJobReport>&y;</FrameworkJobReport>", "document type or entities"),
        (b"<html></html>", "root element 'html' is not FrameworkJobReport"),
        (b"<FrameworkJobReport>" + b"<a>" * 100, "more than 32 elements inside each other"),
        (b"<FrameworkJobReport><a b='" + b"x" * 5_000_000, "more than 4,194,304 bytes"),
        (
            b"<FrameworkJobReport><StorageStatistics>" + b"x\n" * 2_500_000,
            "a text has more than 4,194,304 characters",
        ),
        (b"<FrameworkJobReport></b></FrameworkJobReport>", "not well-formed XML: mismatched tag"),
        (b"not XML", "not well-formed XML"),
        (b"[1, 2]", "not a JSON object"),
        (b"{}", "not a document of WMArchive"),
        (b'{"fwjr": {"steps": {"cmsRun1": 7}}}', "step 'cmsRun1' is not an object"),
        (b'{"fwjr": {"steps": ' + b"[" * 100_000, "not a JSON object"),
        (
            b'{"fwjr": {"steps": {"cmsRun1": {"start": -5}}}}',
            "start -5 is negative",
        ),
        (
            b'{"fwjr": {"steps": {"cmsRun1": {"performance": {"storage": {"readNumOps": 1e99}}}}}}',
            "readNumOps 1e+99 is too large",
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_an_unusable_report_is_refused_with_a_reason(parse, text, reason):
    parsed = parse(text)

    assert parsed.table.is_empty()
    assert parsed.account.rejected >= 1
    assert any(reason in each for each in parsed.rejects["reason"])


@pytest.mark.parametrize(
    ("counters", "reason"),
    [
        ([COUNTER.format("9" * 400)], "is not a number"),
        ([COUNTER.format("1e17")], "rfio/read: num-operations 1e17 is too large"),
        ([COUNTER.format("1.5")], "rfio/read: num-operations 1.5 is not a whole number"),
        ([COUNTER.format(1), COUNTER.format(2)], "rfio/read repeats: an input describes one run"),
        (["<counter-value/>"], "subsystem '' is not a name"),
        (
            [VALUES.format("num-successful-operations='2'")],
            "a/b: 2 of 1 operations were successful",
        ),
        ([VALUES.format("min-msecs='3' max-msecs='2'")], "a/b: min-msecs exceeds max-msecs"),
    ],
)
def test_an_unreadable_counter_is_rejected_with_its_line(parse, counters, reason):
    text = "\n".join(["<FrameworkJobReport>", *counters, "</FrameworkJobReport>"])
    parsed = parse(text.encode())

    assert parsed.account == Account(lines=2, accepted=1, rejected=1)
    [(line, _, message)] = parsed.rejects.rows()
    assert line == 1 + len(counters)
    assert reason in message


@pytest.mark.parametrize(
    "name", ["counter_values.xml", "metrics.xml", "text.xml", "wmarchive.json"]
)
@given(damage=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=5))))
def test_any_damage_is_accounted_for(parse, fixture_text, name, damage):
    text = fixture_text("cmssw_fjr", name)
    for where, length, other in damage:
        at = 1 + int(where * len(text))
        text = text[:at] + other + text[at + length :]
    parsed = parse(text)

    account = parsed.account
    assert account.accepted == parsed.table.height
    assert account.rejected == parsed.rejects.height
    assert account.lines == account.accepted + account.rejected + account.irrelevant > 0


def test_documents_may_be_lists(parse, fixture_text):
    document = json.loads(fixture_text("cmssw_fjr", "wmarchive.json"))
    parsed = parse(json.dumps([document, document]).encode())

    assert parsed.account == Account(lines=6, accepted=4, irrelevant=2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CMSSWInputFallback.xml", (1_215, "root", 43)),
        ("CMSSWMergeReport2.xml", (0, "file", 24)),
        ("CMSSWMultipleInput.xml", (4, "dcap", 520_457)),
        ("CMSSWProcessingReport.xml", (2, "dcap", 55)),
        ("CMSSWSkippedAll.xml", (None, "dcap", None)),
        ("PerformanceReport.xml", (10, "dcap", 6_900)),
        ("wmarchive_ProcessingFailedFwjr.json", (None, None, None)),
        ("wmarchive_ProcessingSuccessFwjr.json", (86, None, 97_292)),
    ],
)
def test_the_samples_are_read(parse, sample, name, expected):
    parsed = parse(sample("cmssw_fjr", name).read_bytes())
    [row] = map(named, parsed.table.to_dicts())

    assert parsed.rejects.is_empty()
    assert (
        row["events"],
        row["labels"].get("protocol"),
        row["metrics"].get("read_operations"),
    ) == expected


@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 18])
def test_an_ampersand_that_begins_no_reference_is_read_as_it_is(
    source, whole, monkeypatch, block_bytes
):
    monkeypatch.setattr(source_module, "BLOCK_BYTES", block_bytes)
    text = (
        "<FrameworkJobReport><InputFile><PFN>root://x//a.root?a=1&b=2</PFN>"
        "<InputType>primaryFiles</InputType><EventsRead>100</EventsRead></InputFile>"
        "<param name='a&b' value='1&amp;2&#51;&x;'/></FrameworkJobReport>"
    )

    [row] = whole(cmssw_fjr.parse(source(text.encode()))).table.to_dicts()

    assert (row["state"], row["events"]) == ("finished", 100)
    assert row["labels"] == [{"name": "a&b", "value": "1&23&x;"}]
