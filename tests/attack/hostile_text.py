#!/usr/bin/env python3
"""hostile_text.py VERNIER: whatever a file holds, no output has a character that a terminal would obey or not show.

Nor does any begin a line, or a column, that a string of the file made up, or have a command to a runner of CI. In HTML
and in Markdown outside code, none is an element.

Every string that a file can carry holds newlines, controls, bidirectional controls, joiners, tags, bytes that are no
UTF-8: names and attributes of recordings, token texts, dumps of any kind, models, tokenizers, limits, name maps, the
paths themselves. Every command runs over them in every format, and each byte of stdout, stderr and report files is
looked at.
Status 77, skipped: no h5py.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unicodedata
import zipfile

try:
    import h5py
    import numpy as np
except ImportError:
    print("hostile_text.py: no h5py; skipped")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
FIXTURES = os.path.join(HERE, "..", "..", "fixtures")
# What names of tensors may hold, and then what other strings may, too.
COMMANDS = "::x::##[y]##vso[z]"
SIGNS = "\u009b\u202e\u200b\u2028\ufeff\u00ad\ufe0f\U000e0041"
MARKS = COMMANDS + SIGNS
# After a newline, a carriage return or a tab: what would be a line, or a column, of its own.
FORGED = "FORGED within"
BREAKS = "".join(c + FORGED for c in "\n\r\t\v\f\u2029") + "\n\n  " + FORGED
TEXT = (COMMANDS + "<x-y><" + BREAKS + "\x1b[2J\r\x07\x7f\u0085" + SIGNS + "\u061c\u200d\u200e\u2060\u2066\ue000\uffff"
        + "e" + 9 * "\u0301" + "\u4e2d\U0001f600>")
BYTES = TEXT.encode() + b"\xff\xe2\x80"
DEFAULT_IGNORABLE = {0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810),
                     *range(0xFE00, 0xFE10), *range(0xE0000, 0xE1000)}


def forbidden(data):
    """The first character of some bytes that may not be there; None."""
    try:
        text = data.decode()
    except UnicodeDecodeError as why:
        return f"byte {data[why.start]:02x}"
    forged = re.search(r"(?:^|[\n\r\t])[ \t]*" + FORGED, text)
    if forged:
        return "a forged line: " + ascii(text[forged.start() - 60:forged.end()])
    command = re.search(r"(?m)^[ \t]*::|##\[|##vso\[", text)
    if command:
        return "a command: " + ascii(text[command.start():command.end() + 60])
    marks = 0
    for c in text:
        kind = unicodedata.category(c)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if c not in "\n\t" and (kind[0] == "C" or kind in ("Zl", "Zp") or ord(c) in DEFAULT_IGNORABLE or marks > 4):
            return f"U+{ord(c):04X}"
    return None


def is_markup(data):
    """Has a page of HTML, or a comment in Markdown, our element?"""
    text = data.decode(errors="replace")
    if text.startswith("### "):
        text = re.sub(r"(?ms)^(~{8})text$.*?^~{8}$", "", text)
        text = re.sub(r"(?s)(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    elif not text.lower().startswith("<!doctype html"):
        return False
    return "<x-y>" in text


class Bench:
    def __init__(self, vernier):
        self.vernier, self.runs, self.bad, self.marked, self.broken = vernier, 0, [], 0, 0

    def look(self, what, data):
        self.marked += any(x in data for x in (b"\\u{202e}", b"\\u202e", b"\\xff", b"\\u{1b}"))
        self.broken += b"\\n" + FORGED.encode() in data
        found = "an element" if is_markup(data) else forbidden(data)
        if found:
            self.bad.append((what, found))
            print(f"{what}: {found}")

    def run(self, *args, want=None):
        """Any command; the files it writes are those of -o that are no recordings."""
        done = subprocess.run([self.vernier, *args], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                              timeout=120)
        what = " ".join(ascii(os.fsdecode(a))[1:-1][:40] for a in args)
        self.runs += 1
        self.look(what + ": stdout", done.stdout)
        self.look(what + ": stderr", done.stderr)
        if done.returncode not in ((0, 1, 2) if want is None else (want,)):
            self.bad.append((what, f"exit status {done.returncode}"))
            print(f"{what}: exit status {done.returncode}\n{ascii(done.stderr)}")
        return done

    def reports(self, *args):
        """A comparison in every form, to stdout and to files."""
        files = ["out." + end for end in ("txt", "json", "xml", "md", "html", "csv")]
        self.run(*args, "--all")
        self.run(*args, "--force", "-q", *(x for f in files for x in ("-o", f)))
        for f in files:
            if os.path.exists(f):
                with open(f, "rb") as text:
                    self.look(f"{ascii(args[0])} -o {f}", text.read())
                if f.endswith(".json"):
                    with open(f, encoding="utf-8") as text:
                        json.load(text)
                os.remove(f)

    def every(self, ref, cand):
        """Every command that reads recordings."""
        self.reports("compare", ref, cand)
        self.run("compare", ref, cand, "--format", "json")
        self.run("show", cand)
        self.run("show", cand, "--format", "json")
        self.run("show", cand, "--check")


def change(source, out, work):
    shutil.copy(source, out)
    with h5py.File(out, "r+") as f:
        work(f)


def put(f, where, key, text=TEXT):
    f[where].attrs[key] = text


def recordings(b, model):
    """Each string of a recording in a file of its own: what is refused hides nothing else."""
    places = [("/", k) for k in ("created", "tool", "tool_version", "format")]
    places += [("run", k) for k in ("engine", "engine_version", "precision", "device", "command", "against",
                                    "against_limits", "stopped", "another", "checkpoints_" + MARKS)]
    places += [("model", k) for k in ("config", "family", "format", "path", "provenance")]
    places += [("step.0/layer0/q_rope", k)
               for k in ("axes", "basis", "op", "point", "digest", "same_as", "source_line")]
    places += [("step.0/logits", "axes")]
    for where, key in places:
        for text in TEXT, BYTES:
            change("ref.h5", "evil.h5", lambda f, w=where, k=key, t=text: put(f, w, k, t))
            b.every("ref.h5", "evil.h5")
            b.run("show", "evil.h5", "layer0.q_rope")
    b.run("compare", "evil.h5", "ref.h5")
    for name, measure in (TEXT, "nmse"), ("layer0.q_rope", TEXT):
        def left_out(f, name=name, measure=measure):
            line = dict(step=0, name=name, dtype="f32", shape=[1], digest="0" * 32, reference="0" * 32,
                        measured={measure: 0.5})
            f["run"].create_dataset("left_out", data=[json.dumps(line)], dtype=h5py.string_dtype())
            f["run"].attrs["against_limits"] = TEXT
            del f["step.0/layer0/q_rope"]

        change("ref.h5", "evil.h5", left_out)
        b.every("ref.h5", "evil.h5")

    def axes(f):
        f["step.0/layer0/q_rope"].attrs["axes"] = "token " + MARKS + " dim"

    def names(f):
        for i, name in enumerate((MARKS.encode(), b"layer0." + MARKS.encode(), b"\xff\xfe", b"\x1b[2J")):
            f["step.0"][name if i != 1 else b"layer0/" + MARKS.encode()] = f["step.0/logits"][()]

    def texts(f):
        n = len(f["run/token_text"])
        del f["run/token_text"]
        f["run"].create_dataset("token_text", data=[BYTES] * n, dtype=h5py.string_dtype())

    def weights(f):
        table = f["model/weights"][()]
        for row in table[:4]:
            row["name"] = b"w." + MARKS.encode()
        del f["model/weights"]
        f["model/weights"] = table
        f["model"][MARKS.encode()] = 1

    def changed(f):
        names(f)
        texts(f)
        f["step.0/layer0/q_rope"][...] *= 2
        f["step.0/layer0/attn_out"][...] = np.nan
        for name in ("q_rope", "attn_out"):
            if "digest" in f["step.0/layer0/" + name].attrs:
                del f["step.0/layer0/" + name].attrs["digest"]
        for k in ("engine", "device"):
            f["run"].attrs[k] = TEXT

    for work in axes, names, texts, weights, changed:
        change("ref.h5", "evil.h5", work)
        b.every("ref.h5", "evil.h5")
        b.every("evil.h5", "ref.h5")
        b.run("show", "evil.h5", "--weights")
        b.run("show", "evil.h5", "step.0")
        b.run("show", "evil.h5", MARKS)
        b.run("show", "evil.h5", MARKS, "--format", "json")
        for form in "text", "markdown", "html", "json":
            b.run("compare", "ref.h5", "evil.h5", "none.h5", "--format", form)
            b.run("compare", "--vote", "ref.h5", "evil.h5", "half.h5", "--format", form)
        b.run("compare", "half.h5", "evil.h5", "--bitwise", "--all")
        b.run("evaluate", "--recordings", "ref.h5", "evil.h5", "half.h5")
        b.run("evaluate", "--recordings", "evil.h5", "half.h5", "--format", "json")
        for form in "text", "markdown", "html", "csv", "json":
            b.run("table", "ref.h5", "evil.h5", "--format", form)
        b.run("weights", "ref.h5", "evil.h5")
        b.run("weights", "ref.h5", "evil.h5", "--format", "json")
        b.run("limits", "fp32.yaml", "--recording", "evil.h5")
        b.run("limits", "fp32.yaml", "--recording", "evil.h5", "--format", "json")
        b.reports("explain", "ref.h5", "evil.h5", "--model", model)
        b.run("calibrate", "evil.h5", "ref.h5", "-o", "fit.yaml", "--allow", "extra,missing", "--force")
        b.run("import", "evil.h5", "-o", "in.h5", "--dry-run")

    def correct(f):
        for k in ("engine", "engine_version", "device"):
            f["run"].attrs[k] = TEXT
        f["step.0/layer0/q_rope"][...] += 1e-6
        del f["step.0/layer0/q_rope"].attrs["digest"]

    change("ref.h5", "evil.h5", correct)
    b.run("calibrate", "ref.h5", "evil.h5", "-o", "fit.yaml", "--name", TEXT, "--force", want=0)
    if os.path.exists("fit.yaml"):
        with open("fit.yaml", "rb") as f:
            b.look("calibrate -o", f.read())
        b.reports("compare", "ref.h5", "evil.h5", "--limits", "fit.yaml")


def folders(b):
    """Names of files, and the summaries that are joined: what a part says of another."""
    name = os.fsencode(TEXT) + b"\xff\x1b[2J.h5"
    for folder, recording in (b"refs", b"ref.h5"), (b"cands", b"evil.h5"):
        os.mkdir(folder)
        shutil.copy(recording, folder + b"/" + name)
        shutil.copy(recording, folder + b"/plain.h5")
    os.mkdir(b"cands/" + BYTES)
    with open(b"refs/" + BYTES, "wb"):
        pass
    for form in "text", "json":
        b.run("evaluate", "--recordings", "refs", "cands", "--format", form)
    b.run("calibrate", "refs", "cands", "-o", "folders.yaml", "--force")
    b.run("compare", "refs", "cands", "cands")
    b.run("compare", "refs", "cands", "-o", "reports.html", "--force")
    for done in os.listdir(b"."):
        if done.startswith(b"reports."):
            with open(done, "rb") as f:
                b.look("compare folders -o", f.read())
    evil_reports(b)
    shutil.copy("ref.h5", b"cands/alone" + name)
    for part in "1", "2":
        b.run("compare", "refs", "cands", "-q", "--part", part + "/2", "--summary", f"part{part}.json")
        with open(f"part{part}.json", "rb") as f:
            b.look("--summary", f.read())
    b.run("merge", "part1.json", "part2.json", want=1)
    with open("part1.json", encoding="utf-8") as f:
        summary = json.load(f)
    for key in "reference", "candidate", "schema", "work", "verdict":
        evil_summary(b, {**summary, key: TEXT})
    for key in "name", "words", "in", "verdict":
        evil_summary(b, {**summary, "pairs": [{**summary["pairs"][0], key: TEXT}] + summary["pairs"][1:]})
    evil_summary(b, {**summary, "next": [TEXT]})
    evil_summary(b, {**summary, "pairs": [{**p, "recorded_by": [TEXT, TEXT]} for p in summary["pairs"]]})


def paths_of(x, at=()):
    """The places of strings in JSON; those in lists count as one."""
    if isinstance(x, dict):
        return {p for k, v in x.items() for p in paths_of(v, at + (k,))}
    return {p for v in x for p in paths_of(v, at + (None,))} if isinstance(x, list) else {at} - {()} if isinstance(
        x, str) else set()


def replaced(x, at):
    if not at:
        return TEXT
    if isinstance(x, list):
        return [replaced(v, at[1:]) if at[0] is None else v for v in x]
    return {k: replaced(v, at[1:]) if k == at[0] else v for k, v in x.items()} if isinstance(x, dict) else x


def evil_reports(b):
    """A JSON report with our text in the place of any string, in every other form."""
    b.run("compare", "ref.h5", "half.h5", "--bitwise", "-o", "report.json", "--force", "-q")
    with open("report.json", encoding="utf-8") as f:
        report = json.load(f)
    for at in sorted(paths_of(report), key=str):
        with open("evil.json", "w", encoding="utf-8") as f:
            json.dump(replaced(report, at), f, ensure_ascii=False)
        for form in "text", "json", "junit", "markdown", "html", "csv":
            b.run("report", "evil.json", "--format", form)


def evil_summary(b, summary):
    with open("evil.json", "w", encoding="utf-8") as f:
        json.dump(summary, f, ensure_ascii=False)
    shutil.copy("evil.json", os.fsencode(TEXT) + b".json")
    b.run("merge", os.fsencode(TEXT) + b".json", "part1.json")
    b.run("merge", "evil.json", "part2.json", "-o", "all.json", "--force")
    if os.path.exists("all.json"):
        with open("all.json", "rb") as f:
            b.look("merge -o", f.read())
        os.remove("all.json")


def prompts(b, model):
    for line in ('{"name": "%s", "ids": [5]}', '{"name": "a", "prompt": "%s"}', '{"%s": 1}', "%s",
                 '{"name": "a", "ids": "%s"}', '{"name": "a", "ids": [5], "%s": 1}'):
        for text in MARKS, TEXT, json.dumps(TEXT)[1:-1]:
            with open("prompts.jsonl", "w", encoding="utf-8", newline="") as f:
                f.write(line % text + "\n")
            b.run("capture", "ref", model, "--prompts", "prompts.jsonl", "-o", "prompted")
            if os.path.isdir("prompted"):
                b.run("compare", "ref.h5", "prompted/a.h5")
                b.run("show", "prompted/a.h5")
                shutil.rmtree("prompted")


def texts_of_people(b):
    """Limits and name maps, and a report that was one of ours."""
    line = '  - { match: "%s", nmse: 1, why: "%s" }\n'
    for why in TEXT, MARKS:
        for limits in ('version: 1\nname: "%s"\nrules:\n' % why + line % (why, why),
                       "version: 1\nname: x\nrules:\n" + line % ("layer*", why),
                       "version: 1\n%s: 1\n" % why, "version: 1\nextends: %s\n" % why,
                       "version: 1\nname: x\ndefaults: { %s: 1 }\n" % why):
            for escaped in False, True:  # YAML refuses some of them raw
                text = limits.encode("unicode_escape").decode().replace("\\n", "\n") if escaped else limits
                with open("own.yaml", "w", encoding="utf-8", newline="") as f:
                    f.write(text)
                b.run("limits", "own.yaml")
                b.run("limits", "own.yaml", "--format", "json")
                b.run("limits", "own.yaml", "--recording", "ref.h5")
                b.run("compare", "ref.h5", "evil.h5", "--limits", "own.yaml")
                b.run("compare", "ref.h5", "evil.h5", "--names", "own.yaml")
        with open("map.yaml", "w", encoding="utf-8", newline="") as f:
            f.write('version: 1\nrules:\n  - { from: "%s", to: "%s" }\n' % (why, why))
        b.run("compare", "ref.h5", "evil.h5", "--names", "map.yaml")
    with open("was.json", "w", encoding="utf-8") as f:
        json.dump({"schema": TEXT, TEXT: 1}, f, ensure_ascii=False)
    b.run("compare", "ref.h5", "evil.h5", "--baseline", "was.json")
    for args in (("compare", TEXT, "ref.h5"), ("compare", "ref.h5", "evil.h5", "--allow", TEXT),
                 ("compare", "ref.h5", "evil.h5", "--points", TEXT), (TEXT,),
                 ("show", "ref.h5", TEXT), ("compare", "--" + TEXT), ("capture", TEXT, "x"),
                 ("import", TEXT, "-o", "x.h5"), ("points", TEXT), ("limits", TEXT),
                 ("limits", "fp32.yaml", TEXT), ("help", TEXT), ("weights", TEXT, "ref.h5"),
                 ("evaluate", TEXT, "--ids", "1"), ("isolate", TEXT, "--ids", "1"), ("synth", TEXT, "-o", "x")):
        b.run(*args)
        b.run(*(a.encode() if a != TEXT else BYTES for a in args))


def safetensors(path, tensors, metadata):
    head, at = {"__metadata__": metadata}, 0
    for name, x in tensors.items():
        head[name] = {"dtype": "F32", "shape": list(x.shape), "data_offsets": [at, at + x.nbytes]}
        at += x.nbytes
    text = json.dumps(head, ensure_ascii=False).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(x.astype("<f4").tobytes() for x in tensors.values()))


def gguf_string(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf(path, name, keys):
    out = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys))
    for key, value in keys.items():
        out += gguf_string(key) + struct.pack("<I", 8) + gguf_string(value)
    out += gguf_string(name) + struct.pack("<IQIQ", 1, 4, 0, 0)
    with open(path, "wb") as f:
        f.write(out + bytes(-len(out) % 32) + np.zeros(4, "<f4").tobytes())


def dumps(b, model):
    x = np.zeros((3, 4), "<f4")
    made = []
    for i, (name, dims, engine) in enumerate(((MARKS, "token hidden", TEXT), ("embed", MARKS + " hidden", TEXT),
                                              ("embed", TEXT, "x"), (TEXT, "token hidden", "x"),
                                              ("layer0." + MARKS, "token hidden", "x"))):
        os.mkdir(f"dump{i}")
        np.save(f"dump{i}/1.npy", x)
        with open(f"dump{i}/manifest.jsonl", "w", encoding="utf-8") as f:
            for line in ({"vernier_dump": 1}, {"run": {"engine": engine, "precision": "f32", MARKS: TEXT}},
                         {"config": TEXT}, {"step": 0, "ids": [1, 2, 3]},
                         {"tensor": name, "file": "1.npy", "dtype": "f32", "shape": [3, 4], "dims": dims, "op": TEXT},
                         {"complete": 1}):
                f.write(json.dumps(line, ensure_ascii=False) + "\n")
        made.append(f"dump{i}")
    for i, line in enumerate(('{"%s":1}' % MARKS, '{"run":{"engine":"%s"}}' % MARKS,
                              '{"tensor":"%s","file":"%s","dtype":"%s"}' % (MARKS, MARKS, MARKS), MARKS)):
        os.mkdir(f"line{i}")
        with open(f"line{i}/manifest.jsonl", "w", encoding="utf-8") as f:
            f.write('{"vernier_dump":1}\n' + line + "\n")
        made.append(f"line{i}")
    os.mkdir("npys")
    np.save("npys/" + MARKS + ".npy", x)
    with open("npys/" + TEXT + ".npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(TEXT.encode())) + TEXT.encode())
    for name in MARKS, TEXT, "a/../" + MARKS:
        with zipfile.ZipFile(f"dump{len(made)}.npz", "w") as z:
            z.write("dump0/1.npy", name + ".npy")
            z.writestr(name, b"x")
        made.append(f"dump{len(made)}.npz")
    safetensors("dump.safetensors", {MARKS: x, TEXT: x}, {"engine": TEXT, "precision": "f32", TEXT: TEXT})
    gguf("dump.gguf", MARKS, {"general.architecture": "qwen2", "general.name": TEXT})
    gguf("arch.gguf", TEXT, {"general.architecture": TEXT, TEXT: TEXT})
    safetensors("t_debug_tree_FULL_TENSORS.safetensors", {TEXT: x}, {})
    with open("t_debug_tree_FULL_TENSORS.json", "w", encoding="utf-8") as f:
        json.dump({"module_path": TEXT, "inputs": {TEXT: TEXT}, "outputs": None,
                   "children": [{"module_path": MARKS, TEXT: TEXT}]}, f, ensure_ascii=False)
    for dump in *made, "npys", "dump.safetensors", "dump.gguf", "arch.gguf", "t_debug_tree_FULL_TENSORS.json":
        b.run("import", dump, "-o", "in.h5", "--ids", "1,2,3", "--force")
        b.run("import", dump, "--dry-run", "--ids", "1,2,3", "--names", "hf")
        done = b.run("import", dump, "-o", "in.h5", "--ids", "1,2,3", "--unmapped", "keep", "--force", "--partial",
                     "--engine", TEXT)
        if done.returncode == 0:
            b.every("ref.h5", "in.h5")
            b.run("weights", "ref.h5", "in.h5")
    for path in "dump.gguf", "arch.gguf", "dump.safetensors":
        b.run("points", path)
        b.run("weights", path, model)


def models(b, model):
    """A model whose config, weights and tokenizer are hostile, each in a copy."""

    def tokenizer(t):
        vocab = t["model"]["vocab"]
        for i, word in enumerate(sorted(vocab, key=vocab.get)[300:306]):
            vocab[TEXT + str(i)] = vocab.pop(word)

    def added(t):
        t["added_tokens"] = [{"id": 511, "content": TEXT, "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True}]

    def change_json(name, work):
        def change_it(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                x = json.load(f)
            work(x)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                json.dump(x, f, ensure_ascii=False)
        return change_it

    def weights(folder):
        with open(os.path.join(folder, "model.safetensors"), "rb") as f:
            data = f.read()
        n = struct.unpack("<Q", data[:8])[0]
        head = json.loads(data[8:8 + n])
        head["model.layers.0." + TEXT] = head.pop("model.layers.0.self_attn.q_proj.weight")
        head["__metadata__"] = {TEXT: TEXT}
        text = json.dumps(head, ensure_ascii=False).encode()
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", len(text)) + text + data[8 + n:])

    works = [change_json("config.json", lambda c, k=k: c.update({k: TEXT}))
             for k in ("model_type", "hidden_act", "rope_scaling", "torch_dtype", "num_hidden_layers", "layer_types")]
    works += [change_json("config.json", lambda c: c.update({"rope_scaling": {"rope_type": TEXT, TEXT: 1}})),
              change_json("tokenizer.json", tokenizer), change_json("tokenizer.json", added),
              change_json("tokenizer.json", lambda t: t["model"].update({"type": TEXT})),
              change_json("tokenizer.json", lambda t: t.update({"pre_tokenizer": {"type": TEXT}})), weights,
              lambda folder: None]
    for i, work in enumerate(works):
        folder = f"model{i}{TEXT}"
        shutil.copytree(model, folder)
        work(folder)
        b.run("points", folder)
        b.run("capture", "ref", folder, "--ids", "300,301,302,303,511", "-o", "m.h5", "--force")
        b.run("capture", "ref", folder, "--prompt", "hello", "-o", "m.h5", "--force")
        b.run("weights", folder, model)
        b.run("evaluate", folder, "--ids", "300,301,302,303,304,305", "--candidate", "ref", "--decode", "2")
        b.run("evaluate", folder, "--ids", "300,301,302,303,304,305", "--candidate", "ref", "--decode", "2", "--format",
              "json")
        b.run("isolate", folder, "--ids", "300,301", "--check", "true " + MARKS)
        b.run("isolate", folder, "--ids", "300,301", "--candidate", "ref", "--precision", "f16")
        b.run("table", folder, "--ids", "300,301")
        if os.path.exists("m.h5"):
            b.run("show", "m.h5")
            b.run("show", "m.h5", "--format", "json")
            b.run("compare", "ref.h5", "m.h5", "--model", folder)
            os.remove("m.h5")


def paths(b):
    """The path itself, also where no locale knows its bytes."""
    os.mkdir(BYTES.replace(b"/", b"_"))
    folder = BYTES.replace(b"/", b"_")
    for name in b"ref.h5", b"evil.h5":
        shutil.copy(name, folder + b"/" + name)
    b.every(folder + b"/ref.h5", folder + b"/evil.h5")
    shutil.copytree(folder, b"other")
    b.run("compare", folder, b"other", "-q", "-o", b"reports")
    b.run("compare", folder, b"other")
    b.run("calibrate", folder + b"/ref.h5", folder + b"/evil.h5", "-o", folder + b"/fit.yaml")
    b.run("import", folder, "-o", "x.h5")
    b.run("limits", folder + b"/fit.yaml")
    with open(folder + b"/cut.h5", "wb") as f:
        f.write(b"\x89HDF\r\n\x1a\n")
    b.run("show", folder + b"/cut.h5")


def main():
    b = Bench(os.path.abspath(sys.argv[1]))
    model = os.path.abspath(os.path.join(FIXTURES, "qwen2-trained"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        b.run("capture", "ref", model, "--prompt", "hello there", "-o", "ref.h5", want=0)
        b.run("capture", "ref", model, "--prompt", "hello there", "--precision", "f16", "-o", "half.h5", want=0)
        recordings(b, model)
        folders(b)
        prompts(b, model)
        texts_of_people(b)
        dumps(b, model)
        models(b, model)
        paths(b)
        os.chdir("/")
    print(f"{b.runs} runs; outputs that show a code: {b.marked}, a newline: {b.broken}; outputs with "
          f"a forbidden character, and other failures: {len(b.bad)}")
    assert b.marked > 200 and b.broken > 100, "the strings do not reach the outputs"
    return 1 if b.bad else 0


if __name__ == "__main__":
    sys.exit(main())
