#!/usr/bin/env python3
"""signal_at.py SIGNAL FILE COMMAND...: runs COMMAND and sends it SIGNAL as soon as FILE holds its first tensors.

With SIGNAL_WHEN in the environment, a shell command, the signal also waits for that to succeed: time alone says nothing
on a busy machine. Prints what the command said, and how it ended.
"""
import os
import re
import signal
import subprocess
import sys
import time


def main():
    number, path, command = getattr(signal, "SIG" + sys.argv[1]), sys.argv[2], sys.argv[3:]
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    when = os.environ.get("SIGNAL_WHEN", "true")
    end = time.monotonic() + 60
    while p.poll() is None and time.monotonic() < end:
        if os.path.exists(path) and os.path.getsize(path) > 400000 and subprocess.call(when, shell=True) == 0:
            p.send_signal(number)
            break
        time.sleep(0.001)
    said = p.communicate()[0]
    print(re.sub(r"\d+ tensors", "N tensors", said), end="")
    print("killed" if p.returncode < 0 else f"[{p.returncode}]")


if __name__ == "__main__":
    main()
