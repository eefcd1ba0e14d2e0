#!/usr/bin/env python3
"""scarcity.py VERNIER [--all] [--jobs N]: every command under a limit on memory (ulimit -v) and on threads (ulimit -u).

A command that has too little ends within seconds, with the right answer, or with exit status 2 and a line that says so,
or, where the loader itself cannot map the libraries, with the loader's 127. It never hangs, never crashes, never calls
a good file damaged, and a file under the name that was asked for opens and holds the right numbers.

--all: limits in smaller steps, and the GPU engine. --jobs: so many commands at a time (default 1), each in a folder of
its own.
"""
import argparse
import concurrent.futures
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARSER = argparse.ArgumentParser(description=__doc__.splitlines()[0])
PARSER.add_argument("vernier")
PARSER.add_argument("--all", action="store_true")
PARSER.add_argument("--jobs", type=int, default=1)
OPTIONS = PARSER.parse_args()
VERNIER = os.path.abspath(OPTIONS.vernier)
ALL = OPTIONS.all
SECONDS = 30  # the longest takes 0.3 s alone; the machine may be busy
USER = 64999  # one without processes: ulimit -u counts all of a user's. One job has this, the next the one below
IDS = ["--ids", "1,2,3,4,5"]

MEMORY = [20, 30, 40, 60, 80, 100, 130, 160, 200, 300, 400, 600, 1000, 2100, 4000]  # MB
THREADS = [1, 2, 4, 8]
if ALL:
    MEMORY = sorted(set(MEMORY + list(range(20, 200, 5)) + list(range(200, 1000, 40)) + [1250, 1500, 1750, 2000, 2500]))
    THREADS = list(range(1, 20))


class Command:
    def __init__(self, *arguments, writes=None):
        self.arguments, self.writes = list(arguments), writes
        self.seen = {}


def commands():
    table = [
        Command("--version"),
        Command("help", "compare"),
        Command("points", "model"),
        Command("limits", "fp32.yaml"),
        Command("show", "ref.h5"),
        Command("show", "ref.h5", "--check"),
        Command("compare", "ref.h5", "cand.h5", "--threads", "1"),
        Command("compare", "ref.h5", "cand.h5", "--threads", "16"),
        Command("compare", "ref.h5", "part.h5"),
        Command("compare", "ref.h5", "part.h5", "--trust-digests"),
        Command("compare", "ref.h5", "cand.h5", "--model", "model", "--threads", "2"),
        Command("explain", "ref.h5", "cand.h5", "--model", "model", "--threads", "2"),
        Command("weights", "model", "model"),
        Command("import", "dump.npz", "-o", "new.h5", *IDS, writes="new.h5"),
        Command("calibrate", "ref.h5", "cand.h5", "-o", "new.yaml", writes="new.yaml"),
        Command("evaluate", "model", *IDS, "--candidate", "ref", "--threads", "2"),
        Command("capture", "ref", "model", *IDS, "--threads", "1", "-o", "new.h5", writes="new.h5"),
        Command("capture", "ref", "model", *IDS, "--threads", "2", "-o", "new.h5", writes="new.h5"),
        Command("capture", "ref", "model", *IDS, "--threads", "16", "-o", "new.h5", writes="new.h5"),
        Command("capture", "ref", "model", *IDS, "--precision", "f16", "--inject", "R1@layer1", "--against", "ref.h5",
                "-o", "new.h5", writes="new.h5"),
        Command("capture", "ref", "model", "--like", "ref.h5", "-o", "new.h5", writes="new.h5"),
    ]
    if ALL:
        table += [
            Command("compare", "ref.h5", "cand.h5", "other.h5", "--format", "markdown"),
            Command("compare", "--vote", "ref.h5", "cand.h5", "other.h5"),
            Command("table", "ref.h5", "cand.h5", "--format", "html"),
            Command("evaluate", "--recordings", "ref.h5", "cand.h5"),
            Command("isolate", "model", *IDS, "--inject", "R1@layer1.q_rope"),
            Command("devices"),
            Command("show", "ref.h5", "logits", "--values", "new.csv", "--force", writes="new.csv"),
            Command("merge", "part1.json", "part2.json"),
            Command("report", "report.json", "--format", "html"),
            Command("synth", "tiny", "-o", "new"),
            Command("import", "dump.npz", "--dry-run", *IDS),
            Command("capture", "gpu", "model", *IDS, "-o", "new.h5", writes="new.h5"),
            Command("capture", "gpu", "model", *IDS, "--force-ref", "layer1.*", "-o", "new.h5", writes="new.h5"),
        ]
    return table


def run(arguments, memory=None, threads=None):
    """(exit status or None where it hung, stdout, stderr)."""
    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory << 20, memory << 20))
        if threads:
            resource.setrlimit(resource.RLIMIT_NPROC, (threads, threads))
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    child = subprocess.Popen([VERNIER, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE,
                             preexec_fn=limit, start_new_session=True, text=True)
    try:
        out, err = child.communicate(timeout=SECONDS)
        return child.returncode, out, err
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, 9)
        child.communicate()
        return None, "", ""


