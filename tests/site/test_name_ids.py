"""Names have constant ids, and a process caches committed ids."""

import polars as pl
import pytest
from django.db import connection, transaction

from ioportal.site import name_ids
from ioportal.site.models import Service

pytestmark = pytest.mark.django_db(transaction=True)


def ids(*services):
    return name_ids.services().ids(pl.Series(services)).to_list()


def test_a_committed_id_is_queried_once(django_assert_num_queries):
    first = ids("mdt", "mdt_rdpg")

    with django_assert_num_queries(1):  # the table's file node
        assert ids("mdt_rdpg", "mdt", "mdt") == [first[1], first[0], first[0]]


def test_a_rolled_back_id_is_not_cached():
    with transaction.atomic():
        ids("mdt_seqs")
        transaction.set_rollback(True)

    [id_] = ids("mdt_seqs")

    assert Service.objects.get(name="mdt_seqs").pk == id_


def test_a_truncated_table_has_a_new_cache():
    ids("mdt_io")
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE site_service CASCADE")

    [id_] = ids("mdt_io")

    assert Service.objects.get(name="mdt_io").pk == id_
