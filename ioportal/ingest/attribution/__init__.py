"""Attribution: derive rows by principal from raw rows and the known jobs.

Raw windows and snapshots are never changed. When they or the jobs change, the derived rows of the
dirty interval are deleted and inserted again. Which job a job id names is decided in `rpc_claims`
for RPCs, and for counters in ``jobs_job_named`` (jobs/migrations/named_jobs.sql). Rules:
docs/architecture.md, "Attribution".
"""
