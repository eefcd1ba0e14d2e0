#!/usr/bin/env python3
"""kills.py VERNIER [--all] [--only NAME] [--jobs N]: kill -9, at any moment, over every command that writes files.

A command is killed before its n-th call that changes a file (a library laid over it counts them: write, pwrite, rename,
link, unlink, mkdir, ftruncate, fsync, fclose), for n from the first to the last, and after random times. The call may
be one of a child process; it is killed alone, or with all processes of the command. After each kill
  - nothing of the command still runs,
  - a file under a name that was asked for is whole: the same as of the undisturbed command,
  - what is left beside has one of the documented names, PATH.partial or PATH.PID.partial (PATH.old: a model being
    replaced), and a recording that was being written opens,
  - the command run again succeeds, over what is left.
An engine that records by vernier_capture.h is killed in a silence after its last tensor, too: all of them are in the
file after 0.5 s (on a busy machine, some seconds).

--all: 500 kills and more, the GPU engine among what is killed. --only: the commands whose names contain NAME.
--jobs N: run N commands at a time (default 1), each in a folder of its own.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import sessions

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PARSER = argparse.ArgumentParser(description=__doc__.splitlines()[0])
PARSER.add_argument("vernier")
PARSER.add_argument("--all", action="store_true")
PARSER.add_argument("--only", default="")
PARSER.add_argument("--jobs", type=int, default=1)
OPTIONS = PARSER.parse_args()
VERNIER = os.path.abspath(OPTIONS.vernier)
ALL = OPTIONS.all
IDS = ["--ids", "1,2,3,4,5"]

COUNTER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Shared by a process, the children that it forks, and the script. */
static struct { atomic_long n, reached; } *shared;
static long when = -1, all;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("KILL_AT");
	const int   fd = open(getenv("KILL_COUNT"), O_RDWR | O_CREAT, 0600);
	when = at ? atol(at) : -1;
	all = getenv("KILL_ALL") != NULL;
	if (fd < 0 || syscall(77 /* ftruncate */, fd, 4096L) != 0)
		_exit(99);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

static void count(void)
{
	if (!shared || atomic_fetch_add(&shared->n, 1) != when)
		return;
	shared->reached = 1;
	while (all) /* waits for the script, which kills all: a child in its sandbox may not */
		;
	kill(getpid(), SIGKILL);
}

#define OVER(type, name, params, args) \
	type name params { \
		static type (*real) params; \
		if (!real) real = (type (*) params)dlsym(RTLD_NEXT, #name); \
		count(); \
		return real args; \
	}
OVER(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
OVER(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t at), (fd, p, n, at))
OVER(ssize_t, pwrite64, (int fd, const void *p, size_t n, off64_t at), (fd, p, n, at))
OVER(int, rename, (const char *a, const char *b), (a, b))
OVER(int, renameat2, (int d, const char *a, int e, const char *b, unsigned f), (d, a, e, b, f))
OVER(int, link, (const char *a, const char *b), (a, b))
OVER(int, unlink, (const char *a), (a))
OVER(int, rmdir, (const char *a), (a))
OVER(int, mkdir, (const char *a, mode_t m), (a, m))
OVER(int, ftruncate, (int fd, off_t n), (fd, n))
OVER(int, ftruncate64, (int fd, off64_t n), (fd, n))
OVER(int, fsync, (int fd), (fd))
OVER(int, fdatasync, (int fd), (fd))
OVER(int, fclose, (FILE *f), (f))
"""


# an engine that writes by vernier_capture.h
NAMES = os.path.join(os.path.dirname(os.path.dirname(VERNIER)), "tests", "bench_names")


class Command:
    def __init__(self, name, arguments, program=VERNIER):
        self.name, self.line = name, [program, *arguments]


