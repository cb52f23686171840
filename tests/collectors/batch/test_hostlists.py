import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.batch import hostlists
from collectors.batch.values import Unreadable

LETTERS = st.text("abz-_.", min_size=1, max_size=4)
NUMBERS = st.integers(0, 12).flatmap(
    lambda number: st.sampled_from([str(number), f"{number:02d}", f"{number:05d}"])
)
HOSTS = st.lists(st.one_of(LETTERS, NUMBERS), min_size=1, max_size=5).map("".join)


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["login1"], "login1"),
        (["n02", "n01", "n03"], "n[01-03]"),
        (["n9", "n10", "n11"], "n[9-11]"),
        (["nid00022", "nid00023", "nid02258"], "nid[00022-00023,02258]"),
        (["cpn-f13-03-01", "cpn-f13-03-02", "cpn-f13-04-01"], "cpn-f13-03-[01-02],cpn-f13-04-01"),
        (["n1-ib", "n2-ib"], "n[1-2]-ib"),
        (["n1.c2.org", "n2.c2.org"], "n[1-2].c2.org"),
        (["mds", "n1", "oss"], "n1,mds,oss"),
    ],
)
def test_names_are_folded(names, text):
    assert hostlists.fold(names) == text
    assert sorted(hostlists.expand(text)) == sorted(names)


@pytest.mark.parametrize(
    ("text", "count", "first", "last"),
    [
        ("cpn-f13-03-[01-02],cpn-f13-04-[01-02]", 4, "cpn-f13-03-01", "cpn-f13-04-02"),
        ("d13n[03,05,07-08,16]", 5, "d13n03", "d13n16"),
        ("rack[0-63]_blade[0-41]", 2_688, "rack0_blade0", "rack63_blade41"),
        ("n[8-10]", 3, "n8", "n10"),
        ("n[099-101]", 3, "n099", "n101"),
        ("n0[9-10]", 2, "n09", "n010"),
        ("[1-3]", 3, "1", "3"),
        ("nid[99999-100001]", 3, "nid99999", "nid100001"),
    ],
)
def test_host_lists_are_expanded_in_order(text, count, first, last):
    names = hostlists.expand(text)

    assert (names[0], names[-1]) == (first, last)
    assert len(names) == hostlists.count(text) == count


def test_a_repeated_host_counts_once():
    assert hostlists.expand("n[1-3],n2,n1") == ["n1", "n2", "n3"]
    assert hostlists.fold(["n1", "n1", "n2"]) == "n[1-2]"


@pytest.mark.parametrize(
    "text",
    ["@all", "n1,@site:rack1", "n[1-3]!n2", "n1&n2", "n1^n2", "n1 n2", "n[1-9/2]", "n*", "n%s"],
)
def test_clustershell_operators_are_refused(text):
    with pytest.raises(Unreadable, match="is not a host list"):
        hostlists.expand(text)
    with pytest.raises(Unreadable, match="is not a host name"):
        hostlists.fold([text])


@pytest.mark.parametrize(
    "text", [",", "n1,", "n[", "n[]", "n[1-]", "n[1", "n1]", "n[a-b]", "n[[1-2]]", "ñ1", "n\n1"]
)
def test_an_error_quotes_the_host_list(text):
    with pytest.raises(Unreadable, match="is not a host list"):
        hostlists.expand(text)


@pytest.mark.parametrize("text", ["n[3-1]", "n[1-03]", "n[01-3]"])
def test_an_error_quotes_the_range(text):
    with pytest.raises(Unreadable, match="is not a range of hosts"):
        hostlists.expand(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("n[1-99999999]", id="one range"),
        pytest.param("n[0-999]x[0-999]", id="a product"),
        pytest.param("n" + "[0-999999999]" * 300, id="an astronomic product"),
        pytest.param(",".join(["n[1-99999]"] * 3), id="a sum"),
    ],
)
def test_a_huge_list_is_refused_before_expansion(text):
    started = time.process_time()

    with pytest.raises(Unreadable, match=f"more than {hostlists.NODES_MAX}"):
        hostlists.expand(text)

    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 1_000_000 + "!", id="a name and no name"),
        pytest.param("a1" * 500_000, id="a long name"),
        pytest.param("[1]" * 300_000 + "!", id="brackets"),
        pytest.param("," * 1_000_000, id="commas"),
    ],
)
def test_hostile_lists_are_refused_in_linear_time(text):
    started = time.process_time()

    with pytest.raises(Unreadable):
        hostlists.count(text)

    assert time.process_time() - started < 2


def test_names_with_many_numbers_are_folded_in_linear_time():
    names = [
        f"r{rack}-c{chassis}-n{node}"
        for rack in range(30)
        for chassis in range(30)
        for node in range(20)
    ]
    started = time.process_time()

    text = hostlists.fold(reversed(names))

    assert time.process_time() - started < 2
    assert set(hostlists.expand(text)) == set(names)


@given(names=st.lists(HOSTS, max_size=30))
def test_folding_preserves_the_names(names):
    text = hostlists.fold(names)

    assert set(hostlists.expand(text)) == set(names)
    assert hostlists.count(text) == len(set(names))


@given(text=st.text("n0123[]-,./ib@!*", max_size=30))
def test_any_text_is_a_host_list_or_unreadable(text):
    try:
        count = hostlists.count(text)
    except Unreadable:
        with pytest.raises(Unreadable):
            hostlists.expand(text)
    else:
        assert len(hostlists.expand(text)) <= count
