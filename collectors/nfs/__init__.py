"""Formats of NFS servers."""
