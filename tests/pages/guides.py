"""guides.py VERNIER: the guides of specs/guides, and specs/usage.md, do what they say, block by block, as written.

A block of sh is run and must succeed, in one folder for each guide. Each line of a block of text
must be in the output of the block before. A block of c or rust must be in one of the files that the
guide copies. llama.cpp is the one whose checkout $VERNIER_LLAMA_CPP names (built in build/), else
tests/pages/llama_stand_in with the nodes of fixtures/foreign, which a real one computed from these files.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("skipped: no h5py or numpy")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
vernier = os.path.abspath(sys.argv[1])
bad = 0


def blocks(path):
    """(language, text) of every fenced block."""
    with open(path, encoding="utf-8") as f:
        return re.findall(r"^```(\w+)\n(.*?)^```$", f.read(), re.M | re.S)


def in_sources(text, folder):
    for name in os.listdir(folder):
        if name.endswith((".c", ".h", ".cpp", ".rs")):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                if text in f.read():
                    return True
    return False


def follow(guide, env, folder, kinds=("sh", "text", "c")):
    global bad
    said = ""
    n = dict.fromkeys(kinds, 0)
    for language, text in blocks(os.path.join(SOURCE, "specs", guide)):
        if language == "yaml":  # for a CI service
            continue
        n[language] += 1
        wrong = ""
        if language == "sh":
            r = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True)
            said = r.stdout
            wrong = f"ends with status {r.returncode}:\n{said}" if r.returncode else ""
        elif language == "text":
            missing = [line for line in text.splitlines() if line not in said]
            wrong = f"was not said: {missing}, but\n{said}" if missing else ""
        elif not in_sources(text, folder):
            wrong = "stands in no file"
        if wrong:
            bad += 1
            print(f"{guide}: {language} block\n{text}{wrong}")
    print(f"{guide}: {n['sh']} blocks run, {n['text']} answers, {n.get('c', n.get('rust', 0))} excerpts"
          + ("" if not bad else "  BAD"))
    if min(n.values()) == 0:
        bad += 1
        print(f"{guide}: no block of some kind")


def stand_in(folder):
    """A checkout of llama.cpp with nothing in it but what the example needs."""
    root = os.path.join(folder, "llama.cpp")
    for d in ("include", "ggml/include", "build/bin"):
        os.makedirs(os.path.join(root, d))
    here = os.path.join(HERE, "llama_stand_in")
    for h, to in (("llama.h", "include"), ("ggml.h", "ggml/include"), ("ggml-backend.h", "ggml/include")):
        os.symlink(os.path.join(here, h), os.path.join(root, to, h))
    for lib, source in (("llama", "llama.c"), ("ggml", None), ("ggml-base", None)):
        subprocess.run(["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o",
                        f"{root}/build/bin/lib{lib}.so"]
                       + ([os.path.join(here, source), "-I" + here] if source else ["-x", "c", "/dev/null"]),
                       check=True)
    return root


def nodes(recording, path):
    """What a real one computed, as the stand-in reads it, and for which tokens."""
    with h5py.File(recording, "r") as f, open(path, "wb") as o:
        found = []
        f["step.0"].visititems(lambda name, d: found.append((int(d.attrs["order"]), name, d))
                               if isinstance(d, h5py.Dataset) else None)
        for _, name, d in sorted(found, key=lambda x: x[0]):
            a = d[()].astype("<f4")
            ne = list(a.shape[::-1]) + [1] * (4 - a.ndim)
            op, takes = (x.decode() if isinstance(x, bytes) else x for x in (d.attrs["op"], d.attrs.get("takes", "-")))
            o.write(f"{op} {takes} {re.sub(r'[.][0-9]+$', '', name)} {ne[0]} {ne[1]} {ne[2]} {ne[3]}\n".encode()
                    + a.tobytes())
        return " ".join(map(str, f["run/token_ids"][()]))


# A file, a recording of a llama.cpp over it, and the precision that it ran in; for the last one,
# llama.cpp needs a vocabulary.
FILES = (("qwen2-trained.f32.gguf", "llama.cpp-qwen2.h5", "f32"),
         ("qwen2-trained.q8_0.gguf", "llama.cpp-qwen2-q8_0.h5", "ggml-flash16"),
         ("qwen2-wide.q4_k_m.gguf", "llama.cpp-qwen2-wide-q4_k_m.h5", "ggml-kv16"))


def llama(work, env):
    global bad
    real = os.environ.get("VERNIER_LLAMA_CPP")
    root = real or stand_in(work)
    for gguf, recording, precision in FILES[:2] if real else FILES:
        folder, model = os.path.join(work, gguf), os.path.join(SOURCE, "fixtures", "gguf", gguf)
        os.mkdir(folder)
        ids = nodes(os.path.join(SOURCE, "fixtures", "foreign", recording), folder + "/nodes")
        env = dict(env, LLAMA=root, LLAMA_STAND_IN=folder + "/nodes", IDS=ids, MODEL=model)
        follow("guides/llama.cpp.md", env, folder)
        said = subprocess.run(["vernier", "show", folder + "/cand.h5"], env=env, capture_output=True, text=True).stdout
        if not real and not re.search(rf"^ +precision +{precision}$", said, re.M):
            bad += 1
            print(f"{gguf}: not recorded as {precision}:\n{said[:600]}")
    if not real:  # a batch that comes in pieces is refused in words: the stand-in always has the rows of its recording
        n = len(ids.split())
        said = subprocess.run(["./example", model, "pieces"] + ids.split() + ["1"], cwd=folder, env=env,
                              stderr=subprocess.PIPE, text=True)
        if said.returncode != 2 or f"takes {n} of the batch's {n + 1} tokens at a time" not in said.stderr:
            bad += 1
            print(f"a batch in pieces: status {said.returncode}: {said.stderr}")
        with open(folder + "/example.c") as f:
            text = f.read()
        with open(folder + "/unsaid.c", "w") as f:
            f.write(text.replace("status = llama_decode(ctx, batch);",
                                 "status = llama_decode(ctx, batch) || llama_decode(ctx, batch);"))
        subprocess.run(["sh", "-c", 'cc -std=c99 unsaid.c vernier_callback.c -I"$LLAMA"/include '
                        '-I"$LLAMA"/ggml/include -L"$LLAMA"/build/bin -Wl,-rpath,"$LLAMA"/build/bin '
                        "-lllama -lggml -lggml-base -lm -o unsaid"], cwd=folder, env=env, check=True)
        said = subprocess.run(["./unsaid", model, "twice"] + ids.split(), cwd=folder, env=env, stderr=subprocess.PIPE,
                              text=True)
        if (said.returncode != 2 or "twice: a llama_decode after that of step 0 has no vernier_callback_batch before "
            "it" not in said.stderr):
            bad += 1
            print(f"a batch that is not said: status {said.returncode}: {said.stderr}")


with tempfile.TemporaryDirectory() as work:
    os.mkdir(work + "/bin")
    os.symlink(work + "/usr/bin/vernier", work + "/bin/vernier")
    build, prefix = os.path.dirname(os.path.dirname(vernier)), work + "/usr"
    subprocess.run(["cmake", "--install", build, "--prefix", prefix], stdout=subprocess.DEVNULL, check=True)
    env = dict(os.environ, VERNIER=prefix, PATH=work + "/bin:" + os.environ["PATH"], LC_ALL="C.UTF-8")
    os.mkdir(work + "/c")
    follow("guides/c.md", dict(env, MODEL=os.path.join(SOURCE, "fixtures", "mistral-trained")), work + "/c")
    if shutil.which("rustc"):
        os.mkdir(work + "/rust")
        follow("guides/rust.md", dict(env, MODEL=os.path.join(SOURCE, "fixtures", "mistral-trained")), work + "/rust",
               ("sh", "text", "rust"))
    else:
        print("guides/rust.md: skipped: no rustc")
    os.mkdir(work + "/usage")
    follow("usage.md", dict(env, MODEL=os.path.join(SOURCE, "fixtures", "mistral-trained")), work + "/usage",
           ("sh", "text"))
    llama(work, env)
# The meaning of the exit statuses has the same words everywhere.
WORDS = ("trouble, no verdict", "bad usage, an unreadable file, or recordings that are not comparable (other tokens, "
         "weights or config)",
         "with `--strict`", "`refusals`", "stderr says")
for page in ("usage.md", "SKILL.md"):
    with open(os.path.join(SOURCE, "specs", page), encoding="utf-8") as f:
        text = " ".join(f.read().split()).lower()
    for words in WORDS:
        if words.lower() not in text:
            bad += 1
            print(f"{page}: exit statuses: does not say '{words}'")
# The names of fields that SKILL.md tells a program to read are written by the reports.
section = open(os.path.join(SOURCE, "specs", "SKILL.md"), encoding="utf-8").read()
section = section[section.index("## 4. Read the answer"):section.index("## 5.")]
written = "".join(open(path, encoding="utf-8").read() for path in glob.glob(os.path.join(SOURCE, "compare/*/*.c")))
with open(os.path.join(SOURCE, "compare/result/fields.def"), encoding="utf-8") as f:
    written += re.sub(r"FIELD\((\w+),", r'"\1"', f.read())
fields = {name for path in re.findall(r"`([a-z_.\[\]]+)`", section) for name in re.findall(r"[a-z_]+", path)}
for name in sorted(fields - {"true", "false"}):
    if f'"{name}"' not in written:
        bad += 1
        print(f"SKILL.md: no report has the field `{name}`")
if len(fields) < 8:
    bad += 1
    print(f"SKILL.md, section 4: only {len(fields)} fields are found")
sys.exit(1 if bad else 0)
