"""Names keep their numbers, and a process remembers those that are committed."""

import polars as pl
import pytest
from django.db import connection, transaction

from ioportal.site import name_ids
from ioportal.site.models import Service

pytestmark = pytest.mark.django_db(transaction=True)


def numbers(*services):
    return name_ids.services().ids(pl.Series(services)).to_list()


def test_what_is_committed_is_looked_up_once(django_assert_num_queries):
    first = numbers("mdt", "mdt_rdpg")

    with django_assert_num_queries(1):  # which asks whether it is the same table still
        assert numbers("mdt_rdpg", "mdt", "mdt") == [first[1], first[0], first[0]]


def test_what_is_taken_back_was_never_known():
    with transaction.atomic():
        numbers("mdt_seqs")
        transaction.set_rollback(True)

    [number] = numbers("mdt_seqs")

    assert Service.objects.get(name="mdt_seqs").pk == number


def test_a_table_that_was_emptied_is_another_one():
    numbers("mdt_io")
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE site_service CASCADE")

    [number] = numbers("mdt_io")

    assert Service.objects.get(name="mdt_io").pk == number
