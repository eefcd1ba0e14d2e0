#!/usr/bin/env python3
"""bench_page.py VERNIER [--steps 84] [--repeat 5]: how fast a browser opens the page of a long run.

A model of 80 layers decodes so many tokens: 1203 checkpoints a step. Prints their number, the size of the page, and the
best of the repeats: seconds of the clock from the request to the end of loading, and seconds of processors of the
browser (on a busy machine, the number to trust). The goal: 100,000 checkpoints in less than a second. Exit status 1
when the processors take more.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
SUPPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support")
sys.path.insert(0, SUPPORT)
import browser

GOAL = 1.0
HERE = os.path.dirname(os.path.abspath(__file__))
MODEL, IDS = (os.path.join(HERE, "..", "..", "fixtures", *x) for x in (("qwen2-trained",), ("prompts", "p017.ids")))


def main():
    a = argparse.ArgumentParser()
    a.add_argument("vernier")
    a.add_argument("--steps", type=int, default=84)
    a.add_argument("--repeat", type=int, default=5)
    a = a.parse_args()
    vernier = os.path.abspath(a.vernier)
    program = browser.find()
    if not program:
        sys.exit("bench_page.py: no Chromium (Debian: chromium-headless-shell)")
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        subprocess.run([sys.executable, os.path.join(SUPPORT, "deep_model.py"), MODEL, "80", "deep"], check=True)
        forced = ",".join(str(i) for i in range(1, a.steps + 1))
        for name, *how in ("ref",), ("half", "--precision", "f16"):
            subprocess.run([vernier, "capture", "ref", "deep", "--ids", "@" + IDS, "--force-ids", forced, "-o",
                            name + ".h5", *how],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        subprocess.run([vernier, "compare", "ref.h5", "half.h5", "-q", "-o", "page.html"], stderr=subprocess.DEVNULL,
                       check=False)
        b = browser.Browser(program)
        b.screen(1280, 900)
        clock, processors = [], []
        for _ in range(a.repeat):
            start, before = time.monotonic(), b.processor_seconds()
            b.open("page.html")
            clock.append(time.monotonic() - start)
            processors.append(b.processor_seconds() - before)
            assert not b.complaints, b.complaints
        n = b.ask("document.querySelectorAll('#step option').length - "
                  "1") * b.ask("document.querySelectorAll('#map td[data-at], #strip button').length")
        b.close()
        print(f"{n} checkpoints, {os.path.getsize('page.html') / 1e6:.1f} MB: {min(clock):.2f} s, "
              f"{min(processors):.2f} s of processors")
        os.chdir("/")
    sys.exit(min(processors) > GOAL)


main()
