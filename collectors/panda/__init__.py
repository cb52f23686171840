"""Formats of PanDA, the workload manager that runs its jobs inside batch jobs."""
