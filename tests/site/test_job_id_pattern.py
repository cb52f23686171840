"""Any user can choose a job id, so its pattern must never cost much time."""

import re
import time
from pathlib import Path

import pytest
from django.core.management import call_command

from ioportal.site.job_id_pattern import JOB_ID_PARTS, read_job_id
from ioportal.site.models import Filesystem, SourceJobId

DOCUMENTED = (Path(__file__).parents[2] / "docs/operations.md").read_text()
PATTERNS = {
    Filesystem().job_id_pattern,
    *re.findall(r"^job_id_pattern = '(.+?)'", DOCUMENTED, re.MULTILINE),
    *re.findall(r"^\| .+ \| `(.*\(\?P<.+)`", DOCUMENTED, re.MULTILINE),
}
JOB_IDS = (
    *("", "77", "77.batch", "77[3].sdb", "77[].sdb", "77.sdb:1000", "77:1000", "77:1000:n1"),
    *("77.", "77:", "77\n", "a\n77", "bash.1000", "ü77", "77.ü:7", "1234567", "4" * 30),
    *("77:99999999999:n1", "77:1000:n1:", "77[3]", "77[3][4]", " 77", "77 ", "\x0077"),
)


@pytest.mark.parametrize("pattern", sorted(PATTERNS))
def test_documented_patterns_match_as_in_python(pattern):
    assert len(PATTERNS) == 6
    for text in JOB_IDS:
        match = re.fullmatch(pattern, text)
        groups = match.groupdict(default="") if match else {}
        expected = {name: groups.get(name, "") for name in ("batch_id", "array_index", "launch")}

        parts = read_job_id(pattern, text)

        assert {name: parts[name] for name in expected} == expected, text


def test_nested_quantifiers_take_no_time():
    began = time.perf_counter()

    parts = read_job_id(r"(?P<batch_id>(\d+)+)\.sdb", "1" * 5_000 + "!")

    assert not any(parts.values())
    assert time.perf_counter() - began < 1


@pytest.mark.django_db
def test_a_stored_pattern_of_the_past_is_reported_and_breaks_nothing(site, register, capfd):
    lake = Filesystem.objects.get(name="lake")
    Filesystem.objects.filter(name="lake").update(job_id_pattern=r"(?P<batch_id>\d+)(?!x)")
    job_id = SourceJobId.objects.create(filesystem=lake, text="77", batch_id="77")

    call_command("check", databases=["default"])
    reported = capfd.readouterr().err

    assert "filesystem lake: job_id_pattern: '(?P<batch_id>" in reported
    assert "Register the filesystem with a valid pattern" in reported
    assert not any(read_job_id(r"(?P<batch_id>\d+)(?!x)", "77").values())
    register('[[filesystem]]\nname = "lake"\njob_id_pattern = "(?P<batch_id>[0-9]+)"')
    job_id.refresh_from_db()
    assert [getattr(job_id, part) for part in JOB_ID_PARTS] == ["77", "", "", "", None]
    call_command("check", databases=["default"])
    assert "job_id_pattern" not in capfd.readouterr().err
