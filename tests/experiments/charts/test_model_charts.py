import polars as pl
import pytest

from ioportal.experiments.analysis.latency_model import Load, predict
from ioportal.experiments.analysis.storage_timing import timing
from ioportal.experiments.charts import bars, lines

MODEL = 0.005, 10e6
ORIGINAL = predict(Load("original <b>", 1_000, 50e6, 9.0), *MODEL)
UNTIMED = predict(Load("untimed", 10, 100e6), *MODEL)


def test_the_terms_of_the_model_are_stacked_next_to_the_measured_time():
    latency, transfer, measured = bars.terms([ORIGINAL, UNTIMED])["data"]

    assert (latency["x"], transfer["x"]) == ([5.0, 0.05], [5.0, 10.0])
    assert (measured["x"], measured["y"]) == ([9.0], [0])
    assert latency["customdata"][0] == "original &lt;b>"  # markup is escaped


def test_the_wall_time_is_divided_into_its_uses():
    read = {"subsystem": "root", "counter": "read", "operations": 1, "bytes": 1.0, "total_s": 20.0}
    timed = timing("timed", [read], {"wall_s": 100, "user_s": 60, "sys_s": 5})
    untimed = timing("untimed", [read], {})
    cpu, reads, other = bars.wall_time([timed, untimed])["data"]

    assert [bars["x"] for bars in (cpu, reads, other)] == [
        [pytest.approx(65), None],
        [pytest.approx(20), None],
        [pytest.approx(15), None],
    ]
    assert bars.wall_time([])["data"] == []


def test_runs_are_drawn_over_the_time_since_their_start():
    long = pl.DataFrame({"elapsed_s": [0.0, 7_200.0], "rss_bytes": [1e9, None]})
    short = pl.DataFrame({"elapsed_s": [60.0], "rss_bytes": [2e9]})
    runs = [("long", 0, long), ("short", 1, short)]
    figure = lines.over_run("Memory", "bytes", runs, "rss_bytes")

    assert [line["x"] for line in figure["data"]] == [[0, 120], [1]]  # minutes
    assert [line["mode"] for line in figure["data"]] == ["lines", "markers"]
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time since start (min)"
