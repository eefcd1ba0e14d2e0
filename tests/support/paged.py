"""paged.py SIGNAL COMMAND...: runs a command on a terminal, in the foreground of a session as a
shell would, with a pager that reads keys; sends the signal to the command alone while the pager
waits. Prints how the command ended, whether the pager did, and whether the terminal is as before."""

import os
import pty
import select
import signal
import sys
import termios
import time

PAGER = f"exec {sys.executable} -c '" + """
import os, signal, sys, termios, tty
was = termios.tcgetattr(1)
def end(*_):
    termios.tcsetattr(1, termios.TCSANOW, was)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
signal.signal(signal.SIGHUP, end)
tty.setcbreak(1)
print("pager", os.getpid(), flush=True)
sys.stdin.read()
os.read(1, 1)
end()
'"""


def wait_for(fd, word):
    text = b""
    while word not in text and select.select([fd], [], [], 30)[0]:
        try:
            text += os.read(fd, 4096)
        except OSError:
            break
    return text


def run(name, command):
    leader, fd = pty.fork()
    if leader == 0:
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.environ.update(TERM="xterm", VERNIER_PAGER=PAGER)
            os.execvp(command[0], command)
        os.write(1, b"command %d\n" % pid)
        how = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.write(1, b"ended %d\n" % how)
        signal.pause()  # its end would hang up
    before = termios.tcgetattr(fd)
    text = wait_for(fd, b"pager ")
    while not text.rstrip(b"\r\n").split(b"pager ")[-1] or not text.endswith(b"\n"):
        text += os.read(fd, 4096)
    pager = int(text.split(b"pager ")[1].split()[0])
    time.sleep(0.3)
    os.kill(int(text.split(b"command ")[1].split()[0]), getattr(signal, name))
    text = wait_for(fd, b"ended ")
    time.sleep(0.3)
    left = os.path.exists(f"/proc/{pager}") and open(f"/proc/{pager}/stat").read().split()[2] != "Z"
    how = text.split(b"ended ")[1].split()[0].decode() if b"ended " in text else "not ended"
    print(name, how, "the pager is left" if left else "the pager ended",
          "the terminal is as before" if termios.tcgetattr(fd)[3] == before[3] else "the terminal is RAW", sep=", ")
    if left:
        os.kill(pager, signal.SIGKILL)
    os.kill(leader, signal.SIGKILL)


run(sys.argv[1], sys.argv[2:])
