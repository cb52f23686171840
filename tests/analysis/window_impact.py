"""The impact in windows of 10 s, summed."""

from ioportal.analysis import impact as analysis


def impact(windows, baseline, members):
    """Return the sums of `by_window`."""
    of_windows = analysis.by_window(windows, baseline, members)
    return analysis.impact(windows, baseline, members, of_windows)
