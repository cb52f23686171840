"""Figures of scaling tests, access methods and output performance."""

import numpy as np

from ioportal.core.charts.axes import FONT_SIZE
from ioportal.core.charts.palette import LOOKS
from ioportal.experiments.analysis.access_methods import StepTimes
from ioportal.experiments.analysis.scaling import scaling
from ioportal.experiments.analysis.stragglers import Persistence, Skill
from ioportal.experiments.charts import bars, lines
from ioportal.experiments.charts.bars import box_plot, heat_map
from ioportal.load.analysis.load_ramp import Interval

SCALES = np.repeat([1.0, 10.0, 100.0], 4)


def test_means_lie_inside_their_band_and_outliers_are_crosses():
    values = 5 + 0.5 * SCALES**0.7 * np.tile([0.98, 1.0, 1.02, 1.01], 3)
    values[6] *= 4
    analysed = scaling(SCALES, values)
    runs = [
        (scale, value, f"<b>{at}")
        for at, (scale, value) in enumerate(zip(SCALES, values, strict=True))
    ]

    drawn = lines.by_scale(("Copy time", "s"), [("in", LOOKS[0], analysed, runs)])

    low, high, line, dots, means = drawn["data"]
    assert all(a <= b <= c for a, b, c in zip(low["y"], line["y"], high["y"], strict=True))
    assert dots["marker"]["symbol"].index("x") == 6
    assert dots["text"][0] == "&lt;b>0"
    assert means["y"][1] == values[4:8].mean()
    assert all(
        minus < mean for minus, mean in zip(means["error_y"]["arrayminus"], means["y"], strict=True)
    )
    assert drawn["layout"]["xaxis"]["type"] == drawn["layout"]["yaxis"]["type"] == "log"


def test_boxes_keep_the_order_of_their_categories():
    drawn = box_plot(
        ("Bandwidth", "bytes/s"),
        [
            ("a, write", "write", [1, 2, 3, 4, 5]),
            ("a, read", "read", [2, 3, 4, 5, 6]),
            ("b, write", "write", [1, 2, 3, 4, 5]),
        ],
    )

    assert drawn["layout"]["yaxis"]["categoryarray"] == ["a, write", "a, read", "b, write"]
    assert [trace["name"] for trace in drawn["data"]] == ["write", "read"]
    assert drawn["data"][0]["median"] == [3, 3]


def test_boxes_have_room_for_all_lines_of_their_names():
    name = "candidate, write, 64 nodes, MPIIO, shared file, random offsets, 4 MiB transfers"
    drawn = box_plot(
        ("Bandwidth", "bytes/s"), [(f"{name} {n}", "", [1, 2, 3, 4, 5]) for n in range(9)]
    )

    lines = drawn["layout"]["yaxis"]["categoryarray"][0].count("<br>") + 1
    margin = drawn["layout"]["margin"]
    assert lines == 5
    assert drawn["layout"]["height"] - margin["t"] - margin["b"] >= 9 * lines * FONT_SIZE * 1.3


def test_small_heat_maps_have_texts():
    def figure(rows):
        names = [f"row {at}" for at in range(rows)]
        values = [[0.5, None]] * rows
        texts = [["50 %", ""]] * rows
        quantity = ("Efficiency", "~%")
        return heat_map(
            ("Protocol", "Locality"), names, ["a", "b"], values, texts=texts, quantity=quantity
        )

    assert figure(3)["data"][0]["text"][0] == ["50 %", ""]
    assert "text" not in figure(40)["data"][0]


def test_steps_are_stacked_before_the_rest():
    drawn = bars.steps(
        [StepTimes("stage-in", 2, {"write": 40.0}, 800.0), StepTimes("direct", 2, {}, 820.0)],
        ["write"],
    )

    assert [trace["x"] for trace in drawn["data"]] == [[40.0, None], [800.0, 820.0]]


def test_persistence_has_a_line_for_each_state_with_episodes():
    known = Persistence(3, 1, (0.0, 60.0), (1.0, 0.5), {})

    drawn = lines.survival([("slow", known), ("fast", Persistence(0, 0, (), (), {}))])

    assert [(trace["name"], trace["x"]) for trace in drawn["data"]] == [("slow", [0.0, 1.0])]
    assert [line["x0"] for line in drawn["layout"]["shapes"]] == [2, 10]


def test_skill_has_its_interval():
    skill = Skill(300.0, 10, 0.05, 0.2, Interval(0.15, 0.1, 0.25))

    [trace] = lines.skill([("avoid slow targets", [skill])])["data"]

    assert (trace["x"], trace["y"]) == ([5.0], [0.15])
    assert np.allclose([trace["error_y"]["array"], trace["error_y"]["arrayminus"]], [[0.1], [0.05]])
