"""Parsers from source files to typed tables, independent of Django, database and site."""

VERSION = "0.1.0"
