"""Scores of flags by the harm that their subjects did."""

from datetime import UTC, datetime, timedelta

import pytest

from bench.flag_quality.blame import Blame, Sighting
from bench.flag_quality.scores import scores
from bench.flag_quality.summary import summary

START = datetime(2024, 6, 1, 8, tzinfo=UTC)
ONSET = START + timedelta(minutes=10)
ARRAY = [f"{number}" for number in range(10, 20)]


def job(user, name, part, operations, **other):
    values = {"user": user, "name": name, "project": "p1", "part": part, "operations": operations}
    return values | {"spoofs": False, "claims": ""} | other


def group(kind, name, harm_s, *, is_waste=False):
    return {"kind": kind, "name": name, "harm_s": harm_s, "is_waste": is_waste}


def subject(kind, name, jobs, users, harm_s):
    return group(kind, name, harm_s) | {
        "jobs": jobs,
        "users": users,
        "operations": 1_000,
        "part": "storm",
        "is_borderline": harm_s < 120,
        "onset": ONSET.isoformat(),
    }


TRUTH = {
    "seed": 1,
    "start": START.isoformat(),
    "end": (ONSET + timedelta(minutes=10)).isoformat(),
    "hosts": {"10.0.0.1@o2ib": "find.20000"},
    "jobs": {
        "1": job("alice", "storm", "storm", 1_000),
        "2": job("bob", "vasp", "ordinary", 50),
        "3": job("carol", "search", "failed look-ups", 9_000),
        "4": job("mallory", "storm", "storm", 10, spoofs=True, claims="2:20001"),
        **{number: job("dave", "task", "array", 100) for number in ARRAY},
    },
    "subjects": [
        subject("job", "1", ["1"], ["alice"], 500),
        subject("application", "dave task", ARRAY, ["dave"], 100),
        subject("host", "10.0.0.1@o2ib", [], [], 70),
        subject("job", "2", ["2"], ["bob"], 40),
    ],
    "groups": [
        group("job", "1", 500),
        group("user", "alice", 500),
        group("job", "2", 40),
        group("job", "3", 0, is_waste=True),
        group("application", "dave task", 100),
        group("user", "dave", 100),
        group("project", "p1", 620),
        group("host", "10.0.0.1@o2ib", 70),
    ],
}


CASES = {}


def flag(kind, name, *, rule="impact", seconds=30, strength=2.0, is_accusation=True, value=600.0):
    owner = TRUTH["jobs"].get(name, {}).get("user", name)
    first_seen = ONSET + timedelta(seconds=seconds)
    case = CASES.setdefault((rule, owner), len(CASES))
    return Blame(rule, kind, name, case, first_seen, is_accusation, strength, value)


def result(*flags, observed=()):
    return scores(TRUTH, flags, observed)


def detected(scored):
    return [each.strength is not None for each in scored.subjects]


def test_subjects_below_the_threshold_of_harm_are_not_expected():
    assert [each.harm_s for each in result().subjects] == [500, 100, 70]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([flag("job", "1")], [True, False, False]),
        ([flag("user", "alice")], [True, False, False]),
        ([flag("user", "dave")], [False, True, False]),
        ([flag("application", "dave task")], [False, True, False]),
        ([flag("project", "p1")], [True, True, False]),
        ([flag("job", number) for number in ARRAY[:5]], [False, True, False]),
        ([flag("job", number) for number in ARRAY[:4]], [False, False, False]),
        ([flag("job", ARRAY[0], rule=f"rule{n}") for n in range(9)], [False, False, False]),
        ([flag("host", "10.0.0.1@o2ib")], [False, False, True]),
        ([flag("host", "find.20000")], [False, False, True]),
    ],
)
def test_flags_name_a_subject_its_owner_or_half_of_its_operations(flags, expected):
    assert detected(result(*flags)) == expected


def verdicts(*flags):
    return [case.is_true for case in result(*flags).cases]


@pytest.mark.parametrize(
    ("rule", "name", "expected"),
    [
        ("impact", "1", True),
        ("open-close-imbalance", "1", True),
        ("impact", "2", False),
        ("impact", "3", False),
        ("impact-of-many-jobs", "3", False),
        ("metadata-rate", "3", False),
        ("open-close-imbalance", "3", True),
    ],
)
def test_waste_justifies_only_rules_about_waste(rule, name, expected):
    assert verdicts(flag("job", name, rule=rule)) == [expected]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([("job", "1"), ("user", "alice")], [True, False]),
        ([("job", "1"), ("project", "p1")], [True, False]),
        ([("user", "alice"), ("project", "p1")], [True, False]),
        ([("application", "dave task"), ("user", "dave")], [True, False]),
        ([("application", "dave task"), ("job", ARRAY[0])], [True, False]),
        ([("application", "dave task"), ("project", "p1")], [True, True]),
        ([("job", ARRAY[0]), ("job", ARRAY[1])], [True, True]),
        ([("user", "alice")], [True]),
    ],
)
def test_a_second_accusation_for_the_same_harm_is_false(flags, expected):
    found = [flag(*key, rule=f"impact {n}") for n, key in enumerate(flags)]

    assert verdicts(*found) == expected
    assert summary([result(*found)])["redundant"] == expected.count(False)


