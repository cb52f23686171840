"""A storm of the tests of alerts, and users of the tests of pages."""

from tests.alerts.conftest import automatic, storm, storm_case
from tests.web.conftest import _static_files_as_they_are, alice, as_alice, as_staff, bob, sam

__all__ = [
    "_static_files_as_they_are",
    "alice",
    "as_alice",
    "as_staff",
    "automatic",
    "bob",
    "sam",
    "storm",
    "storm_case",
]
