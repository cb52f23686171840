"""Quality of the flags: ``python -m bench flag-quality --seeds N``.

The simulator's labelled sets are loaded as a stream, in steps of 30 seconds, by the real collectors
and stages: with all inputs, without RPC traces, and with job_stats and md_stats only. Flags and
their times are compared with the harm that jobs, groups of jobs and hosts did to others.
docs/performance.md defines all terms.
"""