def test_estimates_are_compared_with_the_harm_of_their_subject():
    scored = result(
        flag("job", "1", value=700),
        flag("user", "alice", value=260),
        flag("user", "dave", value=10),
        flag("job", "1", rule="metadata-rate", value=9),
        flag("job", "2", value=9_000),
    )

    figures = summary([scored])
    assert figures["estimates"] == 3
    assert figures["within_1_5"] == pytest.approx(1 / 3)
    assert figures["within_2"] == pytest.approx(2 / 3)


def test_rules_about_data_are_apart():
    assert result(flag("job", "2", rule="unattributed")).cases == []


def test_notices_are_no_accusations():
    ordinary, storm = flag("job", "2", is_accusation=False), flag("job", "1", is_accusation=False)

    scored = result(ordinary, storm, flag("user", "alice"))
    assert [case.is_true for case in scored.cases] == [True]
    assert scored.notices == {"impact": 1}
    noticed = result(storm)
    assert detected(noticed) == [False, False, False]
    assert noticed.subjects[0].observed_s is None


def test_a_subject_is_observed_before_it_is_accused():
    sightings = [Sighting("job", number, ONSET) for number in ARRAY[:4]]
    sightings.append(Sighting("user", "alice", ONSET + timedelta(seconds=15)))

    storm, array, _ = result(flag("job", "1"), observed=sightings).subjects

    assert (storm.observed_s, storm.delay_s) == (15, 30)
    assert array.observed_s is None  # less than half of it


def test_the_owner_of_a_spoofed_id_must_not_be_blamed():
    assert result(flag("job", "1")).spoofing_blamed == 0
    assert result(flag("job", "2")).spoofing_blamed == 1


def test_a_group_is_found_when_flags_cover_half_of_it():
    flags = [flag("job", number, seconds=60 * n, strength=n) for n, number in enumerate(ARRAY, 1)]

    group = result(*flags).subjects[1]
    assert group.delay_s == 300
    assert group.strength == 6


@pytest.mark.parametrize(("seconds", "is_counted"), [(149, False), (150, True)])
def test_harm_just_before_the_end_is_not_counted(seconds, is_counted):
    truth = TRUTH | {"end": (ONSET + timedelta(seconds=seconds)).isoformat()}

    assert bool(scores(truth, [], []).subjects) == is_counted


def test_figures_over_several_sets():
    sets = [
        result(flag("job", "1", strength=9), flag("job", "2", strength=3)),
        result(flag("job", "1", strength=5), flag("user", "dave", strength=4)),
    ]

    figures = summary(sets)

    assert figures["precision"] == 3 / 4
    assert figures["recall"] == 3 / 6
    assert figures["auc"] == pytest.approx(3 / 6)  # the false flag is the weakest
    assert figures["false_cases_per_day"] == pytest.approx(10_000 / 2)  # two ordinary jobs
    missed, _ = figures["errors"]
    assert [each["subject"] for each in missed["missed"]] == [
        ["application", "dave task"],
        ["host", "10.0.0.1@o2ib"],
    ]
    assert missed["false"] == [
        {
            "rule": "impact",
            "strength": 3,
            "parts": ("ordinary",),
            "subjects": (("job", "2"),),
            "harm_s": 40,
            "is_redundant": False,
        }
    ]
    assert figures["precision_lower"] == 0.5
    assert figures["precision_upper"] == 1
    assert figures["by_severity"]["60 s"] == {"harmful": 4, "detected": 1}
    assert figures["false_by_rule"]["impact"]["on"] == {"ordinary": 1}
    assert figures["delay_p50_s"] == 30
    assert figures["observed_p50_s"] == 30
    assert [point["recall"] for point in figures["curve"]] == pytest.approx(
        [1 / 6, 2 / 6, 3 / 6, 3 / 6]
    )


def test_a_day_has_the_heavy_subjects_of_a_set():
    figures = summary([result(flag("job", "4")), result()])

    assert figures["false_cases_per_day"] == 1 / 2


def test_figures_without_flags_are_unknown_or_zero():
    figures = summary([result()])

    assert figures["precision"] is None
    assert figures["recall"] == 0
    assert figures["auc"] is None
    assert figures["false_cases_per_day"] == 0
