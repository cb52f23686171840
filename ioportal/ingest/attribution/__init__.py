"""Who did it: derived rows from raw ones, made anew wherever something relevant arrived.

Raw windows and snapshots are never changed. What is charged follows from them and from the jobs
known now; when either changes, the derived rows of the touched interval are deleted and inserted
again. docs/architecture.md, "Attribution", tells the rules in words.
"""
