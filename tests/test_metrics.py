"""Definitions of metrics."""

from collectors.tables import OPERATIONS, SUBSETS
from ioportal.metrics import METADATA_OPERATIONS, METRICS


def test_titles_are_unique():
    assert len({metric.title for metric in METRICS}) == len(METRICS)


def test_metadata_operations_are_counted_once():
    assert set(METADATA_OPERATIONS) <= set(OPERATIONS)
    assert not set(METADATA_OPERATIONS) & set(SUBSETS)
    assert len(set(METADATA_OPERATIONS)) == len(METADATA_OPERATIONS)
