"""sessions.py: how a process that leads a session (start_new_session) ended, and what of its session outlived it.

The process keeps its number until that is known: the number of one that has been waited for may be that of a stranger's
session.
"""
import os
import signal
import time


def members(session):
    """Processes of a session that still run."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
        except OSError:
            continue
        if len(fields) > 3 and fields[3] == str(session) and fields[0] not in "ZX":
            found.append(int(pid))
    return found


def end(process, seconds):
    """Exit status of a Popen, None if it runs longer than that; and the other processes of its session that did not end
    within two seconds. Nothing of the session runs on."""
    deadline, pause = time.monotonic() + seconds, 0.0005
    ended = None
    while not ended and time.monotonic() < deadline:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if not ended:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
    for _ in range(100 if ended else 1):  # a moment is allowed: a child is ended by the end of its parent
        left = members(process.pid)
        if not left:
            break
        time.sleep(0.02)
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    status = process.wait()
    return (status if ended else None), [pid for pid in left if pid != process.pid]
