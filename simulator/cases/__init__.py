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

Labels are causes: who does what is drawn first, and measured in what is truly done, before any of
it is counted, traced or lost. Where abuse begins (`causes`) is the simulator's own view, from what
a server can do and what a centre complained of.
"""
