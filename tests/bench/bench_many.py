#!/usr/bin/env python3
"""bench_many.py VERNIER [--tokens 128] [--layers N] [--repeat 5] [--first]: four candidates against the time of one.

Records synth qwen2-0.5b in float32, and as candidates a (float16), b and c (float16 with a mistake) and d (bfloat16).
Times compare of each candidate alone and of all four, in turn, with the files in the page cache: best of the repeats,
seconds of the clock and of processors, largest memory of a process. A mistake makes a comparison longer, so four are
divided by the mean of each alone and by the fastest alone. The goal: at most 2.8 times the fastest. Exit status 1 when
not reached.
"""
import argparse, os, resource, subprocess, sys, tempfile, time

GOAL = 2.8
FIRST = []  # the beginning of each timed command


def timed(*command):
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.Popen([*FIRST, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(done.pid, 0)
    clock = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert os.waitstatus_to_exitcode(status) in (0, 1), command
    return clock, after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, used.ru_maxrss / 1e3


def main():
    a = argparse.ArgumentParser()
    a.add_argument("vernier")
    a.add_argument("--tokens", type=int, default=128)
    a.add_argument("--layers", default=None)
    a.add_argument("--repeat", type=int, default=5)
    a.add_argument("--first", action="store_true",
                   help="time with real-time priority (chrt, as root): others on the machine wait")
    a = a.parse_args()
    FIRST.extend(("chrt", "-r", "1") if a.first else ())
    vernier = os.path.abspath(a.vernier)
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        subprocess.run([vernier, "synth", "qwen2-0.5b", "-o", "model", *(["--layers", a.layers] if a.layers else [])],
                       check=True, stdout=subprocess.DEVNULL)
        ids = ",".join(str(17 * i + 3) for i in range(a.tokens))
        for name, *how in (("ref",), ("a", "--precision", "f16"), ("b", "--precision", "f16", "--inject", "R1@layer3"),
                           ("c", "--precision", "f16", "--inject", "N1.1e-5@layer2"), ("d", "--precision", "bf16")):
            subprocess.run([vernier, "capture", "ref", "model", "--ids", ids, "-o", name + ".h5", *how], check=True,
                           stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        print("%d processors; ref.h5 %.0f MB, each candidate %.0f MB"
              % (len(os.sched_getaffinity(0)), os.path.getsize("ref.h5") / 1e6, os.path.getsize("a.h5") / 1e6))
        best = {}
        for _ in range(a.repeat):
            for what in *"abcd", "abcd":
                t = timed(vernier, "compare", "ref.h5", *(name + ".h5" for name in what), "-q")
                best[what] = min(best.get(what, t), t)
        for what, (clock, cpu, memory) in best.items():
            print(f"{what}: {clock:.3f} s, {cpu:.3f} s of processors, {memory:.0f} MB in a process")
        four, alone = best.pop("abcd"), list(best.values())
        total, mean, least = ([f(t[i] for t in alone) for i in (0, 1)] for f in (sum, lambda x: sum(x) / 4, min))
        for what, (clock, cpu) in ("all four alone",
                                   total), ("the mean of the four alone", mean), ("the fastest alone", least):
            print(f"four candidates in one report take {four[0] / clock:.2f} times {what} ({four[1] / cpu:.2f} of "
                  f"processors)")
        ratio = four[0] / least[0]
        print(f"goal: at most {GOAL} times the fastest: {'reached' if ratio <= GOAL else 'MISSED'}")
        sys.exit(ratio > GOAL)


main()
