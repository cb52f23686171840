"""A host whose RPCs have the ids of jobs elsewhere."""

import pytest

from ioportal.rules import CONTRADICTED_JOB_IDS


@pytest.mark.parametrize(("rpcs", "is_flagged"), [(3_000, True), (2_999, False)])
def test_many_contradicted_rpcs_are_flagged(evaluate, rpcs, is_flagged):
    numbers = evaluate(CONTRADICTED_JOB_IDS, rpcs=0, contradicted_rpcs=rpcs)

    assert (numbers is not None) is is_flagged
