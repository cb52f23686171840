"""Signals to apps that have rows about cases."""

from django.dispatch import Signal

case_joined = Signal()  # before `emptied`, a case without flags, is deleted: `case` takes its place
