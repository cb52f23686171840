from pathlib import Path

from ioportal.findings import metrics_document
from ioportal.metrics import METRICS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date():
    assert (DOCS / "metrics.md").read_text() == metrics_document.page()


def test_no_metric_is_defined_twice():
    names = [metric.name for metric in METRICS]

    assert len(names) == len(set(names))
