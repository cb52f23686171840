"""Formats of Lustre servers."""
