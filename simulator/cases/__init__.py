"""A labelled set of cases: logs of a centre with some abusive jobs, users and hosts.

site.toml       registration
before/         history when the stream begins, loaded in one step
    sacct.txt                      jobs that ended in the day before
        job_stats-FILESYSTEM/TIME.txt  a read every ten minutes; its name and its modification time
        md_stats-FILESYSTEM/TIME.txt   are the time of the read
    rpctrace-FILESYSTEM.log.zst    calm hours of a traced server
slices/0000/    the stream, in steps of ten seconds, as read by agents
    slice.json                     {"start": ..., "end": ...}
    job_stats-FILESYSTEM.txt       reads at the end of the step; none in a gap
    md_stats-FILESYSTEM.txt
    rpctrace-FILESYSTEM.log        records of the step
    squeue.txt                     every third step: waiting and running jobs at its end
    sacct.txt                      jobs that ended in the step, if any
truth.json      every subject's label and causes, and every job's true totals

A case of the truth file has these keys:

    label             positive, negative, borderline, or bad-data
        part              the role of the subject
        causes            causes with a ratio to abuse of at least 0.8: amounts, onset (null: never)
                          and ratio; is_borderline: below 1.25
        near              ratios of the other causes that were examined, below 0.8
        subject           kind and name: a job by its batch id, a host by its NID, a process by its
                          name, a user, a filesystem
        expected_quality  below good where counters have a gap, were cleared, or nodes are shared
    fault             one of these, or empty

Labels are causes: roles are drawn first and measured by their true activity, before it is
counted, traced or lost. The definition of abuse (`causes`) belongs to the simulator, and follows
from the capacity of a server and from complaints known from centres.
"""
