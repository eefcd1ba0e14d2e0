#!/usr/bin/env python3
"""kills_python.py VERNIER [--kills N]: SIGKILL, SIGTERM and SIGHUP at any moment of a recording by the Python recorder.

A forked process records steps of small and large tensors, second names, names outside layers and facts that change. A
third of the processes end before their n-th call that changes a file, the others after a random time. After each
  - a file under the final name is whole,
  - PATH.partial is absent, empty or opens: for h5py and for `vernier show` (--check, which looks at every digest), and
    holds right tensors alone, and the ids of its steps,
  - nothing else is left, and (every 20th time) recording again succeeds over it.
Some more are killed when they have recorded nothing for 0.5 s (on a busy machine, some seconds): all that they put is
in the file.

Default: 60. --from-call N: only before calls, one after the other, from the N-th. Status 1 if one is torn; 77, skipped,
without h5py.
"""
import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "capture", "python"))
try:
    import numpy as np

    import vernier_parity
    from vernier_parity import disk
except ImportError as e:
    print(f"SKIPPED: no {e.name} in this Python")
    sys.exit(77)

STEPS, LAYERS = 12, 4
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)
LARGE = np.arange(3 * 6000, dtype="<f4").reshape(3, 6000)  # its place begins at a page


def tokens_of(step):
    return [7, 8, 9] if step == 0 else [step]


def value(step, name):
    """What the tensor holds."""
    rows = len(tokens_of(step))
    return LARGE[:rows] + np.float32(step) if name.endswith("mlp_act") else np.full((rows, 40), len(name) + step, "f4")


def record(path):
    with vernier_parity.Recorder(path, engine="a test", precision="f32", force=True) as r:
        for step in range(STEPS):
            r.begin_step(token_ids=tokens_of(step))
            for layer in range(LAYERS):
                for point in ("attn_out", "mlp_act", "output"):
                    name = f"layer{layer}.{point}"
                    r.put(name, value(step, name), source_line="a.py:1")
                if layer + 1 < LAYERS:
                    r.alias(f"layer{layer + 1}.input", f"layer{layer}.output")
            for i in range(3):
                r.put(f"blk.{i}", value(step, f"blk.{i}"), "token x", source_line="a.py:1")
            r.fact(precision=("f32", "mixed-bf16")[step % 2], **{f"step{step}": f"{step}" * 200})
        r.fact(precision="f32")


def counted(at):
    """Ends this process before its at-th call that changes a file, or the first of this name. Returns the count, a list
    of one."""
    calls = [0]

    def before(f):
        def call(*args, **more):
            calls[0] += 1
            if at in (calls[0], f.__name__):
                os.kill(os.getpid(), signal.SIGKILL)
            return f(*args, **more)
        return call

    class Counted:
        def __init__(self, file):
            self.file, self.write, self.truncate = file, before(file.write), before(file.truncate)

        def __getattr__(self, name):
            return getattr(self.file, name)

    fdopen = os.fdopen
    disk.os.fdopen = lambda *a, **k: Counted(fdopen(*a, **k))
    for name in ("link", "rename", "replace", "unlink", "fsync"):
        setattr(disk.os, name, before(getattr(os, name)))
    return calls


def run(path, at=None, after=None, how=signal.SIGKILL):
    """Records in a process of its own. Returns whether it was ended, and its seconds."""
    start, pid = time.monotonic(), os.fork()
    if pid == 0:
        try:
            if at is not None:
                counted(at)
            record(path)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(5)
    if after is not None:
        time.sleep(after)
        os.kill(pid, how)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status), time.monotonic() - start


def kill_in_silence(path):
    """Kills a recording that has done nothing for a while. Returns the tensors that the file lacks."""
    def lacks():
        with vernier_parity.open(path + ".partial") as rec:
            have = rec.names() if rec.steps else []
        return [f"blk.{i}" for i in range(33) if f"blk.{i}" not in have]

    told, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        r = vernier_parity.Recorder(path, engine="a test", precision="f32", token_ids=tokens_of(0), force=True)
        for i in range(33):
            r.put(f"blk.{i}", value(0, f"blk.{i}"), "token x", source_line="a.py:1")
        os.write(there, b"x")
        time.sleep(60)
        os._exit(5)
    os.read(told, 1)
    for _ in range(20):
        time.sleep(0.5)
        if not lacks():
            break
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(told)
    os.close(there)
    return lacks()


