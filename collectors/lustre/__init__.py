"""Formats that Lustre servers write."""
