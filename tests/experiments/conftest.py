"""Users of experiments."""

from tests.web.conftest import (
    _static_files_as_they_are,
    alice,
    as_alice,
    as_bob,
    as_charlie,
    as_staff,
    bob,
    charlie,
    cluster,
    new_job,
    sam,
)

__all__ = [
    "_static_files_as_they_are",
    "alice",
    "as_alice",
    "as_bob",
    "as_charlie",
    "as_staff",
    "bob",
    "charlie",
    "cluster",
    "new_job",
    "sam",
]