def content(name):
    """What a written file says, without what differs from run to run."""
    if not name.endswith(".h5"):
        return open(name).read()
    status, out, err = run(["show", name, "--format", "json"])
    if status:
        return f"does not open: {err}"
    told = json.loads(out)
    # of the numbers: the list repeats the digests of the file
    checked = run(["show", name, "--check"])[1].splitlines()[-1:]
    if checked and "digest" in checked[0] and not checked[0].endswith(" 0 wrong"):
        return f"numbers without their digest: {checked[0]}"
    return [(t["name"], t.get("step"), t.get("digest")) for t in told["tensors"]]


def answer(command, **limits):
    if command.writes and os.path.exists(command.writes):
        os.unlink(command.writes)
    shutil.rmtree("new", ignore_errors=True)  # the model of synth
    status, out, err = run(command.arguments, **limits)
    written = content(command.writes) if command.writes and os.path.exists(command.writes) else None
    return status, out, err, written


def wrong(got, right):
    """What is wrong with an answer, or None. right: without a limit."""
    status, out, err, written = got
    if status is None:
        return f"has not ended after {SECONDS} s"
    if status < 0 or status not in (right[0], 2, 127):
        return f"exit status {status}: {err.strip()[-300:]}"
    if status == right[0]:
        if out != right[1]:
            return "ends well with another text on standard output"
        return None if written == right[3] else "ends well with another file"
    if "damaged" in err:
        return f"says that a good file is damaged: {err.strip()[-300:]}"
    if written is not None and written != right[3]:
        return f"fails and leaves a file under the name asked for: {str(written)[:200]}"
    if status == 127:
        return None if "error while loading shared libraries" in err else f"exit status 127: {err.strip()[-300:]}"
    # OpenMP says its own beside
    lines = [line for line in err.splitlines() if line and not line.startswith("libgomp: ")]
    return (None if len(lines) == 1 and lines[0].startswith("vernier") else f"exit status 2 and not one line: "
            f"{err.strip()[-300:]!r}")


def sweep(command, limits, unit):
    """How many answers of a command are wrong."""
    right, bad, ended, longest = answer(command), 0, {}, 0.0
    if right[0] not in (0, 1):
        sys.exit(f"{' '.join(command.arguments)}: exit status {right[0]} without a limit: {right[2]}")
    for limit in limits:
        start = time.monotonic()
        got = answer(command, **{unit: limit})
        longest = max(longest, time.monotonic() - start)
        ended.setdefault(got[0], []).append(limit)
        what = wrong(got, right)
        if what:
            print(f"{unit} {limit}: vernier {' '.join(command.arguments)}: {what}")
            bad += 1
    told = ", ".join(f"status {status} at {min(at)}-{max(at)}" for status, at in ended.items())
    print(f"{unit:8} {' '.join(command.arguments):78} {told}; longest {longest:.2f} s", flush=True)
    return bad


def sweep_in(folder, made, command, job):
    """Every limit of one command, in a folder of its own beside what was made for all."""
    global user, VERNIER
    user = USER - job
    VERNIER = os.path.join(made, os.path.basename(VERNIER))
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    os.chdir(folder)
    os.environ["TMPDIR"] = folder
    for name in os.listdir(made):
        os.symlink(os.path.join(made, name), name)
    bad = sweep(command, MEMORY, "memory")
    return bad + (sweep(command, THREADS, "threads") if os.getuid() == 0 else 0)


def main():
    global VERNIER
    top = tempfile.mkdtemp(prefix="vernier-scarcity-")
    folder = os.path.join(top, "made")
    try:
        os.mkdir(folder)
        os.chmod(top, 0o755)
        os.chdir(folder)
        VERNIER = shutil.copy(VERNIER, folder)  # the user of the threads' part may not enter the folder of the build
        shutil.copytree(os.path.join(SOURCE, "fixtures", "qwen2-trained"), "model")
        for made in (["capture", "ref", "model", *IDS, "-o", "ref.h5"],
                     ["capture", "ref", "model", *IDS, "--precision", "f16", "-o", "cand.h5"],
                     ["capture", "ref", "model", *IDS, "--inject", "R1@layer1", "--against", "ref.h5", "-o", "part.h5"],
                     ["capture", "ref", "model", *IDS, "--precision", "bf16", "-o", "other.h5"]):
            subprocess.run([VERNIER, *made], check=True, stderr=subprocess.DEVNULL)
        for side, name in ("refs", "ref.h5"), ("cands", "cand.h5"):
            os.mkdir(side)
            for k in range(2):
                shutil.copy(name, f"{side}/{k}.h5")
        for part in 1, 2:
            subprocess.run([VERNIER, "compare", "refs", "cands", "-q", "--part", f"{part}/2", "--summary",
                            f"part{part}.json"], check=True)
        subprocess.run([VERNIER, "compare", "ref.h5", "cand.h5", "-q", "-o", "report.json"], check=False)
        import numpy
        numpy.savez("dump.npz", **{f"layer{i}.attn_out": numpy.ones((5, 8), "float32") for i in range(20)})
        if os.getuid() != 0:
            print("threads: not tried: the limit does not bind this user alone (run as root)")
        with concurrent.futures.ProcessPoolExecutor(OPTIONS.jobs) as pool:
            bad = sum(one.result() for one in [pool.submit(sweep_in, os.path.join(top, str(i)), folder, c, i) for i,
                                               c in enumerate(commands())])
    finally:
        os.chdir("/")
        shutil.rmtree(top)
    print(f"scarcity: {bad} wrong")
    return bad != 0


if __name__ == "__main__":
    sys.exit(main())
