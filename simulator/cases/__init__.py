"""A labelled set of cases: what a centre's logs look like while some abuse its filesystems.

site.toml       registration
before/         what is known when the stream begins, loaded at once
    sacct.txt                      jobs that ended in the day before
    job_stats-FILESYSTEM/TIME.txt  a read every ten minutes; its name and its time of change
    md_stats-FILESYSTEM/TIME.txt   are the time of the read
    rpctrace-FILESYSTEM.log.zst    calm hours of a traced server
slices/0000/    the stream, in steps of ten seconds: what agents would have read in each
    slice.json                     {"start": ..., "end": ...}
    job_stats-FILESYSTEM.txt       reads at the end of the step; none in a gap
    md_stats-FILESYSTEM.txt
    rpctrace-FILESYSTEM.log        records of the step
    squeue.txt                     every third step: jobs that wait and run at its end
    sacct.txt                      jobs that ended in it, if any did
truth.json      every subject's label and causes, and every job's true totals

A case of the truth file has

    label             positive, negative, borderline, or bad-data
    part              what the subject plays
    causes            all that hold, or nearly: each with its amounts, when it set in (null: never),
                      and their ratio to what the simulator calls abuse; is_borderline: below 1.25
    near              of the other causes that were looked at, the ratio, below 0.8
    subject           kind and name: a job by its batch id, a host by its NID, a process by what it
                      says of itself, a user, a filesystem
    expected_quality  below good where counters have a gap, were cleared, or nodes are shared
    fault             which of these, or nothing

Labels are causes: who does what is drawn first, and measured in what is truly done, before any of
it is counted, traced or lost. Where abuse begins (`causes`) is the simulator's own view, from what
a server can do and what a centre complained of.
"""
