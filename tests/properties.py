"""Hypothesis profiles: "quick" for every run, "deep" with 100 times as many examples."""

from hypothesis import settings

_DEEP_TIMES = 100
_EXAMPLES = 100  # of a test that declares no number

# No deadlines: the machine that runs the tests may be busy.
settings.register_profile("quick", deadline=None, max_examples=_EXAMPLES)
settings.register_profile("deep", deadline=None, max_examples=_EXAMPLES * _DEEP_TIMES)


def is_deep():
    """Return whether this run has the deep profile."""
    return settings.get_current_profile_name() == "deep"


def examples(number):
    """Return the number of examples in the profile of this run."""
    return number * (_DEEP_TIMES if is_deep() else 1)
