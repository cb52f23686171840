"""Jobs of two periods."""

from functools import partial

import pytest

from tests.web.comparisons import campaigns


@pytest.fixture
def campaign(cluster):
    """Add jobs of a user, by default alice: see `campaigns.add`."""
    return partial(campaigns.add, cluster)
