"""How pages and exports say that other users' jobs are hidden."""

from __future__ import annotations

from ioportal.jobs.analysis.populations import MAX_SHARE, MIN_GROUP, MIN_OWNERS

RULE = (
    f"at least {MIN_GROUP} jobs of {MIN_OWNERS} users, none with more than "
    f"{MAX_SHARE:.0%} of the figure"
)
HIDDEN = f"Other users' jobs are shown only together: {RULE}"
