#!/usr/bin/env python3
"""fault_sweep.py VERNIER SHIM [--sample N] [--seed S] [--part K/N] [--own] [--command NAME] [--call NAME] [--jobs N]
[--all] [--budget SECONDS]

Runs commands of VERNIER again and again, and lets one call fail each time: the n-th malloc, the n-th read, the n-th
rename... (SHIM is built of fault_shim.c), once or from there on, with forked processes or without. After each run:

  - the exit status is the undisturbed one or 2, within a time limit, and no signal ended it; it is the undisturbed one
    after a call that only did less than was asked (read_part) or was interrupted (read_again)
  - with 2 there is a line on stderr, and not a page, and no verdict on the standard output but the undisturbed one
  - otherwise the standard output is the undisturbed one, and every output file is there
  - an output file that is there is the undisturbed one: reports byte for byte, recordings in every number and attribute
  - nothing else is left behind but an incomplete recording under its temporary name, which opens (specs/checkpoint.md),
    and what stderr says could not be removed
  - no process is left

Every command of `vernier --help`, and every form of its report, must have a row in COMMANDS.

Calls that a Vulkan driver makes do not fail (fault_shim.c): those of the Vulkan loader do.

Prints counts by command and by call; status 1 where anything was found. --sample: how many runs in all, spread over
commands and calls (default 20000); --all: every call of every command; --part: the K-th of N processes that share them,
for machines of more cores than one Python can serve. --own: only calls that VERNIER itself makes, not its libraries.
--budget: ends after so many seconds. A finding prints what repeats it.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time

import sessions

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures")
MODEL = os.path.join(FIXTURES, "qwen2-trained")
VOLATILE = {"created", "device_ms"}
HANG_S = 60
# of stderr (of two pairs of two candidates and a summary, one each), beyond the undisturbed run's:
# a library's own words, and ours
MOST_LINES = 5
OUTCOMES = "right", "refused", "crash", "hang", "wrong", "leftover", "mute"

# name: arguments, output files. IN: the folder of what was made before.
COMMANDS = {
    "capture": ("capture ref MODEL --ids 5,6,7 -o out.h5", ["out.h5"]),
    "capture_text": ("capture ref MODEL --prompt of --decode 2 --precision f16 -o out.h5", ["out.h5"]),
    "capture_prompts": ("capture ref MODEL --prompts IN/prompts.jsonl -o out", ["out", "out/a.h5", "out/b.h5"]),
    "capture_against": ("capture ref MODEL --ids 5,6,7 --precision f16 --inject R1@layer1 --against IN/ref.h5 -o "
                        "out.h5", ["out.h5"]),
    "capture_follow": ("capture ref MODEL --ids-from IN/step.h5 --force-ids-from IN/step.h5 --limits IN/limits.yaml "
                       "--against IN/step.h5 -o out.h5",
                       ["out.h5"]),
    "capture_points": ("capture ref FIXTURES/gpt2-trained --ids 5,6,7 --points * --threads 2 -o out.h5", ["out.h5"]),
    "capture_hybrid": ("capture ref FIXTURES/qwen3_5_text-trained --ids 5,6 --points *.output -o out.h5", ["out.h5"]),
    "capture_gguf": ("capture ref FIXTURES/gguf/qwen2-trained.q8_0.gguf --ids 5,6 --points *.output -o out.h5",
                     ["out.h5"]),
    "capture_gpu": ("capture gpu MODEL --ids 5,6 --points *.output -o out.h5", ["out.h5"]),
    "compare": ("compare IN/ref.h5 IN/half.h5", []),
    "compare_bad": ("compare IN/ref.h5 IN/bad.h5 --all", []),
    "compare_against": ("compare IN/ref.h5 IN/part.h5", []),
    "compare_trust": ("compare IN/ref.h5 IN/bad.h5 --trust-digests", []),
    "compare_text": ("compare IN/ref.h5 IN/bad.h5 --format text", []),
    "compare_json": ("compare IN/ref.h5 IN/bad.h5 --format json", []),
    "compare_junit": ("compare IN/ref.h5 IN/bad.h5 --format junit", []),
    "compare_markdown": ("compare IN/ref.h5 IN/bad.h5 --format markdown", []),
    "compare_html": ("compare IN/ref.h5 IN/bad.h5 --format html", []),
    "compare_csv": ("compare IN/ref.h5 IN/bad.h5 --format csv -o r.csv", ["r.csv"]),
    "compare_bitwise": ("compare IN/half.h5 IN/half2.h5 --bitwise", []),
    "compare_floor": ("compare IN/ref.h5 IN/bad.h5 --floor IN/half.h5 --allow precision", []),
    "compare_reports": ("compare IN/ref.h5 IN/bad.h5 --model MODEL --explain -o r.html -o r.xml -o r.md -o r.json",
                        ["r.html", "r.xml", "r.md", "r.json"]),
    "compare_many": ("compare IN/ref.h5 IN/bad.h5 IN/half.h5 -o r.json -o r.md", ["r.json", "r.md"]),
    "compare_many_folders": ("compare IN/good IN/other IN/well -o r.json --summary s.json",
                             ["r.0.json", "r.1.json", "s.json"]),
    "compare_many_ranks": ("compare IN/ref.h5 --shard IN/rank0.h5,IN/rank1.h5 IN/half.h5 -o r.json", ["r.json"]),
    "compare_vote": ("compare --vote IN/ref.h5 IN/bad.h5 IN/half.h5", []),
    "table": ("table IN/ref.h5 IN/bad.h5 -o t.csv", ["t.csv"]),
    "table_text": ("table IN/ref.h5 IN/bad.h5", []),
    "table_markdown": ("table IN/ref.h5 IN/bad.h5 --format markdown", []),
    "table_html": ("table IN/ref.h5 IN/bad.h5 IN/half.h5 --format html", []),
    "table_json": ("table IN/ref.h5 IN/bad.h5 IN/half.h5 --format json", []),
    "show_values": ("show IN/ref.h5 logits --values v.txt", ["v.txt"]),
    "show_values_npy": ("show IN/ref.h5 logits --values v.npy", ["v.npy"]),
    "compare_baseline": ("compare IN/ref.h5 IN/bad.h5 --baseline IN/bad.json", []),
    "compare_folders": ("compare IN/good IN/other", []),
    "compare_folders_json": ("compare IN/good IN/well -o r.json", ["r.0.json", "r.1.json"]),
    "compare_part": ("compare IN/good IN/other --part 1/2 --summary s.json", ["s.json"]),
    "merge": ("merge IN/part1.json IN/part2.json -o s.json", ["s.json"]),
    "report": ("report IN/bad.json -o r.html", ["r.html"]),
    "report_text": ("report IN/bad.json", []),
    "report_json": ("report IN/bad.json --format json", []),
    "report_junit": ("report IN/bad.json --format junit", []),
    "report_markdown": ("report IN/bad.json --format markdown", []),
    "report_csv": ("report IN/bad.json --format csv", []),
    "compare_packed": ("compare IN/ref.h5 IN/packed.h5 --threads 1", []),
    "compare_ranks": ("compare IN/ref.h5 --shard IN/rank0.h5 IN/rank1.h5", []),
    "compare_names": ("compare IN/ref.h5 FIXTURES/foreign/llama.cpp-qwen2.h5 --names llama.cpp --allow "
                      "token_ids,weights,config,missing", []),
    "import_npz": ("import IN/a.npz --ids 5,6,7 --precision f32 -o out.h5", ["out.h5"]),
    "import_deflated": ("import IN/b.npz --ids 5,6,7 --precision f32 -o out.h5", ["out.h5"]),
    "import_txt": ("import IN/txt --ids 5,6,7 --precision f32 -o out.h5", ["out.h5"]),
    "import_npy": ("import IN/npy --ids 5,6,7 --precision f32 -o out.h5", ["out.h5"]),
    "import_safetensors": ("import IN/a.safetensors --ids 5,6,7 --precision f32 -o out.h5", ["out.h5"]),
    "import_gguf": ("import IN/a.gguf --ids 5,6,7 --precision f32 -o out.h5", ["out.h5"]),
    "import_tree": ("import IN/tree/Q_debug_tree_FULL_TENSORS.json --names hf --model MODEL --engine transformers -o "
                    "out.h5", ["out.h5"]),
    "import_list": ("import IN/a.npz --ids 5,6,7 --dry-run", []),
    "import_partial": ("import IN/cut --precision f32 --partial -o out.h5", ["out.h5"]),
    "weights_model": ("weights IN/ref.h5 IN/changed.h5 --model MODEL -o w.txt", ["w.txt"]),
    "weights": ("weights MODEL IN/changed", []),
    "weights_json": ("weights IN/ref.h5 IN/changed.h5 --format json", []),
    "show": ("show IN/ref.h5", []),
    "show_json": ("show IN/ref.h5 --format json", []),
    "show_tensor": ("show IN/ref.h5 logits", []),
    "show_step": ("show IN/ref.h5 step.0 -o s.txt", ["s.txt"]),
    "show_weights": ("show IN/ref.h5 --weights", []),
    "show_check": ("show IN/ref.h5 --check", []),
    "show_check_packed": ("show IN/packed.h5 --check", []),
    "explain": ("explain IN/ref.h5 IN/bad.h5 --model MODEL", []),
    "explain_reports": ("explain IN/ref.h5 IN/bad.h5 --model MODEL -o r.txt -o r.json -o r.xml -o r.md -o r.html -o "
                        "r.csv",
                        ["r.txt", "r.json", "r.xml", "r.md", "r.html", "r.csv"]),
    "evaluate_text": ("evaluate MODEL --ids 5,6,7,8,9,10 --candidate ref", []),
    "evaluate": ("evaluate MODEL --ids 5,6,7,8,9,10 --candidate ref --decode 2 -o eval.json", ["eval.json"]),
    "evaluate_recorded": ("evaluate --recordings IN/ref.h5 IN/half.h5 -o eval.json", ["eval.json"]),
    "evaluate_folders": ("evaluate --recordings IN/good IN/well -o eval.json", ["eval.json"]),
    "isolate": ("isolate MODEL --ids 5,6 --inject R1@layer1.q_rope -o isolated.txt", ["isolated.txt"]),
    "isolate_json": ("isolate MODEL --ids 5,6 --inject R1@layer1.q_rope --format json", []),
    "isolate_check": ("isolate MODEL --ids 5,6 --check false -o isolated.json", ["isolated.json"]),
    "devices": ("devices", []),
    "calibrate": ("calibrate IN/ref.h5 IN/half.h5 -o limits.yaml", ["limits.yaml"]),
    "limits": ("limits IN/limits.yaml --recording IN/ref.h5", []),
    "limits_json": ("limits IN/limits.yaml --recording IN/ref.h5 --format json", []),
    "points": ("points MODEL", []),
    "faults": ("points --faults", []),
    "help": ("help compare.md", []),
    "help_word": ("help R2.1e4", []),
    "doctor": ("doctor", []),
    "help_command": ("help capture", []),
    "version": ("--version --verbose", []),
    "synth": ("synth tiny -o synth", []),
}
FORMS = dict(text="txt", json="json", junit="xml", markdown="md", html="html", csv="csv")  # and their endings
# Seconds allowed for all of these are what a sample is spread by: a slow command gets fewer runs.
WEIGHT = {"capture": 2, "capture_text": 2, "compare": 2, "compare_reports": 2, "import_npz": 1.5}


def parts_of(name):
    """The path and the folders that it is in."""
    parts = name.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts) + 1)]


def without_a_row(vernier):
    """The commands, and the forms of their reports, that vernier has and COMMANDS has not. Text is the default form."""
    def said(*words):
        return subprocess.run([vernier, *words], text=True, capture_output=True, check=True).stdout

    missing = []
    for command in re.findall(r"^  (\w+)  +\w", said("--help"), re.M):
        rows = [line.split() for line, _ in COMMANDS.values() if line.split()[0] == command]
        forms = re.search(r"--format ([a-z|]+)|\bFORM: ([a-z, ]+)", said("help", command))
        forms = re.findall(r"[a-z]+", (forms[1] or forms[2]) if forms else "text")
        missing += [f"{command} {f}" for f in forms
                    if not any(f == "text" or f in row or any(w.endswith("." + FORMS[f]) for w in row[1:])
                               for row in rows)]
    return missing


class Sweep:
    def __init__(self, vernier, shim, own=False):
        self.own = own
        self.vernier, self.shim = os.path.abspath(vernier), os.path.abspath(shim)
        if tempfile.gettempdir().startswith("/dev/"):  # the sandbox unmaps what lies there, and so the shim's counts
            sys.exit(f"{tempfile.gettempdir()}: TMPDIR must not lie in /dev")
        self.work = tempfile.mkdtemp(prefix="fault-sweep-")
        self.made = os.path.join(self.work, "in")
        self.calls = subprocess.run(["/bin/true"], env=dict(LD_PRELOAD=self.shim, VN_FAULT_LIST="1"), text=True,
                                    capture_output=True, check=True).stdout.split()
        self.local = threading.local()

    # ---- one run

    def arguments(self, command):
        words = COMMANDS[command][0].split()
        for word, path in (("IN", self.made), ("MODEL", MODEL), ("FIXTURES", FIXTURES)):
            words = [re.sub(rf"(^|,){word}\b", rf"\g<1>{path}", w) for w in words]
        return [self.vernier] + words

    def run(self, command, **fault):
        """Status (negative: the signal; None: a hang), stdout, stderr, the folder, calls counted and failed, each
        call's count."""
        if not hasattr(self.local, "place"):
            self.local.place = tempfile.mkdtemp(prefix="job-", dir=self.work)
        place, cwd, tally = self.local.place, os.path.join(self.local.place,
                                                           "cwd"), os.path.join(self.local.place, "tally")
        trace = os.path.join(place, "trace")
        if os.path.exists(trace):
            os.unlink(trace)
        shutil.rmtree(cwd, ignore_errors=True)
        os.makedirs(os.path.join(cwd, "tmp"))
        with open(tally, "wb") as f:
            f.write(bytes(8 * (2 + len(self.calls))))
        env = {k: v for k, v in os.environ.items() if not k.startswith("VN_FINDING_FAULT")}
        env |= dict(LD_PRELOAD=self.shim, VN_FAULT_TALLY=tally, VN_FAULT_TIME="1700000000",
                    TMPDIR=os.path.join(cwd, "tmp"), NO_COLOR="1",
                    XDG_CACHE_HOME=os.path.join(place, "cache"), HOME=place, OMP_NUM_THREADS="2",
                    OPENBLAS_NUM_THREADS="1",
                    LC_ALL="C.UTF-8")
        if command != "capture":  # this call restarts the program (libref/ops/blas.h); once is enough
            env |= dict(OPENBLAS_CORETYPE="Haswell", OMP_WAIT_POLICY="passive")
        if fault:
            env["VN_FAULT_TRACE"] = trace
        if self.own:
            fault = dict(fault, own=1)
        env |= {"VN_FAULT_" + k.upper(): str(v) for k, v in fault.items()}
        begin = time.monotonic()
        # In files and not in pipes: a process left behind would keep a pipe open.
        with open(os.path.join(place, "stdout"), "wb+") as out, open(os.path.join(place, "stderr"), "wb+") as err:
            p = subprocess.Popen(self.arguments(command), cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=err, start_new_session=True)
            status, left = sessions.end(p, HANG_S)
            seconds = time.monotonic() - begin
            self.local.living = status is not None and bool(left)
            out.seek(0)
            err.seek(0)
            said, complained = out.read(), err.read()
        with open(tally, "rb") as f:
            counts = struct.unpack(f"<{2 + len(self.calls)}Q", f.read())
        return (status, said, complained.decode(errors="replace"), cwd, counts[0], counts[1],
                dict(zip(self.calls, counts[2:])), seconds)

    def callers(self):
        """The libraries on the stack of this thread's last failing call, innermost first; the shim and the C library
        left out."""
        try:
            with open(os.path.join(self.local.place, "trace")) as f:
                names = [os.path.basename(line.split("(")[0]) for line in f]
        except OSError:
            return []
        return [n for n in names if not n.startswith(("fault_shim", "libc.so"))]

    # ---- what a run left

    def contents(self, path):
        """Every number and attribute of a recording, as a digest, and whether it is complete; None where HDF5 cannot
        read it. In a process of its own: a file that was not finished can make HDF5 destroy the heap."""
        for _ in range(2):  # on a loaded machine Python itself may fail once
            read = subprocess.run([sys.executable, os.path.abspath(__file__), "--contents", path], capture_output=True,
                                  text=True)
            if read.returncode == 0:
                return read.stdout.split()
            print(f"{path}: cannot be read: status {read.returncode}, {read.stderr.strip()[-300:]}", flush=True)
        return None

    def same(self, path, good):
        if os.path.getsize(path) == os.path.getsize(good):
            with open(path, "rb") as a, open(good, "rb") as b:
                if a.read() == b.read():
                    return True
        if not path.endswith(".h5"):
            return False
        contents = self.contents(path)
        return contents is not None and contents == self.contents(good)

    def incomplete(self, path):
        """A recording under its temporary name that opens; one that HDF5 was never asked to make is empty."""
        return os.path.getsize(path) == 0 or self.contents(path) is not None

    def judge(self, command, result, call=""):
        """The outcome of one run, and what is wrong."""
        outcome, why = self.seen(command, result)
        # libzip does not repeat its own calls
        unzips = command in ("import_npz", "import_deflated", "import_list") and call.endswith("_again")
        if outcome == "refused" and call.endswith(("_part", "_again")) and not unzips:
            outcome, why = "wrong", "status 2"
        if outcome in ("wrong", "crash"):
            by = self.callers()
            why += f" (the call was made by {' < '.join(dict.fromkeys(by[:12])) or 'an unknown library'})"
        return outcome, why

    def seen(self, command, result):
        status, said, complained, cwd = result[:4]
        base = self.base[command]
        files = {os.path.relpath(os.path.join(d, n), cwd) for d, _, names in os.walk(cwd) for n in names}
        files |= {os.path.relpath(os.path.join(d, n), cwd) for d, names, _ in os.walk(cwd) for n in names if n != "tmp"}
        if status is None:
            return "hang", f"no end after {HANG_S} s"
        if status < 0:
            return "crash", signal.Signals(-status).name
        if self.local.living:
            return "leftover", "a process"
        if command == "doctor" and status == 1 and said != base["said"]:
            return "right", ""  # what failed does not work here: that is its answer, and it says so
        if status not in (2, base["status"]):
            return "wrong", f"status {status} instead of {base['status']}"
        for name in sorted(files & base["files"]):
            if status == 2 and command.startswith("compare_many") and name.startswith("r.") and tells_trouble(
                    os.path.join(cwd, name), os.path.join(base["keep"], name)):
                continue
            if status == 2 and name == "s.json" and troubled(os.path.join(cwd, name), os.path.join(base["keep"], name)):
                continue
            if os.path.isfile(os.path.join(cwd, name)) and not self.same(os.path.join(cwd, name),
                                                                         os.path.join(base["keep"], name)):
                return "wrong", f"{name} differs, status {status}"
        if status != 2:
            if unwarned(said, status) != base["said"]:
                return "wrong", "another standard output"
            if base["files"] - files:
                return "wrong", f"status {status} without {sorted(base['files'] - files)}"
        for name in sorted(files - base["files"]):
            if status == 2 and any(f"{os.path.join(cwd, up)} cannot be removed" in complained for up in parts_of(name)):
                continue
            if not (name.endswith(".h5.partial") and name[:-8] in base["files"] and status == 2
                    and self.incomplete(os.path.join(cwd, name))):
                return "leftover", name
        if status == 2 and verdicts(said) - verdicts(base["said"]):
            return "wrong", f"status 2 with {(verdicts(said) - verdicts(base['said'])).pop()!r}"
        if status == 2 and base["status"] != 2:
            lines = complained.count("\n")
            if lines == 0:
                return "mute", "no line on stderr"
            if lines > base["lines"] + MOST_LINES:
                return "mute", f"{lines} lines on stderr"
            return "refused", ""
        return "right", ""

    # ---- the undisturbed runs

    def prepare(self, commands):
        os.makedirs(self.made)
        make_inputs(self.vernier, self.made)
        self.base = {}
        for command in list(commands):
            status, said, complained, cwd, *_, each, _ = self.run(command, children=0)
            if status == 2 and "no Vulkan device" in complained:  # a visible skip
                print(f"{command}: left out, {complained.strip()}")
                commands.remove(command)
                continue
            assert status in (0, 1), f"{command} undisturbed: status {status}\n{complained}"
            keep = os.path.join(self.work, "keep", command)
            shutil.copytree(cwd, keep)
            files = {os.path.relpath(os.path.join(d, n), keep) for d, _, names in os.walk(keep) for n in names}
            files |= {n for n in os.listdir(keep) if n != "tmp"}
            with_children = self.run(command, children=1)
            self.base[command] = dict(status=status, said=masked(said), files=files, keep=keep,
                                      lines=complained.count("\n"),
                                      each={0: each, 1: with_children[6]}, seconds=with_children[7])
            missing = set(COMMANDS[command][1]) - files
            assert not missing, f"{command} undisturbed: no {missing}"
            outcome = self.judge(command, with_children)
            assert outcome[0] == "right", f"{command} undisturbed, twice: {outcome}"

    def jobs(self, commands, calls, sample, seed):
        """(command, call, at, sticky, children), spread evenly."""
        draw = random.Random(seed)
        strata = []
        for command in commands:
            for call in calls:
                for children in (0, 1):
                    n = self.base[command]["each"][children].get(call, 0)
                    if children and n == self.base[command]["each"][0].get(call, 0):
                        continue
                    share = WEIGHT.get(command, 1) * min(1, 0.15 / max(0.05, self.base[command]["seconds"]))
                    share *= 4 if call in ("malloc", "calloc", "realloc") else 1
                    strata += [(command, call, sticky, children, n, share) for sticky in (0, 1)
                               if n and not (sticky and call.endswith("_again"))]
        low, high = 0.0, 1e9 if sample is None else float(sample)
        for _ in range(60 if sample is not None else 0):
            each = (low + high) / 2
            low, high = (low, each) if sum(min(s[4], max(1, int(each * s[5])))
                                           for s in strata) > sample else (each, high)
        jobs = []
        for command, call, sticky, children, n, share in strata:
            take = n if sample is None else min(n, max(1, int(low * share)))
            jobs += [(command, call, 1 + min(n - 1, int((k + draw.random()) * n / take)), sticky, children)
                     for k in range(take)]
        draw.shuffle(jobs)
        return jobs if sample is None else jobs[:sample]


