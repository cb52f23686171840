"""Records of the lines of an strace log: what one line says, without the lines around it.

Source: docs/formats.md, "strace".
"""

import polars as pl

CALL_CHARACTERS = 32
PATH_CHARACTERS = 4_096  # PATH_MAX

# What a line is.
COMPLETE = 0  # a call with its result
UNFINISHED = 1  # the start of a call
RESUMED = 2  # the end of a call
EXITED = 3  # the end of a process
SUPERSEDED = 4  # an execve of a thread, which replaces its process
OTHER = 5  # a signal, a message of strace, a call that never returned

RECORDS = pl.Schema(
    {
        "line": pl.Int64(),
        "kind": pl.Int8(),
        "pid": pl.Int64(),  # 0: not in the line
        "clock": pl.String(),  # time as it is written; null: not in the line
        "call": pl.String(),
        # Folder of a relative path: of -y; "": unknown; null: the working directory.
        "base": pl.String(),
        "in_cwd": pl.Boolean(),  # `base` is the working directory
        "path": pl.String(),
        "error": pl.String(),  # "": succeeded
        "value": pl.Int64(),  # returned process or descriptor; null: no such number
        # Whole, so that sums do not depend on the order of lines; null: not in the line.
        "duration_ns": pl.Float64(),
    }
)

# Calls by the place of their path.
_FIRST = (
    "access acct chdir chmod chown chown32 chroot creat execve getcwd getxattr lchown "
    "lchown32 lgetxattr link listxattr llistxattr lremovexattr lsetxattr lstat lstat64 mkdir "
    "mknod oldlstat oldstat open readlink removexattr rename rmdir setxattr stat stat64 "
    "statfs statfs64 swapoff swapon symlink truncate truncate64 umount umount2 unlink uselib "
    "utime utimes"
)
_AFTER_FOLDER = (
    "execveat faccessat faccessat2 fchmodat fchmodat2 fchownat fstatat64 futimesat getxattrat "
    "linkat mkdirat mknodat name_to_handle_at newfstatat open_tree openat openat2 readlinkat "
    "renameat renameat2 statx unlinkat utimensat utimensat_time64"
)
PATH_FIRST = frozenset(_FIRST.split())
PATH_AFTER_FOLDER = frozenset(_AFTER_FOLDER.split())
FOLDER_CHANGES = frozenset({"chdir", "fchdir", "getcwd"})
PROCESS_STARTS = frozenset({"clone", "clone2", "clone3", "fork", "vfork"})