def commands():
    table = [
        Command("capture ref", ["capture", "ref", "model", *IDS, "--decode", "3", "-o", "out/a.h5", "--force"]),
        Command("capture --against", ["capture", "ref", "model", *IDS, "--precision", "f16", "--inject", "R1@layer1",
                                      "--against", "ref.h5", "-o",
                                      "out/a.h5", "--force"]),
        Command("capture --prompts", ["capture", "ref", "model", "--prompts", "prompts.jsonl", "-o", "out", "--force"]),
        Command("import .npz", ["import", "dump.npz", *IDS, "-o", "out/a.h5", "--force"]),
        Command("import many", ["import", "many.npz", *IDS, "-o", "out/a.h5", "--force", "--unmapped", "keep"]),
        Command("compare", ["compare", "ref.h5", "cand.h5", "--force", "-q", "-o", "out/r.json", "-o", "out/r.xml",
                            "-o", "out/r.md",
                            "-o", "out/r.html"]),
        Command("compare --model", ["compare", "ref.h5", "cand.h5", "--model", "model", "--force", "-q", "-o",
                                    "out/r.json"]),
        Command("compare folders", ["compare", "refs", "cands", "--force", "-q", "-o", "out/r.json"]),
        Command("calibrate", ["calibrate", "ref.h5", "cand.h5", "-o", "out/l.yaml", "--force"]),
        Command("synth", ["synth", "tiny", "-o", "out/m", "--force"]),
        Command("compare --part", ["compare", "refs", "cands", "--force", "-q", "--part", "1/2", "--summary",
                                   "out/s.json"]),
        Command("merge", ["merge", "part1.json", "part2.json", "--force", "-o", "out/r.json"]),
        Command("report", ["report", "report.json", "--force", "-o", "out/r.html"]),
        Command("compare many", ["compare", "ref.h5", "cand.h5", "other.h5", "--force", "-q", "-o", "out/r.json", "-o",
                                 "out/r.html"]),
        Command("table", ["table", "ref.h5", "cand.h5", "--force", "-o", "out/t.html"]),
        Command("show", ["show", "ref.h5", "--force", "-o", "out/s.json"]),
        Command("weights", ["weights", "model", "model", "--force", "-o", "out/w.json"]),
        Command("show --values", ["show", "ref.h5", "logits", "--force", "--values", "out/v.txt"]),
        Command("isolate", ["isolate", "model", *IDS, "--inject", "R1@layer1.q_rope", "--force", "-o", "out/i.txt"]),
        Command("evaluate", ["evaluate", "model", *IDS, "--candidate", "ref", "--decode", "2", "--format", "json", "-o",
                             "out/e.json", "--force"]),
    ]
    if os.path.exists(NAMES):
        table.append(Command("C API, steps", ["out/a.h5", "4", "150", "1"], NAMES))
        table.append(Command("C API, flat", ["out/a.h5", "400", "3", "1", "flat"], NAMES))
    if ALL:
        table.append(Command("capture gpu", ["capture", "gpu", "model", *IDS, "-o", "out/a.h5", "--force"]))
    return [command for command in table if OPTIONS.only in command.name]


