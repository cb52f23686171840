"""Names of targets: parts and ranges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.lustre.targets import RANGES_SHOWN, TargetName, folded


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("lake-OST03ef", ("lake", "OST", 1_007)),
        ("lake-MDT0000", ("lake", "MDT", 0)),
        ("my-lake-OST000A", ("my-lake", "OST", 10)),
        ("lake-OST1", None),
        ("lake-OST00001", None),
        ("-OST0001", None),
        ("lake-ost0001", None),
        ("lake/OST-OST0001", None),
        ("l" * 56 + "-OST0001", ("l" * 56, "OST", 1)),
        ("l" * 57 + "-OST0001", None),
        ("lake-OST0001\n", None),
        ("", None),
    ],
)
def test_a_name_has_filesystem_kind_and_index(text, parts):
    name = TargetName.parse(text)

    assert (name and (name.filesystem, name.kind, name.index)) == parts


def osts(*numbers):
    return [f"lake-OST{number:04x}" for number in numbers]


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (osts(1), "lake-OST0001"),
        (osts(*range(1_008)), "lake-OST[0000-03ef]"),
        (osts(9, 10, 12), "lake-OST[0009-000a], lake-OST000c"),
        (
            ["sea-OST0001", *osts(0), "lake-MDT0000", "x"],
            "lake-MDT0000, lake-OST0000, sea-OST0001, 'x'",
        ),
        (osts(*range(0, 2_016, 2)), ", ".join(osts(*range(0, 40, 2))) + " and 988 more"),
    ],
)
def test_names_are_folded_into_ranges(names, text):
    assert folded(names) == text


@given(names=st.sets(st.from_regex(r"(a|b)-(MDT|OST)00[0-3][0-9a-f]", fullmatch=True) | st.text()))
def test_the_length_of_a_list_is_bounded(names):
    assert folded(names).count(", ") <= len("".join(names)) + RANGES_SHOWN
    assert len(folded(names)) < (RANGES_SHOWN + 1) * 660
