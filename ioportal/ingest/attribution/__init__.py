"""Attribution: derive rows by principal from raw rows and the known jobs.

Raw windows and snapshots are never changed. When they or the jobs change, the derived rows of the
dirty interval are deleted and inserted again. Rules: docs/architecture.md, "Attribution".
"""
