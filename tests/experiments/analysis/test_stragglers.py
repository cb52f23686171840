"""Bursts, stragglers and placement, with known truth."""

import numpy as np
import polars as pl
import pytest

from ioportal.experiments.analysis import bursts, output, stragglers

TARGETS = 60
SIZE = 32 * 1024**2


def series(seed, *, persistent=0.0, hold_s=0.0, runs=250, gap_s=10.0):
    """Simulate bursts of one client per target, in turn; slow targets take 4 times as long.

    A share of the targets is always slow; others become slow for `hold_s` on average.
    """
    rng = np.random.default_rng(seed)
    always = np.arange(TARGETS) < persistent * TARGETS
    until, now, parts = np.zeros(TARGETS), 0.0, []
    for number in range(runs):
        onset = rng.random(TARGETS) < 0.01
        until = np.where(onset, now + rng.exponential(hold_s or 1e-9, TARGETS), until)
        target = (np.arange(TARGETS) + number) % TARGETS
        slow = (always | (until > now))[target]
        seconds = 0.4 * rng.lognormal(0, 0.1, TARGETS) * np.where(slow, 4, 1)
        parts.append(
            pl.DataFrame(
                {
                    "line": 0,
                    "start_s": now + rng.uniform(0, 0.02, TARGETS),
                    "client": [f"nid{client:05d}" for client in range(TARGETS)],
                    "target": [f"OST{each:04x}" for each in target],
                    "bytes": SIZE,
                    "duration_s": seconds,
                    "x": rng.uniform(0, 20, TARGETS),
                    "y": 0.0,
                    "z": 0.0,
                }
            )
        )
        now += seconds.max() + gap_s
    return pl.concat(parts).cast({"bytes": pl.Int64})


@pytest.fixture(scope="module")
def transient():
    return bursts.bursts(series(1, hold_s=40.0))


def test_scores_have_their_definitions():
    rows = [  # start, client, target, seconds
        (0.0, "a", "t1", 1.0),
        (0.5, "b", "t2", 1.0),
        (0.0, "c", "t3", 4.0),
        (9.0, "a", "t1", 2.0),
        (20.0, "a", "t1", 1.0),
    ]
    frame = pl.DataFrame(
        [
            (0, start, client, target, 100, seconds, None, None, None)
            for start, client, target, seconds in rows
        ],
        schema=["line", "start_s", "client", "target", "bytes", "duration_s", "x", "y", "z"],
        schema_overrides=dict.fromkeys("xyz", pl.Float64),
        orient="row",
    )

    result = bursts.bursts(frame.sample(fraction=1, shuffle=True, seed=3))

    first, *_ = result.bursts.rows(named=True)
    assert result.bursts["burst"].to_list() == [0, 1, 2]
    assert (first["clients"], first["targets"], first["bytes"]) == (3, 3, 300)
    assert first["aggregate_bytes_per_s"] == 100 + 100 + 25
    assert (first["makespan_s"], first["delivered_bytes_per_s"]) == (4.0, 75.0)
    assert first["effective"] == pytest.approx(225 / 300)  # 3 targets at the peak of 100 B/s
    assert first["straggler_share"] == pytest.approx(1 / 3)
    by_target = {row["target"]: row for row in result.transfers.head(3).rows(named=True)}
    assert by_target["t2"]["pair_effective"] == pytest.approx(1)
    assert by_target["t2"]["lag_effective"] == pytest.approx(1 / 1.5)  # it started 0.5 s late


def test_transfers_without_pauses_are_not_called_bursts():
    frame = series(2, runs=2)

    assert "fewer than 3 bursts" in bursts.bursts(frame).refusal


def test_transient_stragglers_recover_as_fast_as_simulated(transient):
    states = stragglers.states(transient.transfers, "target")

    lasting = stragglers.persistence(states, "slow")

    recovered = lasting.ended[120.0]
    # Exponential with a mean of 40 s, seen at the next burst, some 11.5 s later.
    assert lasting.episodes > 100
    assert recovered.low < 1 - np.exp(-(120 - 11.5) / 40) < recovered.high
    assert lasting.ended[600.0].value == 1
    assert lasting.lasting[0] == 1
    assert np.diff(lasting.lasting).max() <= 0


def test_the_past_does_not_predict_transient_stragglers(transient):
    skills = stragglers.skills(stragglers.states(transient.transfers, "target"))

    later = [skill for skill in skills if skill.lag_s >= 300]
    assert len(later) == 4
    assert all(skill.is_useless for skill in later)
    assert all(skill.skill.low <= 0 <= skill.skill.high for skill in later)


def test_the_past_predicts_persistent_stragglers():
    found = bursts.bursts(series(3, persistent=0.1, hold_s=40.0))

    states = stragglers.states(found.transfers, "target")

    for skill in stragglers.skills(states):
        assert skill.is_useful
        assert skill.after_slow > 2 * skill.base


def test_half_of_the_stragglers_persistent_gives_half_the_skill():
    found = bursts.bursts(series(4, persistent=0.1, hold_s=25.0, runs=400))
    states = stragglers.states(found.transfers, "target")

    skill = next(each for each in stragglers.skills(states) if each.lag_s == 1_200)

    by_target = states.group_by("component").agg(pl.mean("slow"))
    always = by_target.filter(pl.col("slow") == 1).height
    transient_rate = by_target.filter(pl.col("slow") < 1)["slow"].mean()
    assert always == 6
    assert skill.skill.value == pytest.approx(1 - transient_rate / skill.base, abs=0.03)


def test_clients_of_a_target_share_its_bandwidth():
    frame = series(5)
    few = frame.with_columns(target=pl.lit("OST") + (pl.col("client").str.slice(-1)))

    table = output.by_clients_per_target(bursts.bursts(few).transfers)

    assert table.select("size", "clients", "n").rows() == [("32 MiB", 6, 10 * 250)]
    assert table["per_client"][0] == pytest.approx(SIZE / 0.4, rel=0.1)


def test_mean_distances_are_those_of_all_pairs(transient):
    first = transient.transfers.filter(burst=0).sort("client")
    x = first["x"].to_numpy()
    pairs = np.abs(x[:, None] - x[None, :])[np.triu_indices(x.size, 1)]

    assert transient.bursts["mean_distance"][0] == pytest.approx(pairs.mean())
    [locality] = output.by_distance(transient.bursts)
    assert locality.correlation.low < 0 < locality.correlation.high
    assert locality.bins["n"].sum() == 250


def test_a_hot_target_is_first():
    frame = series(6, runs=20)
    hot = frame.with_columns(
        target=pl.when(pl.col("client") < "nid00009").then(pl.lit("OST0000")).otherwise("target")
    )

    balanced = output.imbalance(bursts.bursts(frame).transfers, bursts.SLOW)
    result = output.imbalance(bursts.bursts(hot).transfers, bursts.SLOW)

    assert balanced.gini == pytest.approx(0, abs=1e-9)
    assert result.targets["target"][0] == "OST0000"
    assert result.targets["relative"][0] > 2
    assert result.gini > 0.1


def test_the_heat_map_joins_neighbours(transient):
    names = [f"c{number}" for number in range(150)]
    many = pl.DataFrame({"client": names, "target": "t", "slowness": 2.0})

    drawn = output.heat_map(many)

    assert len(drawn.clients) == 50
    assert drawn.clients[0] == "c0 +2"
    assert drawn.relative[0] == (0.5,)
    assert output.heat_map(transient.transfers).targets[10] == "OST000a"
