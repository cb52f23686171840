import pytest

from collectors.batch.values import INT32_MAX, Unreadable, batch_id, duration_s, whole_number


@pytest.mark.parametrize(
    ("text", "number"), [("0", 0), ("007", 7), ("-11", -11), (str(INT32_MAX), INT32_MAX)]
)
def test_whole_numbers_are_read(text, number):
    assert whole_number(text, "count", INT32_MAX) == number


@pytest.mark.parametrize("text", ["", "-", "--1", "+1", "1.0", "1_000", " 1", "٣", "²", "9" * 19])
def test_invalid_integers_are_reported(text):
    with pytest.raises(Unreadable, match="count"):
        whole_number(text, "count")


def test_a_number_that_its_column_cannot_hold_is_refused():
    with pytest.raises(Unreadable, match="NNodes 2147483648 is too large"):
        whole_number("2147483648", "NNodes", INT32_MAX)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("00:00:24", 24, id="hours, minutes, seconds"),
        pytest.param("10-13:27:06", 912_426, id="days before the hours"),
        pytest.param("2:00:00:01", 172_801, id="days as a fourth part"),
        pytest.param("144:00:00", 518_400, id="hours beyond a day"),
        pytest.param("22:53.824", 1_373.824, id="minutes and milliseconds, not hours"),
        pytest.param("00:00:30.500", 30.5, id="milliseconds"),
        pytest.param("90061", 90_061, id="plain seconds"),
    ],
)
def test_durations_are_read_in_every_form(text, seconds):
    assert duration_s(text, "Elapsed") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "UNLIMITED", "1:", "-1", "1:2:3:4:5", "1-", "0x10", "1e3"])
def test_invalid_durations_are_reported(text):
    with pytest.raises(Unreadable, match=r"Elapsed .* is not a duration"):
        duration_s(text, "Elapsed")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("123", ("123", ""), id="no server"),
        pytest.param("123.server.example.org", ("123", ""), id="server"),
        pytest.param("123[].server", ("123", ""), id="parent of an array"),
        pytest.param("123[4].server", ("123", "4"), id="task of an array"),
        pytest.param("123-4.server", ("123", "4"), id="task, as old releases of Torque print it"),
        pytest.param("123.[server]", ("123", ""), id="a server name"),
    ],
)
def test_job_ids_lose_their_server_and_keep_their_index(text, expected):
    assert batch_id(text) == expected


@pytest.mark.parametrize("text", ["", "S99.pbs01", "123[a].x", "123[4", "123 4", ".server"])
def test_invalid_job_ids_are_reported(text):
    with pytest.raises(Unreadable, match="job id"):
        batch_id(text)
