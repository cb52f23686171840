from itertools import combinations

import pytest

from ioportal.core.charts.palette import (
    ALL_OTHERS,
    HUES,
    REST,
    SERIES,
    colours,
    principals,
    stylesheet,
)

# Linear RGB with colour blindness (Viénot 1999, Brettel 1997, rounded).
COLOUR_BLINDNESS = {
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


def contrast(colour, background):
    light, dark = sorted((luminance(colour), luminance(background)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_contrast_with_the_background(theme):
    for token, themes in SERIES.items():
        assert contrast(themes[theme], BACKGROUNDS[theme]) > 2.4, token


@pytest.mark.parametrize("kind", COLOUR_BLINDNESS)
@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_the_first_four_colours_differ_with_any_colour_blindness(theme, kind):
    def perceived(token):
        rgb = linear(SERIES[token][theme])
        return [
            max(0.0, sum(w * c for w, c in zip(row, rgb, strict=True))) ** (1 / 2.2)
            for row in COLOUR_BLINDNESS[kind]
        ]

    for pair in combinations(HUES[:4], 2):
        channels = zip(*map(perceived, pair), strict=True)
        distance = sum((a - b) ** 2 for a, b in channels) ** 0.5
        assert distance > 0.1, pair


def test_a_kind_has_the_same_colour_on_every_chart():
    assert colours(["close", "open"])["open"] == colours(["open", "mkdir"])["open"]


def test_kinds_have_different_colours():
    tokens = colours(["open", "mkdir", "rmdir", "rename"])

    assert len(set(tokens.values())) == 4


def test_further_kinds_share_the_colour_of_the_rest():
    tokens = colours([str(number) for number in range(14)])

    assert list(tokens.values()).count(REST) == 2


def test_the_stylesheet_has_both_themes():
    assert "--series-1: light-dark(#0068a8, #58aee8);" in stylesheet()


def test_every_principal_has_a_separate_token():
    assert principals(["alice", "process a/b"]) == {
        "alice": "--principal:alice",
        "process a/b": "--principal:process a/b",
    }


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_all_colours_differ(theme):
    for pair in combinations((themes[theme] for themes in SERIES.values()), 2):
        channels = zip(*map(linear, pair), strict=True)
        distance = sum((a ** (1 / 2.2) - b ** (1 / 2.2)) ** 2 for a, b in channels) ** 0.5
        assert distance > 0.1, pair


def test_all_others_have_the_colour_of_the_rest():
    assert principals([ALL_OTHERS]) == {ALL_OTHERS: REST}