def print_contents(path):
    import hashlib

    import h5py
    digest = hashlib.sha256()

    def put(name, o):
        attributes = {k: str(v) for k, v in sorted(o.attrs.items()) if k not in VOLATILE}
        digest.update(repr((name, attributes)).encode())
        if isinstance(o, h5py.Dataset):
            digest.update(repr((str(o.dtype), o.shape)).encode())
            digest.update(repr(o[()].tolist()).encode() if o.dtype.hasobject else o[()].tobytes())

    with h5py.File(path, "r") as f:
        put("/", f)
        f.visititems(put)
        print(digest.hexdigest(), int(f.attrs["complete"]))


def masked(said):
    return re.sub(rb"\d+(\.\d+)?(e[+-]\d+)? (ms|s|GB/s|MB/s|GB|MB)\b", b"N", said)


def unwarned(said, status):
    """What was said, masked. A comparison that is outside anyway warns of checks of one side that it could not make.
    Where the kernel refuses a part of the sandbox, vernier --version says so."""
    said = re.sub(rb"(?<=^sandbox for recordings and \.npz: )in part; this machine or build has no "
                  rb"(?:Landlock|seccomp|Landlock, seccomp)$", b"whole (Landlock, seccomp)", said, flags=re.M)
    lines = masked(said).splitlines(keepends=True)
    return b"".join(line for line in lines if status != 1 or b"some checks could not be made" not in line)


