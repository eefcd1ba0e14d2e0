#!/usr/bin/env python3
"""silent.py [--most SECONDS] [--] COMMAND...: runs a command on a terminal and says for how long it was silent at most.

The terminal has 24 lines of 80 columns. Exit status: the command's; 3 when that is 0 and a silence lasted longer than
--most (default 5 s). The command's output goes to stdout with --show, or when it fails.
"""
import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--most", type=float, default=5.0)
    args.add_argument("--show", action="store_true")
    args.add_argument("command", nargs=argparse.REMAINDER)
    o = args.parse_args()
    command = o.command[1:] if o.command[:1] == ["--"] else o.command
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execvp(command[0], command)
    started = last = time.monotonic()
    longest, after, said = 0.0, "", b""
    while True:
        select.select([terminal], [], [])
        now = time.monotonic()
        if now - last > longest:
            longest, after = now - last, said[-300:].decode("utf-8",
                                                            "replace").replace("\r", "\n").strip().splitlines()[-1:]
        last = now
        try:
            more = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not more:
            break
        said += more
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if o.show or status:
        print(said.decode("utf-8", "replace"))
    print(f"silent for {longest:.1f} s at most, of {last - started:.0f} s; behind: {' '.join(after)[:120]}")
    return status or (3 if longest > o.most else 0)


if __name__ == "__main__":
    sys.exit(main())
