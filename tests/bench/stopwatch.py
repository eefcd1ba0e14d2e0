"""stopwatch.py: times programs that run in turn; of the benchmarks in Python."""
import os
import subprocess
import sys

FIRST = []  # the beginning of each timed command

# In a small process: what runs next begins with the memory of whoever starts it, and that counts.
STOPWATCH = r"""
import os, sys, time
null = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
start = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=null)
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
      os.waitstatus_to_exitcode(status))
"""


class Failed(SystemExit):
    """A program that was to be timed ended otherwise than with 0 or 1."""


class Run:
    """One run of a command: seconds by the clock and of processors, largest resident memory of a process in MB."""

    def __init__(self, command):
        out = subprocess.run([*FIRST, sys.executable, "-I", "-S", "-c", STOPWATCH, *command], capture_output=True,
                             text=True)
        if out.returncode:
            raise Failed(f"{command[0]}: {(out.stderr.strip().splitlines() or ['it could not be started'])[-1]}")
        self.clock, self.cpu, self.memory, status = map(float, out.stdout.split())
        if status not in (0, 1):
            raise Failed(f"{command[0]}: status {status:.0f}: {out.stderr.strip()}")


class Best:
    """The least of several runs, each number for itself; of memory the most."""

    def __init__(self, runs):
        self.clock, self.cpu = min(r.clock for r in runs), min(r.cpu for r in runs)
        self.memory = max(r.memory for r in runs)

    def __str__(self):
        return f"{self.clock:7.3f} s ({self.cpu:.3f} of processors)"


def into_cache(*paths):
    for path in paths:
        with open(path, "rb") as f:
            while f.read(1 << 24):
                pass


def busy():
    """What else runs here, in words; empty when hardly anything does."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    return f"the machine was busy before we began (load {load:.1f} on {cores} processors)" if load > 0.3 * cores else ""


def in_turn(commands, repeat):
    """Runs them one after the other, again and again, so that a busy moment meets all of them."""
    runs = [[] for _ in commands]
    for _ in range(repeat):
        for command, list_of in zip(commands, runs):
            list_of.append(Run(command))
    return [Best(r) for r in runs]
