"""Formats of PanDA, a workload manager that runs its jobs inside batch jobs."""
