from itertools import combinations

import pytest

from ioportal.charts.palette import (
    ALL_OTHERS,
    HUES,
    REST,
    SERIES,
    colours,
    principals,
    stylesheet,
)

# Linear RGB as protanopes, deuteranopes and tritanopes see it (Viénot 1999, Brettel 1997, rounded).
SIGHTS = {
    "protan": ((0.11, 0.89, 0.0), (0.11, 0.89, 0.0), (0.004, -0.004, 1.0)),
    "deutan": ((0.29, 0.71, 0.0), (0.29, 0.71, 0.0), (-0.02, 0.02, 1.0)),
    "tritan": ((1.0, 0.15, -0.15), (0.0, 0.87, 0.13), (0.0, 0.87, 0.13)),
}
BACKGROUNDS = ("#ffffff", "#161e28")


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def luminance(colour):
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_every_colour_stands_out_from_its_background(theme):
    for token, both in SERIES.items():
        assert contrast(both[theme], BACKGROUNDS[theme]) > 2.4, token


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_first_four_colours_differ_to_any_eye(theme, sight):
    def seen(token):
        rgb = linear(SERIES[token][theme])
        return [
            max(0.0, sum(w * c for w, c in zip(row, rgb, strict=True))) ** (1 / 2.2)
            for row in SIGHTS[sight]
        ]

    for one, other in combinations(HUES[:4], 2):
        apart = sum((a - b) ** 2 for a, b in zip(seen(one), seen(other), strict=True)) ** 0.5
        assert apart > 0.1, (one, other)


def test_a_kind_has_the_same_colour_on_every_chart():
    assert colours(["close", "open"])["open"] == colours(["open", "mkdir"])["open"]


def test_no_two_kinds_share_a_colour_while_there_are_enough():
    given = colours(["open", "mkdir", "rmdir", "rename"])

    assert len(set(given.values())) == 4


def test_more_kinds_than_colours_share_the_rests():
    given = colours([str(number) for number in range(14)])

    assert list(given.values()).count(REST) == 2


def test_the_stylesheet_has_both_themes():
    assert "--series-1: light-dark(#0068a8, #58aee8);" in stylesheet()


def test_every_principal_has_a_token_of_its_own():
    assert principals(["alice", "process a/b"]) == {
        "alice": "--principal:alice",
        "process a/b": "--principal:process a/b",
    }


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_no_two_colours_look_alike(theme):
    for one, other in combinations(SERIES.values(), 2):
        apart = sum(
            (a ** (1 / 2.2) - b ** (1 / 2.2)) ** 2
            for a, b in zip(linear(one[theme]), linear(other[theme]), strict=True)
        )
        assert apart**0.5 > 0.1, (one[theme], other[theme])


def test_all_others_together_are_nobody():
    assert principals([ALL_OTHERS]) == {ALL_OTHERS: REST}
