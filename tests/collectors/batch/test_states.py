import pytest

from collectors.batch import states
from collectors.batch.values import Unreadable


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("COMPLETED", states.COMPLETED),
        ("CANCELLED by 380693", states.CANCELLED),
        ("CANCELLED+", states.CANCELLED),
        ("OUT_OF_ME+", states.OUT_OF_MEMORY),
        ("DEADLINE", states.TIMEOUT),
        ("CONFIGURING", states.RUNNING),
        ("RESIZING", states.REQUEUED),
        ("RE+", states.UNKNOWN),
        ("HIBERNATING", states.UNKNOWN),
        ("?", states.UNKNOWN),
    ],
)
def test_slurm_states_are_translated(text, state):
    assert states.from_slurm(text) == state


@pytest.mark.parametrize("text", ["", "completed", "0", "12:00:00", " COMPLETED"])
def test_invalid_slurm_states_are_reported(text):
    with pytest.raises(Unreadable, match="is not a word in capitals"):
        states.from_slurm(text)


@pytest.mark.parametrize(
    ("status", "openpbs", "over_limit", "state"),
    [
        pytest.param(0, True, True, states.COMPLETED, id="success counts, at the limit too"),
        pytest.param(1, True, False, states.FAILED, id="the shell's own"),
        pytest.param(271, True, False, states.FAILED, id="a signal, with time left"),
        pytest.param(271, True, True, states.TIMEOUT, id="a signal at the limit"),
        pytest.param(-3, False, False, states.REQUEUED, id="retry"),
        pytest.param(-11, False, False, states.TIMEOUT, id="Torque's -11"),
        pytest.param(-11, True, False, states.REQUEUED, id="OpenPBS's -11"),
        pytest.param(-10, False, False, states.OUT_OF_MEMORY, id="Torque's -10"),
        pytest.param(-10, True, False, states.FAILED, id="OpenPBS's -10"),
        pytest.param(-29, True, False, states.TIMEOUT, id="OpenPBS's wall time"),
        pytest.param(None, True, False, states.UNKNOWN, id="not told"),
    ],
)
def test_pbs_exit_states_become_our_words(status, openpbs, over_limit, state):
    assert states.from_pbs(status, openpbs=openpbs, over_limit=over_limit) == state


def test_every_state_is_in_the_vocabulary():
    named = {
        value for name, value in vars(states).items() if name.isupper() and isinstance(value, str)
    }

    assert named == set(states.STATES)