def verdicts(said):
    """The verdicts on standard output, in text, JSON or Markdown. Trouble is no verdict; the last
    line may be cut short."""
    found = re.findall(rb'^verdict .*\n|^(?:within|OUTSIDE) limits.*\n|"verdict": ?"\w+"|^### .*\n', masked(said), re.M)
    return {v for v in found if not re.search(rb"trouble|not compared|not all could|refused|not comparable", v)}


def troubled(path, base):
    """Do two summaries of folders differ only in pairs without a verdict? HDF5 may crash if memory
    is short, which is reported for the pair."""
    import json

    with open(path) as a, open(base) as b:
        a, b = json.load(a), json.load(b)
    same = all(a.get(key) == b.get(key) for key in ("schema", "work", "total", "ignored", "reference", "candidate",
                                                    "candidates"))
    rows = len(a["pairs"]) == len(b["pairs"]) and all(
        p == q or (p["status"] == 2 and p["name"] == q["name"]) for p, q in zip(a["pairs"], b["pairs"]))
    return same and rows and a["verdict"] == "trouble"


def tells_trouble(path, base):
    """One of several candidates could not be read: does the report say the same about the others as the undisturbed
    one? In forms other than JSON, which is written beside it, a candidate's row is the line with its letter."""
    import json

    beside = [os.path.splitext(p)[0] + ".json" for p in (path, base)]
    if not os.path.exists(beside[0]):
        return False
    found = []
    for p in beside:
        with open(p) as f:
            found.append(json.load(f))
    one, other = (f["candidates"] for f in found)
    if found[0]["verdict"] != "trouble" or len(one) != len(other):
        return False
    good = [a["about"]["letter"] for a in one if a["about"]["status"] != 2]
    if path.endswith(".json"):
        return all(a == b for a, b in zip(one, other) if a["about"]["letter"] in good)
    rows = []
    for p in (path, base):
        with open(p) as f:
            rows.append([line for line in f if re.match(rf"\| ({'|'.join(good) or '-'}) \|", line)])
    return rows[0] == rows[1]


