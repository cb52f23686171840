"""Numbers that increase with time and include given numbers."""

import numpy as np
import pytest

from simulator.batch import numbers


def test_numbers_increase_and_given_numbers_are_exact():
    moments = np.array([0, 10, 10, 10, 20, 95, 100, 100, 200])

    values = numbers.growing(moments, {20: 1_000, 100: 1_003}, 0.1, np.array([4, 6]))

    assert values[[4, 6]].tolist() == [1_000, 1_003]
    assert (np.diff(values) > 0).all()


def test_too_many_numbers_between_given_numbers_are_an_error():
    with pytest.raises(ValueError, match="too few numbers"):
        numbers.growing(np.arange(10), {0: 5, 9: 8}, 1.0, np.array([0, 9]))
