#!/usr/bin/env python3
"""pipes.py VERNIER: a pipe that nobody writes, in place of any file.

In place of each file that a command reads or writes, or that a variable of the environment names, lies a named pipe.
The command must end by itself (it opens regular files only), except where a pipe is a legitimate input, as for
`--ids @FILE`: then INT and TERM must end it.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fixtures")
PATIENCE, ENDING, READING = 60, 5, 1.5  # seconds: of a command; after a signal; until one certainly reads


class Bench:
    def __init__(self, vernier):
        self.vernier, self.runs, self.waits, self.bad = vernier, 0, 0, []

    def start(self, args, env):
        self.runs += 1
        return subprocess.Popen([self.vernier, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env={**os.environ, **env})

    def fail(self, args, why):
        self.bad.append(args)
        print(" ".join(args), why)

    def ends(self, *args, env=None):
        """A command that must not wait; returns its output."""
        p = self.start(args, env or {})
        try:
            out, err = p.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            p.kill()
            p.communicate()
            self.fail(args, f"still runs after {PATIENCE} s ({env or ''})")
            return b""
        if p.returncode not in (0, 1, 2) or b"--help)" in err:
            self.fail(args, f"exit status {p.returncode}: {ascii(err)}")
        return out + err

    def refuses(self, *args, env=None):
        if b"pipe" not in self.ends(*args, env=env):
            self.fail(args, "does not name the pipe")

    def waits_and_ends(self, *args):
        """A command that reads a pipe: until the pipe's end, or a signal."""
        for number in signal.SIGINT, signal.SIGTERM:
            p = self.start(args, {})
            time.sleep(READING)
            self.waits += p.poll() is None
            p.send_signal(number)
            try:
                p.communicate(timeout=ENDING)
            except subprocess.TimeoutExpired:
                p.kill()
                p.communicate()
                self.fail(args, f"signal {number} does not end it")


