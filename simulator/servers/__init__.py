"""Servers: queues, counters and their polls, debug logs and dumps."""
