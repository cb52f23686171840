"""A connection to the test database beside Django's, as of another process."""

import os

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo


def address():
    """Return the address of the test database."""
    return make_conninfo(os.environ["DATABASE_URL"], dbname=connection.settings_dict["NAME"])


def connect(**options):
    """Connect as another process does."""
    return psycopg.connect(address(), **options)