def main():
    b = Bench(os.path.abspath(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        model = "model"
        shutil.copytree(os.path.join(FIXTURES, "qwen2-trained"), model)
        ids = ("--ids", "5,6,7")
        b.ends("capture", "ref", model, *ids, "-o", "ref.h5")
        b.ends("capture", "ref", model, *ids, "--precision", "bf16", "-o", "half.h5")
        for name in ("pipe", "pipe.h5", "pipe.json", "pipe.npz", "pipe.npy", "pipe.safetensors", "pipe.gguf",
                     "pipe.yaml", "pipe.jsonl", "pipe_debug_tree_FULL_TENSORS.json"):
            os.mkfifo(name)
        os.mkdir("refs")
        shutil.copy("ref.h5", "refs/a.h5")
        # recordings
        for args in (("show", "pipe.h5"), ("compare", "pipe.h5", "ref.h5"), ("compare", "ref.h5", "pipe.h5"),
                     ("compare", "--vote", "ref.h5", "half.h5", "pipe.h5"), ("table", "ref.h5", "pipe.h5"),
                     ("evaluate", "--recordings", "ref.h5", "pipe.h5"),
                     ("weights", "ref.h5", "pipe.h5"), ("calibrate", "ref.h5", "pipe.h5", "-o", "fit.yaml"),
                     ("limits", "fp32.yaml", "--recording", "pipe.h5"),
                     ("compare", "ref.h5", "half.h5", "--explain", "--model", "pipe"),
                     ("capture", "ref", model, *ids, "--against", "pipe.h5", "-o", "x.h5"),
                     # other inputs
                     ("compare", "ref.h5", "half.h5", "--limits", "pipe.yaml"),
                     ("compare", "ref.h5", "half.h5", "--names", "pipe.yaml"),
                     ("compare", "ref.h5", "half.h5", "--baseline", "pipe.json"), ("limits", "pipe.yaml"),
                     ("merge", "pipe.json"), ("report", "pipe.json"), ("points", "pipe"), ("points", "pipe.gguf"),
                     ("weights", "pipe.gguf", model),
                     ("weights", "pipe", model), ("capture", "ref", "pipe", *ids, "-o", "x.h5"),
                     ("evaluate", "pipe.gguf", *ids), ("isolate", "pipe", *ids),
                     ("capture", "ref", "pipe.gguf", *ids, "-o", "x.h5"),
                     # outputs
                     ("capture", "ref", model, *ids, "-o", "pipe.h5"),
                     ("capture", "ref", model, *ids, "-o", "pipe.h5", "--force"),
                     ("compare", "ref.h5", "half.h5", "-o", "pipe.json"),
                     ("compare", "ref.h5", "half.h5", "-o", "pipe.json", "--force"),
                     ("compare", "refs", "refs", "--allow", "itself", "--summary", "pipe.json", "--force"),
                     ("show", "ref.h5", "logits", "--values", "pipe.npy", "--force"),
                     ("calibrate", "ref.h5", "ref.h5", "-o", "pipe.yaml", "--force"),
                     ("synth", "qwen2-0.5b", "-o", "pipe"),
                     *(("import", "pipe" + end, "-o", "x.h5", *ids)
                       for end in ("", ".npz", ".npy", ".safetensors", ".gguf", "_debug_tree_FULL_TENSORS.json"))):
            b.refuses(*args)
        # files inside a model, a dump, folders
        for name in sorted(os.listdir(model)):
            os.rename(f"model/{name}", "aside")
            os.mkfifo(f"model/{name}")
            for args in (("points", model), ("weights", model, model), ("weights", "ref.h5", model),
                         ("capture", "ref", model, *ids, "-o", "y.h5", "--force"), ("show", "ref.h5"),
                         ("capture", "ref", model, "--prompt", "hello", "-o", "y.h5", "--force"),
                         ("compare", "ref.h5", "half.h5", "--model", model),
                         ("evaluate", model, *ids, "--candidate", "ref")):
                b.ends(*args)
            os.remove(f"model/{name}")
            os.rename("aside", f"model/{name}")
        os.mkdir("dump")
        os.mkfifo("dump/manifest.jsonl")
        b.ends("import", "dump", "-o", "x.h5", *ids)
        os.rename("dump/manifest.jsonl", "dump/embed.npy")
        b.ends("import", "dump", "-o", "x.h5", *ids)
        os.remove("dump/embed.npy")
        os.mkdir("cands")
        os.mkfifo("cands/a.h5")
        b.ends("compare", "refs", "cands")
        b.ends("evaluate", "--recordings", "refs", "cands")
        os.mkfifo("z.h5.partial")
        b.ends("capture", "ref", model, *ids, "-o", "z.h5")
        # the environment: the cache of compiled shaders has one file for each driver
        cache = os.path.join(folder, "cache")
        env = {"XDG_CACHE_HOME": cache, "MESA_SHADER_CACHE_DISABLE": "true"}
        b.ends("capture", "gpu", model, *ids, "-o", "g.h5", env=env)
        made = [os.path.join(at, f) for at, _, files in os.walk(cache) for f in files if f.endswith(".pipelines")]
        for path in made:
            os.remove(path)
            os.mkfifo(path)
        b.ends("capture", "gpu", model, *ids, "-o", "g.h5", "--force", env=env)
        # where a pipe is what a person meant
        for args in (("capture", "ref", model, "--ids", "@pipe", "-o", "w.h5"),
                     ("capture", "ref", model, "--prompt", "@pipe", "-o", "w.h5"),
                     ("evaluate", model, "--ids", "@pipe", "--candidate", "ref"),
                     ("isolate", model, "--ids", "@pipe"),
                     ("capture", "ref", model, "--prompts", "pipe.jsonl", "-o", "many")):
            b.waits_and_ends(*args)
        os.chdir("/")
    print(f"{b.runs} runs, {b.waits} of them waited for a pipe; {len(made)} caches; wrong: {len(b.bad)}")
    assert b.waits == 10, "a command does not read its pipe"
    return 1 if b.bad else 0


if __name__ == "__main__":
    sys.exit(main())
