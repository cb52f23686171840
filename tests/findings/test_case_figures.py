"""The figures of a case in words: nothing is counted as 0 that is left out."""

import pytest

from ioportal.findings.cases.case_texts import Figures


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (Figures(flags=1, jobs=1), "1 flag, 1 job"),
        (Figures(flags=1_200, jobs=0, suppressed=2), "1,200 flags, 2 suppressed"),
        (Figures(ended=1, suppressed=1), "no current flag, 1 ended, 1 suppressed"),
        (Figures(suppressed=1), "no flag on good data, 1 suppressed"),
    ],
)
def test_figures_in_words(figures, expected):
    assert figures.in_words == expected
