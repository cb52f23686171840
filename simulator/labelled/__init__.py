"""A labelled set: logs of a centre in which some jobs, groups of jobs and hosts harm others.

site.toml       registration
before/         history when the stream begins, loaded in one step
    sacct.txt               jobs that ended in it
    job_stats/TIME.txt      a read every 15 minutes; its name and its modification time are the
    md_stats/TIME.txt       time of the read
    mds_stats/TIME.txt      a read every minute
    exports.txt             a read when the stream begins
    rpctrace.log.zst        the server's trace
slices/0000/    the stream, in steps of 30 seconds, as read by agents
    slice.json              {"start": ..., "end": ...}
    job_stats.txt           reads at the end of the step
    md_stats.txt
    mds_stats.txt
    exports.txt             in every second step
    rpctrace.log            records of the step
    squeue.txt              waiting and running jobs at its end
    sacct.txt               jobs that ended in the step, if any
truth.json      harm and waste of every job, group of jobs and host

Demand is drawn first: ordinary jobs, and jobs, groups and hosts of all strengths from harmless to a
blocked server. A queue of single requests (`servers.queueing`) serves it; trace and counters show
these requests. Harm is the waiting of others that would not be without the subject: the same
requests are served again without it. No label depends on numbers of operations, except waste:
operations that did nothing.
"""
