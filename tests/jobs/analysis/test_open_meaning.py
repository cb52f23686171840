import pytest

from ioportal.jobs.analysis.open_meaning import OpenMeaning, counts_opens, open_meaning


@pytest.mark.parametrize(
    ("version", "meaning"),
    [
        ("2.12.9", OpenMeaning.ALL),
        ("2.13.0", OpenMeaning.ALL),
        ("2.14.0", OpenMeaning.FOUND),
        ("2.15.5", OpenMeaning.FOUND),
        ("2.16.0_rc1", OpenMeaning.SUCCESSES),
        ("unknown", None),
    ],
)
def test_the_meaning_of_opens_depends_on_the_version(version, meaning):
    assert open_meaning(version) is meaning


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("opens", True),
        ("metadata_operations_per_node", True),
        ("startup_operations", True),
        ("closes", False),
        ("read_bytes", False),
        ("duration_s", False),
    ],
)
def test_figures_that_include_opens(name, expected):
    assert counts_opens(name) is expected