def quietly(arguments, **more):
    return subprocess.run([VERNIER, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, **more)


def content(path):
    """What a file says, without what two runs of one command differ in: times, and the process's number."""
    if os.path.isdir(path):
        return [(name, content(os.path.join(path, name))) for name in sorted(os.listdir(path))]
    if path.endswith((".h5", ".h5.partial")):
        shown = quietly(["show", path, "--format", "json"])
        if shown.returncode:
            return "does not open: " + shown.stderr.decode()
        told = json.loads(shown.stdout)
        # The list repeats the digests of the file; here the numbers are read, too.
        wrong = re.search(r"(\d+) digests?, [1-9]\d* wrong", quietly(["show", path, "--check"]).stdout.decode())
        if wrong:
            return f"numbers without their digest: {wrong[0]}", [("a wrong one",)], None
        return told["complete"], [(t["name"], t.get("step"), t.get("digest"))
                                  for t in told["tensors"]], told.get("left_out")
    with open(path, "rb") as f:
        text = f.read().decode(errors="replace")
    return re.sub(r'("?(seconds|created|measured_s|ms)"?: *)[0-9.e+-]+', r"\1",
                  text) if not path.endswith((".safetensors",)) else text


def all_content():
    return {name: content(os.path.join("out", name)) for name in sorted(os.listdir("out"))}


class Tally:
    def __init__(self):
        self.kills, self.bad, self.left, self.states = 0, 0, collections.Counter(), collections.Counter()

    def add(self, other):
        self.kills += other.kills
        self.bad += other.bad
        self.left += other.left
        self.states += other.states

    def wrong(self, command, how, what):
        self.bad += 1
        print(f"{command.name}, killed {how}: {what}", flush=True)


def begin_empty():
    shutil.rmtree("out", ignore_errors=True)
    shutil.rmtree("tmp", ignore_errors=True)
    os.mkdir("out")
    os.mkdir("tmp")


def begin(command, environment):
    begin_empty()
    return subprocess.Popen(command.line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env={**os.environ, **environment}, start_new_session=True)


def end(child, seconds=60):
    """Exit status of what was begun, and whether anything of its session outlives it."""
    child.stderr.read()
    return sessions.end(child, seconds)


def check_after(command, how, status, orphans, right, tally):
    if status is None:
        tally.wrong(command, how, "the rest of it did not end")
    if orphans:
        tally.wrong(command, how, f"still running: {orphans}")
    for name, now in all_content().items():
        if name in right:
            tally.states["whole"] += 1
            # If only a reader was killed, a report on several recordings says so about that
            # recording.
            if now != right[name] and not (status == 2 and re.search("trouble|not compared", str(now))):
                tally.wrong(command, how, f"{name} is not whole: {str(now)[:200]}")
            continue
        pattern = re.sub(r"\.\d+\.", ".PID.", name)
        tally.left[pattern] += 1
        base = re.sub(r"(\.\d+)?\.(partial|old)$", "", name)
        if base not in right or base == name:
            tally.wrong(command, how, f"an unknown name is left: {name}")
        if name.endswith(".h5.partial"):
            path = os.path.join("out", name)
            begun = os.path.getsize(path) > 0
            said = quietly(["show", path, "--format", "json"])
            tally.states["partial, opens" if begun else "partial, not begun"] += 1
            if begun and said.returncode:
                tally.wrong(command, how, f"{name} does not open: {said.stderr.decode().strip()}")
            elif begun and not set(content(path)[1]) <= set(right[base][1]):
                tally.wrong(command, how, f"{name} holds a tensor that is not the right one")
            elif begun and json.loads(said.stdout)["complete"]:
                tally.states["partial, whole but for its name"] += 1
                if content(path) != right[base]:
                    tally.wrong(command, how, f"{name} says that it is complete, and is not")
                refused = subprocess.run(command.line, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         stdin=subprocess.DEVNULL)
                if refused.returncode == 0 or not os.path.exists(path) or content(path) != right[base]:
                    tally.wrong(command, how, f"{name} is complete, and was not kept")
                if os.path.exists(path):
                    os.remove(path)  # as the refusal says, so that the command can be run again
    for name in os.listdir("tmp"):
        tally.left["TMPDIR/" + re.sub(r"[-.][A-Za-z0-9]{6}$", ".XXXXXX", name)] += 1
    again = subprocess.run(command.line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                           env={**os.environ, "TMPDIR": os.path.abspath("tmp")})
    if again.returncode not in (0, 1):
        tally.wrong(command, how, f"run again: exit status {again.returncode}: {again.stderr.decode().strip()[-300:]}")
    elif any(content(os.path.join("out", name)) != right[name] for name in right):
        tally.wrong(command, how, "run again: other files")


def kill_each(command, library, budget, tally):
    environment = {"TMPDIR": os.path.abspath("tmp"), "LD_PRELOAD": library, "KILL_COUNT": os.path.abspath("count")}

    def run(at, together=False):
        with open("count", "wb") as f:
            f.truncate(4096)
        more = {} if at is None else {"KILL_AT": str(at), **({"KILL_ALL": "1"} if together else {})}
        start = time.monotonic()
        child = begin(command, {**environment, **more})
        while together and not reached() and not os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            time.sleep(0.001)
        if together:
            os.killpg(child.pid, signal.SIGKILL)
        status, orphans = end(child)
        return status, orphans, time.monotonic() - start

    def reached():
        with open("count", "rb") as f:
            return any(f.read(16)[8:])

    status, orphans, seconds = run(None)
    right = all_content()
    if status not in (0, 1) or orphans or not right:
        sys.exit(f"{command.name}: exit status {status} undisturbed")
    with open("count", "rb") as f:
        calls = int.from_bytes(f.read(8), "little")
    # All at once near the beginning too, when a file is there that does not say yet what it is.
    moments = [(at, False) for at in random.sample(range(calls), min(budget, calls))]
    moments += [(at, True) for at in range(min(45 if ALL else 3, calls))]
    for at, together in moments:
        status, orphans, _ = run(at, together)
        tally.kills += 1
        how = f"{'with all processes, ' if together else ''}before call {at} of {calls}"
        check_after(command, how, status, orphans, right, tally)
    timed = max(budget // 4, 55 - budget if ALL else 1)
    for _ in range(timed):
        after = random.uniform(0, seconds)
        child = begin(command, {"TMPDIR": os.path.abspath("tmp")})
        time.sleep(after)
        os.kill(child.pid, signal.SIGKILL)  # send_signal would wait for a child that has ended
        tally.kills += 1
        check_after(command, f"after {after:.3f} s", *end(child), right, tally)
    silences = 0
    if command.line[0] == NAMES:
        silences = 10 if ALL else 2
        for _ in range(silences):
            kill_in_silence(command, right, tally)
    print(f"{command.name:16} {calls:5} calls, {len(moments)} killed before one of them, {timed} after a time, "
          f"{silences} in a silence", flush=True)
    return tally


def kill_in_silence(command, right, tally):
    """Kills the engine when it has done nothing for a while: everything that it put is in the file."""
    begin_empty()
    child = subprocess.Popen([*command.line, "silent"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, start_new_session=True)
    child.stdout.readline()
    put, waited = right["a.h5"][1], 0
    while waited == 0 or (waited < 20 and content("out/a.h5.partial")[1] != put):
        time.sleep(0.5)
        waited += 1
    os.kill(child.pid, signal.SIGKILL)
    status, orphans = end(child)
    tally.kills += 1
    there = content("out/a.h5.partial")[1]
    if there != put:
        tally.wrong(command, "in a silence", f"{len(there)} of {len(put)} tensors are in the file")
    check_after(command, "in a silence", status, orphans, right, tally)


def kill_in(folder, made, command, seed):
    """Kills one command in a folder of its own, beside what was made for all."""
    random.seed(seed)
    os.mkdir(folder)
    os.chdir(folder)
    for name in os.listdir(made):
        os.symlink(os.path.join(made, name), name)
    return kill_each(command, os.path.abspath("count.so"), 45 if ALL else 2, Tally())


def main():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    top = tempfile.mkdtemp(prefix="vernier-kills-")
    folder = os.path.join(top, "made")
    tally = Tally()
    try:
        os.mkdir(folder)
        os.chdir(folder)
        with open("count.c", "w") as f:
            f.write(COUNTER)
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "count.c", "-o", "count.so", "-ldl"], check=True)
        os.symlink(os.path.join(SOURCE, "fixtures", "qwen2-trained"), "model")
        for name, precision in ("ref.h5", "f32"), ("cand.h5", "f16"):
            subprocess.run([VERNIER, "capture", "ref", "model", *IDS, "--precision", precision, "-o", name], check=True,
                           stderr=subprocess.DEVNULL)
        for side, name in ("refs", "ref.h5"), ("cands", "cand.h5"):
            os.mkdir(side)
            for k in range(3):
                shutil.copy(name, f"{side}/{k}.h5")
        shutil.copy("cand.h5", "other.h5")
        with open("prompts.jsonl", "w") as f:
            f.write('{"name": "a", "ids": [5, 6], "decode": 1}\n{"name": "b", "ids": [7, 8, 9]}\n')
        for part in 1, 2:
            quietly(["compare", "refs", "cands", "-q", "--part", f"{part}/2", "--summary", f"part{part}.json"])
        quietly(["compare", "ref.h5", "cand.h5", "-q", "-o", "report.json"])
        import numpy
        numpy.savez("dump.npz", **{f"layer{i}.attn_out": numpy.ones((5, 8), "float32") for i in range(20)})
        numpy.savez("many.npz", **{f"t{i}": numpy.ones(2, "float32") for i in range(1500)})
        with concurrent.futures.ProcessPoolExecutor(OPTIONS.jobs) as pool:
            begun = [pool.submit(kill_in, os.path.join(top, str(i)), folder, command, f"{seed} {command.name}") for i,
                     command in enumerate(commands())]
            for one in begun:
                tally.add(one.result())
    finally:
        os.chdir("/")
        shutil.rmtree(top)
    print("left behind:", ", ".join(f"{name} {n}" for name, n in sorted(tally.left.items())) or "nothing")
    print("recordings:", ", ".join(f"{state} {n}" for state, n in sorted(tally.states.items())))
    print(f"kills: {tally.kills}, wrong: {tally.bad} (SEED={seed})")
    return tally.bad != 0


if __name__ == "__main__":
    sys.exit(main())