def make_inputs(vernier, made):
    import json

    import h5py
    import numpy as np

    def call(*words):
        subprocess.run([vernier, *words], cwd=made, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)

    def path(name):
        return os.path.join(made, name)

    call("capture", "ref", MODEL, "--ids", "5,6,7", "-o", "ref.h5")
    call("capture", "ref", MODEL, "--ids", "5,6,7", "--precision", "f16", "-o", "half.h5")
    call("capture", "ref", MODEL, "--ids", "5,6,7", "--inject", "R1@layer1.q_rope", "-o", "bad.h5")
    call("capture", "ref", MODEL, "--ids", "5,6", "--decode", "1", "-o", "step.h5")
    call("capture", "ref", MODEL, "--ids", "5,6,7", "--inject", "R1@layer1.q_rope", "--against", "ref.h5", "-o",
         "part.h5")
    subprocess.run([vernier, "compare", "ref.h5", "bad.h5", "-q", "-o", "bad.json"], cwd=made)
    call("calibrate", "ref.h5", "half.h5", "-o", "limits.yaml")

    with open(path("prompts.jsonl"), "w") as f:
        f.write('{"name": "a", "ids": [5, 6], "decode": 1}\n{"name": "b", "prompt": "of"}\n')
    for folder, recordings in dict(good=("ref.h5", "ref.h5"), other=("half.h5", "bad.h5"),
                                   well=("half.h5", "half.h5")).items():
        os.makedirs(path(folder))
        for i, recording in enumerate(recordings):
            shutil.copy(path(recording), path(f"{folder}/{i}.h5"))
    shutil.copy(path("half.h5"), path("half2.h5"))
    shutil.copy(path("half.h5"), path("packed.h5"))
    with h5py.File(path("packed.h5"), "r+") as f:
        step, names = f["step.0"], []
        step.visititems(lambda n, d: names.append(n) if isinstance(d, h5py.Dataset) else None)
        for name in names:
            data, said = step[name][...], dict(step[name].attrs)
            del step[name]
            step.create_dataset(name, data=data, chunks=data.shape, compression="gzip", shuffle=True).attrs.update(said)
    for part in "1", "2":
        subprocess.run([vernier, "compare", "good", "other", "-q", "--part", part + "/2", "--summary",
                        f"part{part}.json"], cwd=made)
    for rank in 0, 1:
        shutil.copy(path("ref.h5"), path(f"rank{rank}.h5"))
        with h5py.File(path(f"rank{rank}.h5"), "r+") as f:
            f["run"].attrs.update(rank=rank, world_size=2)

    tensors = {}
    with h5py.File(path("ref.h5")) as f:
        f["step.0"].visititems(lambda n, d: tensors.__setitem__(n.replace("/", "."), d[...])
                               if isinstance(d, h5py.Dataset) else None)
        ids = f["run/token_ids"][...].astype("<i8")[None]
    np.savez(path("a.npz"), **tensors)
    np.savez_compressed(path("b.npz"), **tensors)
    os.makedirs(path("txt"))
    call("show", "ref.h5", "embed", "--values", path("txt/embed.txt"))
    os.makedirs(path("npy"))
    os.makedirs(path("cut"))  # a dump that was interrupted
    for name, a in tensors.items():
        np.save(path(f"npy/{name}.npy"), a)
        np.save(path(f"cut/{name}.npy"), a)
    with open(path("cut/manifest.jsonl"), "w") as f:
        f.write('{"vernier_dump": 1}\n{"step": 0, "ids": [5, 6, 7]}\n')
        for name in tensors:
            f.write(json.dumps(dict(tensor=name, file=name + ".npy", dtype="f32", shape=list(tensors[name].shape)))
                    + "\n")

    def safetensors(to, tensors):
        head, data = {}, b""
        for n, a in tensors.items():
            head[n] = dict(dtype={"f4": "F32", "i8": "I64", "b1": "BOOL"}[a.dtype.str[1:]], shape=a.shape,
                           data_offsets=[len(data), len(data) + a.nbytes])
            data += np.ascontiguousarray(a).tobytes()
        text = json.dumps(head).encode()
        with open(to, "wb") as o:
            o.write(struct.pack("<Q", len(text)) + text + data)

    safetensors(path("a.safetensors"), tensors)
    head, data = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), 0), b""
    for n, a in tensors.items():
        data += b"\0" * (-len(data) % 32)
        head += (struct.pack("<Q", len(n)) + n.encode() + struct.pack("<I", a.ndim)
                 + struct.pack(f"<{a.ndim}Q", *a.shape[::-1]) + struct.pack("<IQ", 0, len(data)))
        data += a.tobytes()
    with open(path("a.gguf"), "wb") as o:
        o.write(head + b"\0" * (-len(head) % 32) + data)

    # As transformers.model_debugging_utils writes it.
    os.makedirs(path("tree"))

    def value(name, a):
        safetensors(path(f"tree/{name}.safetensors"), {"data": a})
        return dict(shape=repr(a.shape), dtype=repr(a.dtype), value=f"./{name}.safetensors", mean="", std="", min="",
                    max="")

    def node(name, inputs, outputs):
        return dict(module_path="Q." + name, inputs={"args": [value(f"Q.{name}_inputs_args_0", inputs)]}
                    if inputs is not None else None,
                    outputs=value(f"Q.{name}_outputs", outputs), children=[])

    one = {n: a[None] for n, a in tensors.items()}
    children = [node("model.embed_tokens", ids, one["embed"]),
                node("model.layers.0.input_layernorm", None, one["layer0.attn_norm"]),
                node("lm_head", one["final_norm"], one["logits"])]
    with open(path("tree/Q_debug_tree_FULL_TENSORS.json"), "w") as o:
        json.dump(dict(module_path="Q", inputs={"kwargs": {"input_ids": value("Q_inputs_input_ids", ids)}},
                       children=children), o)

    shutil.copytree(MODEL, path("changed"))
    with open(path("changed/model.safetensors"), "r+b") as f:
        n = 8 + int.from_bytes(f.read(8), "little")
        at = n + json.loads(f.read(n - 8))["model.norm.weight"]["data_offsets"][0]
        f.seek(at)
        x = np.frombuffer(f.read(64), "<f4") * np.float32(1.5)
        f.seek(at)
        f.write(x.tobytes())
    call("capture", "ref", path("changed"), "--ids", "5,6,7", "-o", "changed.h5")


