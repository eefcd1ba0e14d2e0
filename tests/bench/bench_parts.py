#!/usr/bin/env python3
"""bench_parts.py VERNIER [--pairs 8] [--mb 100] [--repeat 3] [--ranks 64]: the pairs of two folders shared by several
processes.

Every process has one thread, and reads the headers of both files of a pair in two child processes. Times compare of two
folders by one process on one processor, by one on all, by two with --part, and by two of mpirun where there is a
vernier_mpi beside VERNIER and an mpirun: best of the repeats. Prints the ratios to one process on all processors, and
to one on one (the goal: two are at least 1.8 times as fast), the largest memory of a process, and whether all summaries
are the same bytes; also with --ranks parts, most of which have nothing to do. Then one process of mpirun is killed,
which must end the run with status 2. Exit status 1 when a goal is not reached. The machine must have two processors to
spare: on a busy one the ratio says nothing.
"""
import argparse, os, shutil, signal, subprocess, sys, tempfile, time

GOAL = 1.8


def memory_of(processes):
    """Waits for all; the largest memory of one in MB, and the seconds of processors of all."""
    most = seconds = 0
    for p in processes:
        _, status, used = os.wait4(p.pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0, p.args
        most = max(most, used.ru_maxrss / 1e3)
        seconds += used.ru_utime + used.ru_stime
    return most, seconds


def main():
    a = argparse.ArgumentParser()
    a.add_argument("vernier")
    a.add_argument("--pairs", type=int, default=8)
    a.add_argument("--mb", type=int, default=100)
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("--ranks", type=int, default=64)
    a.add_argument("--first", action="store_true",
                   help="time with real-time priority (chrt, as root): others on the machine wait")
    a = a.parse_args()
    first = ["chrt", "-r", "1"] if a.first else []
    vernier, good = os.path.abspath(a.vernier), True
    mpi = os.path.join(os.path.dirname(vernier), "vernier_mpi")
    mpirun = ["mpirun", "-n", "2", "--bind-to", "none"] if os.path.exists(mpi) and shutil.which("mpirun") else None
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                      OMPI_MCA_rmaps_base_oversubscribe="1")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        subprocess.run([vernier, "synth", "qwen2-0.5b", "-o", "model", "--layers", "6"], check=True,
                       stdout=subprocess.DEVNULL)
        os.mkdir("refs"), os.mkdir("cands")
        tokens = max(16, a.mb * 1000000 // 1500000)  # 6 layers and logits in float32 and float16: 1.5 MB for each token
        for i in range(a.pairs):
            ids = ",".join(str(17 * t + 3 + i) for t in range(tokens))
            for folder, *how in ("refs",), ("cands", "--precision", "f16"):
                subprocess.run([vernier, "capture", "ref", "model", "--ids", ids, "-o", f"{folder}/{i}.h5", *how],
                               check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        size = sum(os.path.getsize(f"{f}/0.h5") for f in ("refs", "cands")) / 1e6
        print(f"{len(os.sched_getaffinity(0))} processors; {a.pairs} pairs of {size:.0f} MB")

        def compare(*more, program=(vernier,), on=()):
            return subprocess.Popen([*first, *on, *program, "compare", "refs", "cands", "-q", "--threads", "1",
                                     "--force", *more], stdout=subprocess.DEVNULL)

        def parts(n, at_once):
            most = seconds = 0
            for i in range(1, n + 1, at_once):
                now = memory_of([compare("--part", f"{k}/{n}", "--summary", f"part{n}.{k}.json")
                                 for k in range(i, min(i + at_once, n + 1))])
                most, seconds = max(most, now[0]), seconds + now[1]
            return most, seconds

        alone = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        ways = {"one, one processor": lambda: memory_of([compare("--summary", "alone.json", on=alone)]), "one process":
                lambda: memory_of([compare("--summary", "one.json")]), "two, --part": lambda: parts(2, 2)}
        if mpirun:
            ways["two, mpirun"] = lambda: memory_of([compare("--summary", "mpi.json", program=[*mpirun, mpi])])
        best, most, work = {}, {}, {}
        for _ in range(a.repeat):
            for way, run in ways.items():
                start = time.monotonic()
                memory, seconds = run()
                best[way] = min(best.get(way, 1e9), time.monotonic() - start)
                most[way], work[way] = max(most.get(way, 0), memory), min(work.get(way, 1e9), seconds)
        for way, seconds in best.items():
            one, ratio = best["one process"] / seconds, best["one, one processor"] / seconds
            reached = way.startswith("one") or ratio >= GOAL
            good = good and reached
            print(f"{way}: {seconds:.2f} s ({work[way]:.2f} of processors), {one:.2f} and {ratio:.2f} times as fast, "
                  f"{most[way]:.0f} MB{'' if reached else f': LESS than {GOAL}'}")
        if a.ranks != 2:
            parts(a.ranks, 2)
        for n in {2, a.ranks}:
            subprocess.run([vernier, "merge", *[f"part{n}.{i}.json" for i in range(1, n + 1)], "-q", "-o",
                            f"merged{n}.json"], check=True)
        whole = open("one.json", "rb").read()
        same = {f"{n} parts": open(f"merged{n}.json", "rb").read() == whole for n in (2, a.ranks)}
        if mpirun:
            same["mpirun"] = open("mpi.json", "rb").read() == whole
        print("the same bytes as one process:", ", ".join(f"{k} {'yes' if v else 'NO'}" for k, v in same.items()))
        good = good and all(same.values())
        if mpirun:
            run = subprocess.Popen([*mpirun, mpi, "compare", "refs", "cands", "-q", "--threads", "1", "--summary",
                                    "killed.json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(max(0.3, best["two, mpirun"] / 2))
            worker = descendant(run.pid)
            if worker:
                os.kill(worker, signal.SIGKILL)
            said = run.communicate()[1]
            print(f"one killed: status {run.returncode}:",
                  next((l for l in said.splitlines() if "rank" in l), said[:100]))
            good = good and run.returncode == 2
    sys.exit(not good)


def descendant(root):
    """The process that compares, of the last rank: a child of a child of mpirun."""
    for _ in range(2):
        with open(f"/proc/{root}/task/{root}/children", encoding="ascii") as f:
            children = f.read().split()
        if not children:
            return None
        root = int(children[-1])
    return root


main()