def wrong_in(path, whole, vernier):
    """What is wrong with a file, or None."""
    try:
        with vernier_parity.open(path) as rec:
            some = any(rec.names(step) for step in range(rec.steps))
    except vernier_parity.RecordingError as e:
        return str(e)
    shown = subprocess.run([vernier, "show", *(["--check"] if some else []), path], capture_output=True, text=True)
    if shown.returncode != 0 or (some and not (" 0 broken" in shown.stdout and " 0 wrong" in shown.stdout)):
        return f"vernier show: {shown.returncode}: {shown.stdout[-200:]}{shown.stderr[-200:]}"
    with vernier_parity.open(path) as rec:
        if whole and not (rec.complete and rec.steps == STEPS):
            return "is not whole"
        if rec.run.get("precision") not in ("f32", "mixed-bf16") or rec.run.get("engine") != "a test":
            return f"facts: {rec.run}"
        ids = [x for step in range(rec.steps) for x in tokens_of(step)]
        if rec.token_ids.tolist()[: len(ids)] != ids or rec.positions.tolist()[: len(ids)] != list(range(len(ids))):
            return f"ids {rec.token_ids.tolist()} of {rec.steps} steps"
        for step in range(rec.steps):
            for name in rec.names(step):
                of = f"layer{int(name[5:].split('.')[0]) - 1}.output" if name.endswith(".input") else name
                if not np.array_equal(rec[f"step.{step}/{name}"], value(step, of)):
                    return f"step.{step}/{name}: other numbers"
    return None


def refused_beside(path):
    """A recording that was killed between its end and its name stays until somebody renames it. Returns what is wrong
    with the refusal, or None."""
    try:
        vernier_parity.Recorder(path, engine="a test", precision="f32", force=True)
    except vernier_parity.RecordingError as e:
        os.rename(path + ".partial", path)
        return None if "marked as complete; rename it" in str(e) else str(e)
    return "is overwritten, though it is complete"


def is_complete(path):
    with vernier_parity.open(path) as rec:
        return rec.complete


def main():
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("vernier")
    a.add_argument("--kills", type=int, default=60)
    a.add_argument("--from-call", type=int, help="only before calls, one after the other, from this one")
    a = a.parse_args()
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    random.seed(seed)
    bad = ended = complete = 0
    states = {"none": 0, "empty": 0, "partial": 0, "whole": 0}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.h5")
        for _ in range(max(1, a.kills // 20)):
            lost = kill_in_silence(path)
            if lost:
                bad += 1
                print(f"in a silence: {len(lost)} of 33 tensors are not in the file", flush=True)
        os.unlink(path + ".partial")
        vernier_parity.recorder.PUBLISH_EVERY = 0.002  # so that many states come onto the disk
        seconds = min(run(path)[1] for _ in range(3))
        os.unlink(path)
        told, there = os.pipe()
        if os.fork() == 0:
            calls = counted(None)
            record(path)
            os.write(there, str(calls[0]).encode())
            os._exit(0)
        calls = int(os.read(told, 20))
        os.wait()
        for i in range(a.kills):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            how = random.choice(SIGNALS)
            at = a.from_call + i if a.from_call else None
            if at is None and i % 3 == 0:  # the first time, the recording is complete, and has its name not yet
                at = random.randint(1, calls) if i else "replace"
            after = random.uniform(0, 1.1 * seconds) if at is None else None
            killed, _ = run(path, at, after, how)
            ended += killed
            what = f"before call {at} of {calls}" if at else f"by {how.name} after {after:.4f} s"
            left = set(os.listdir(folder))
            troubles = [f"{n} is left" for n in left - {"a.h5", "a.h5.partial"}]
            for name in left & {"a.h5", "a.h5.partial"}:
                file = os.path.join(folder, name)
                whole = name == "a.h5"
                states["whole" if whole else "partial" if os.path.getsize(file) else "empty"] += 1
                trouble = wrong_in(file, whole, a.vernier) if whole or os.path.getsize(file) else None
                troubles += [f"{name}: {trouble}"] if trouble else []
            states["none"] += not left
            if i % 20 == 0:
                if "a.h5.partial" in left and os.path.getsize(path + ".partial") and is_complete(path + ".partial"):
                    trouble = refused_beside(path)
                    troubles += [f"its .partial: {trouble}"] if trouble else []
                    complete += 1
                run(path)
                again = wrong_in(path, True, a.vernier)
                troubles += [f"again: {again}"] if again or os.listdir(folder) != ["a.h5"] else []
            for trouble in troubles:
                print(f"{what}: {trouble}", flush=True)
            bad += bool(troubles)
    print(f"recordings of {seconds:.3f} s and {calls} calls: {', '.join(f'{k} {n}' for k, n in states.items())}")
    print(f"kills: {ended} of {a.kills} while it recorded, torn: {bad} (SEED={seed})")
    return bad != 0 or (not a.from_call and complete == 0)


if __name__ == "__main__":
    sys.exit(main())