def table(title, counts):
    print(f"\n{title:20} {'injected':>8} " + " ".join(f"{o:>8}" for o in OUTCOMES))
    total = collections.Counter()
    for key in sorted(counts):
        print(f"{key:20} {sum(counts[key].values()):8} " + " ".join(f"{counts[key][o]:8}" for o in OUTCOMES))
        total += counts[key]
    print(f"{'all':20} {sum(total.values()):8} " + " ".join(f"{total[o]:8}" for o in OUTCOMES))
    return total


def main():
    if sys.argv[1:2] == ["--contents"]:
        return print_contents(sys.argv[2])
    a = argparse.ArgumentParser()
    a.add_argument("vernier")
    a.add_argument("shim")
    a.add_argument("--sample", type=int, default=20000)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--part", default="1/1")
    a.add_argument("--command", action="append")
    a.add_argument("--call", action="append")
    a.add_argument("--jobs", type=int, default=os.cpu_count())
    a.add_argument("--all", action="store_true")
    a.add_argument("--own", action="store_true")
    a.add_argument("--budget", type=float, default=1e9)
    a.add_argument("--findings", type=int, default=40, help="how many are printed in full")
    a = a.parse_args()
    try:
        import h5py  # noqa: F401
        import numpy  # noqa: F401
    except ImportError:
        print("skipped: needs h5py and numpy")
        return 77

    begin = time.monotonic()
    missing = without_a_row(a.vernier)
    if missing:
        print("no row in COMMANDS for: " + ", ".join(missing))
        return 1
    sweep = Sweep(a.vernier, a.shim, a.own)
    commands = [c for c in COMMANDS if not a.command or any(re.fullmatch(w, c) for w in a.command)]
    calls = a.call or sweep.calls
    by_command, by_call = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    findings, kinds, idle, left_out = 0, collections.Counter(), 0, 0
    try:
        sweep.prepare(commands)
        part, of = map(int, a.part.split("/"))
        jobs = sweep.jobs(commands, calls, None if a.all else a.sample, a.seed)[part - 1::of]
        print(f"{len(commands)} commands, {len(jobs)} failing calls", flush=True)

        def work(job):
            command, call, at, sticky, children = job
            if time.monotonic() - begin > a.budget:
                return job, None, None, None, 0
            result = sweep.run(command, call=call, at=at, sticky=sticky, children=children)
            outcome, why = sweep.judge(command, result, call)
            return job, outcome, why, result[2], result[5]

        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            for (command, call, at, sticky, children), outcome, why, complained, failed in pool.map(work, jobs):
                if outcome is None:
                    left_out += 1
                    continue
                idle += failed == 0  # the run ended before it came to this call
                if failed == 0 and outcome == "right":
                    continue
                by_command[command][outcome] += 1
                by_call[call][outcome] += 1
                if outcome not in ("right", "refused"):
                    findings += 1
                    kinds[command, call, outcome, why] += 1
                    if findings <= a.findings:
                        print(f"{command}: VN_FAULT_CALL={call} VN_FAULT_AT={at} VN_FAULT_STICKY={sticky} "
                              f"VN_FAULT_CHILDREN={children}: "
                              f"{outcome}, {why} {complained.strip()[-200:]!r}", flush=True)
    finally:
        shutil.rmtree(sweep.work, ignore_errors=True)
    table("command", by_command)
    total = table("call", by_call)
    print(f"\n{sum(total.values())} injected failures in {time.monotonic() - begin:.0f} s, {findings} findings"
          f" ({idle} runs did not come to their call, {left_out} left out for want of time)")
    for (command, call, outcome, why), n in kinds.most_common(30):
        print(f"  {n:5} {command} {call}: {outcome}, {why}")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
