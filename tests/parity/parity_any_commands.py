#!/usr/bin/env python3
"""parity_any_commands.py VERNIER [TEST...]: reference, replay, explain and isolate of a recording of any PyTorch
module, and what a file that somebody else made can do. 77, skipped, without transformers."""

import contextlib
import copy
import json
import os
import re
import runpy
import subprocess
import sys

from any_help import HERE, PACKAGE, main, recorded, refused, test
import h5py
import numpy as np
import torch
import transformers as T
import vernier_parity
from any_models import MODELS
from vernier_parity import calls, sources
from vernier_parity.candidate import Candidate
from vernier_parity.rerun import Models, converted

PYTHON = [sys.executable, "-S", "-E", os.path.join(HERE, "..", "support", "warm.py")]


@test
def a_cache_that_was_filled_before_is_refused_by_the_reference(folder):
    m, inputs = MODELS["mixtral"]()
    x = inputs(0)["input_ids"]
    with torch.no_grad():
        cache = m(x[:, :9], use_cache=True).past_key_values
        with vernier_parity.record(m, folder + "/c.h5", any=True):
            m(x[:, 9:], past_key_values=cache)
    with refused("filled before"):
        vernier_parity.reference(m, folder + "/c.h5", folder + "/c-ref.h5")
    assert not os.path.exists(folder + "/c-ref.h5")


@test
def results_of_an_encoder_are_made_again(folder):
    """generate() hands the encoder's results to the decoder. Moonshine has a class of its own for them."""
    m, inputs = MODELS["moonshine"]()
    m.generation_config.eos_token_id = None
    with torch.no_grad(), vernier_parity.record(m, folder + "/e.h5"):
        m.generate(input_values=inputs(0)["input_values"], max_new_tokens=2, do_sample=False, pad_token_id=0)
    vernier_parity.reference(MODELS["moonshine"]()[0], folder + "/e.h5", folder + "/e-ref.h5")
    assert calls._result("MoonshineModel", m) is dict, "a name of a file chooses among results alone"


@test
def a_recording_of_a_known_family_is_explained_by_the_engine(folder):
    """Its names are the standard ones, so the reference is vernier's own engine. It stays, as the report's commands
    name it, unless another file has its name."""
    m, inputs = MODELS["gemma3"]()
    m.save_pretrained(folder + "/m")
    with open(folder + "/kFalse.ref.h5", "w", encoding="utf-8") as f:
        f.write("mine")
    for wrong in (False, True):
        path, report = f"{folder}/k{wrong}.h5", f"{folder}/k{wrong}.txt"
        if wrong:
            with torch.no_grad():
                m.model.layers[1].mlp.down_proj.weight.mul_(1.01)
        recorded(m, path, inputs(0)["input_ids"], weights=False, any=False)
        assert vernier_parity.explain(folder + "/m", path, report, program=sys.argv[1]) == wrong
    with open(report, encoding="utf-8") as f:
        said = f.read()
    assert "layer1.down_proj" in said.split("explained")[1]
    assert folder + "/kTrue.ref.h5" in said and os.path.exists(folder + "/kTrue.ref.h5")
    with open(folder + "/kFalse.ref.h5", encoding="utf-8") as f:
        assert f.read() == "mine"


@test
def a_recording_chooses_no_code(folder):
    """Names of classes in a file that somebody made select nothing but what the directory's model is."""
    m, inputs = MODELS["bert"]()
    m.save_pretrained(folder + "/bert")
    recorded(m, folder + "/h.h5", inputs(0)["input_ids"])
    for word in ("transformers.pipeline", "os.system", "transformers.GPT2Model", "x.__import__", "x.AutoModel"):
        with h5py.File(folder + "/h.h5", "r+") as f:
            f["run"].attrs["model_class"] = word
        with Candidate(folder + "/h.h5") as c:
            assert type(Models(folder + "/bert", c).get(torch.float32)) is T.BertModel, word
    calls = lambda text: _replace(folder + "/h.h5", "plan/calls", text)
    calls('{"step": 0, "path": "", "arguments": {"input_ids": {"object": 0, "new": "Popen"}}}')
    with refused("Popen"):
        vernier_parity.reference(folder + "/bert", folder + "/h.h5", folder + "/h-ref.h5")
    calls('{"step": 0, "path": "encoder.nothing", "arguments": {}}')
    with refused("encoder.nothing"):
        vernier_parity.reference(folder + "/bert", folder + "/h.h5", folder + "/h-ref.h5")
    calls('{"step": 0, "path": "", "arguments": {"input_ids": {"dict": {}, "class": "__class__"}}}')
    with refused("cannot be called"):
        vernier_parity.reference(folder + "/bert", folder + "/h.h5", folder + "/h-ref.h5")


def program(folder, words):
    """(status, lines of stderr) of `python -m vernier_parity WORDS`, in a fork of this process: to import torch and
    transformers takes seconds."""
    with open(os.path.join(folder, "stderr"), "w+", encoding="utf-8") as err:
        child = os.fork()
        if child == 0:
            status = 3
            try:
                os.chdir(folder)
                os.dup2(err.fileno(), 2)
                sys.argv, sys.stderr = ["vernier_parity", *words], err
                runpy.run_module("vernier_parity", run_name="__main__")
            except SystemExit as e:
                status = e.code
            finally:
                err.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        err.seek(0)
        return status, err.read()


def _replace(path, name, *texts):
    with h5py.File(path, "r+") as f:
        del f[name]
        f.create_dataset(name, data=texts, dtype=h5py.string_dtype())


@test
def a_plan_that_is_none_is_refused(folder):
    """Also where each line doubles the nodes before it: few lines would fill the memory."""
    module = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU())
    path = folder + "/plan.h5"
    recorded(module, path, torch.ones(2, 4))
    with h5py.File(path) as f:
        right = {k: [x.decode() for x in f["plan"][k][()]] for k in ("nodes", "calls", "modules")}
    nodes, node = right["nodes"], json.loads(right["nodes"][-1])
    doubling = nodes + ['{"step": 1, "same_as": 0}', json.dumps({**node, "out": ["x"]})] * 12
    call = lambda **more: ["calls", json.dumps({**json.loads(right["calls"][0]), **more})]
    more = lambda **other: ["nodes", *nodes, json.dumps({**node, **other})]
    for name, *texts in (["nodes", *doubling], ["nodes", *nodes, '{"step": 0, "same_as": 0}'],
                         ["nodes", *nodes, '{"step": 2, "same_as": 1}'], more(step={}), more(out=[{}]),
                         ["nodes", 9000 * "["], call(path={}), call(arguments=3), call(arguments={"0": {}}),
                         call(arguments={"0": {"in": {}, "dtype": "f32"}}), call(arguments={"0": {"list": 3}}),
                         call(returned={"x": "y"}), ["modules", "[]"], ["modules", '{"path": {}}'],
                         ["modules", '{"path": "", "const": 3}']):
        _replace(path, "plan/" + name, *texts)
        with refused(path):
            vernier_parity.replay(module, path, folder + "/plan-replayed.h5", force=True)
        _replace(path, "plan/" + name, *right[name])
    vernier_parity.replay(module, path, folder + "/plan-replayed.h5", force=True)


@test
def bad_files_end_with_one_line_and_status_2(folder):
    m, inputs = MODELS["bert"]()
    m.save_pretrained(folder + "/bert2")
    recorded(m, folder + "/b.h5", inputs(0)["input_ids"])
    recorded(m, folder + "/lost.h5", inputs(0)["input_ids"])
    with h5py.File(folder + "/lost.h5", "r+") as f:
        f.move("step.0/pooler.dense", "step.0/pooler.other")
    recorded(m, folder + "/broken.h5", inputs(0)["input_ids"])
    _replace(folder + "/broken.h5", "plan/nodes", '{"op": "Linear", "step": 0}')
    os.mkdir(folder + "/strange")
    with open(folder + "/strange/config.json", "w", encoding="utf-8") as f:
        f.write('{"model_type": "nonsense\\u001b[2J"}')
    with open(folder + "/text.h5", "w", encoding="utf-8") as f:
        f.write("no recording")
    with torch.no_grad(), vernier_parity.Recorder(folder + "/other.h5", engine="x", precision="f32",
                                                  token_ids=[1, 2]) as rec:
        rec.put("embed", np.zeros((2, 3), "f4"))
    for name, file in ("empty", None), ("lora", "adapter_config.json"), ("pipeline", "model_index.json"):
        os.mkdir(f"{folder}/{name}")
        if file:
            with open(f"{folder}/{name}/{file}", "w", encoding="utf-8") as f:
                f.write("{}")
    for model, cand, word in (("bert2", "lost", "no node of /plan"), ("bert2", "broken", "/plan"),
                              ("bert2", "text", "not an HDF5 file"), ("bert2", "other", "PyTorch"),
                              ("bert2", "absent", "no such file"), ("empty", "b", "config.json"),
                              ("lora", "b", "merge it"), ("pipeline", "b", "pipeline of diffusers"),
                              ("text.h5", "b", "is a file"), ("owner/name", "b", "hf download"),
                              ("strange", "b", "nonsense")):
        for words in (("replay", model, cand + ".h5"), ("reference", model, "--like", cand + ".h5")):
            status, said = program(folder, [*words, "-o", "out.h5"])
            assert status == 2 and word in said and "\x1b" not in said, (words, status, said)
            assert model == "strange" or len(said.splitlines()) == 1, said  # of transformers' own error
            assert not os.path.exists(folder + "/out.h5")
    vernier = os.path.abspath(sys.argv[1])
    for words, first in ((["strange", "b.h5", "--vernier", vernier, "-o", "r.pdf"], "no report has the file ending"),
                         (["strange", "b.h5", "--vernier", vernier, "--frob"], "unknown option '--frob'"),
                         (["strange", "b.h5", "--vernier", "/nowhere"], "no such program"),
                         (["b.h5", "strange"], "the model comes first")):
        status, said = program(folder, ["explain", *words])  # before the model is opened
        assert status == 2 and first in said and "nonsense" not in said, (words, status, said)


@test
def progress_is_said_on_a_terminal(folder):
    m, inputs = MODELS["bert"]()
    m.save_pretrained(folder + "/bert4")
    recorded(m, folder + "/p.h5", inputs(0)["input_ids"])
    line = [sys.executable, "-m", "vernier_parity", "replay", "bert4", "p.h5", "-o", "rep.h5", "--force"]
    how = dict(cwd=folder, env={**os.environ, "PYTHONPATH": PACKAGE, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}, check=True)
    own, terminal = os.openpty()
    with open(own, "rb", buffering=0) as screen:
        subprocess.run(line, stderr=terminal, **how)
        os.close(terminal)
        text = b""
        with contextlib.suppress(OSError):  # the terminal was closed
            while more := screen.read(4096):
                text += more
    for what in (b"the model in f64: ", b"the model in f32: ", b"replay in f64: ", b"replay in f32: "):
        assert re.search(what + rb"(\d+) of \1 operations\x1b\[K\r\n", text), (what, text[-600:])
    status, said = program(folder, line[3:])
    assert status == 0 and "operations" not in said, said


@test
def a_model_without_a_weight_is_refused(folder):
    m, inputs = MODELS["bert"]()
    m.save_pretrained(folder + "/bert3")
    recorded(m, folder + "/w.h5", inputs(0)["input_ids"])
    from safetensors.torch import load_file, save_file
    weights = load_file(folder + "/bert3/model.safetensors")
    weights.pop("pooler.dense.weight")
    save_file(weights, folder + "/bert3/model.safetensors", {"format": "pt"})
    with refused("pooler.dense.weight"):
        vernier_parity.replay(folder + "/bert3", folder + "/w.h5", folder + "/w-replayed.h5")


@test
def a_dump_of_another_program_has_the_plan_of_a_recording(folder):
    """Hidden states and scores alone: what is between them is one operation each, and the wrong layer's is named."""
    right, inputs = MODELS["mixtral"]()
    right.save_pretrained(folder + "/m")
    x, vernier, at = inputs(0), os.path.abspath(sys.argv[1]), lambda name: f"{folder}/{name}"
    with torch.no_grad(), vernier_parity.record(right, at("like.h5"), any=True):
        right(**x, output_hidden_states=True)
    other = converted(MODELS["mixtral"]()[0], torch.bfloat16)
    for wrong in (False, True):
        if wrong:
            other.model.layers[1].self_attn.o_proj.weight.data.mul_(1.05)
        with torch.no_grad():
            out = other(**x, output_hidden_states=True)
        np.savez(at("dump.npz"), **{f"out.hidden_states.{i}": t.float().numpy() for i, t in enumerate(
            out.hidden_states)}, **{"out.logits": out.logits.float().numpy()})
        subprocess.run([vernier, "import", at("dump.npz"), "--ids", json.dumps(x["input_ids"].tolist()), "--unmapped",
                        "keep", "--precision", "bf16", "-o", at("cand.h5"), "--force"], check=True)
        status = vernier_parity.explain(at("m"), at("cand.h5"), at(f"{wrong}.json"), like=at("like.h5"),
                                        program=vernier)
        with open(at(f"{wrong}.json"), encoding="utf-8") as f:
            said = json.load(f)
        assert status == wrong and said["origins"] == ["out.hidden_states.2"] * wrong, (status, said["origins"])
    with refused("PyTorch"):
        vernier_parity.replay(at("m"), at("cand.h5"), at("no.h5"))
    with vernier_parity.Recorder(at("none.h5"), engine="x", precision="f32", token_ids=[1, 2]) as rec:
        rec.put("strange", np.zeros((2, 3), "f4"), "")
    with refused("no tensor has the name"):
        vernier_parity.replay(at("m"), at("none.h5"), at("no.h5"), like=at("like.h5"))


OFFLOADED = """
import os, sys, threading, vernier_parity
most, stop = [0], threading.Event()
def held():
    with open("/proc/self/status") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith(("RssAnon", "RssShmem"))) << 10
def watch():
    while not stop.wait(0.002):
        most[0] = max(most[0], held())
model, cand, out, offload = sys.argv[1:]
import transformers, torch
torch.set_num_threads(1)
from vernier_parity import rerun
start, t = held(), threading.Thread(target=watch)
t.start()
vernier_parity.reference(model, cand, out, offload=offload == "1")
stop.set()
t.join()
print(most[0] - start)
"""


@test
def a_model_larger_than_memory_is_computed_leaf_by_leaf(folder):
    """The reference in float32 holds less memory than its weights take, and is the same."""
    config = T.LlamaConfig(vocab_size=400, hidden_size=512, intermediate_size=1024, num_hidden_layers=14,
                           num_attention_heads=8, num_key_value_heads=8)
    torch.manual_seed(0)
    m = T.LlamaForCausalLM(config).bfloat16().eval()
    m.save_pretrained(folder + "/m")
    weights = 4 * sum(p.numel() for p in m.parameters())
    recorded(m, folder + "/c.h5", torch.arange(3, 9)[None], any=True)
    del m
    most = []
    for offload in "01":
        done = subprocess.run([sys.executable, "-c", OFFLOADED, folder + "/m", folder + "/c.h5",
                               f"{folder}/ref{offload}.h5", offload], text=True, capture_output=True, check=False,
                              env={**os.environ, "PYTHONPATH": PACKAGE, "HF_HUB_DISABLE_PROGRESS_BARS": "1"})
        assert done.returncode == 0, done.stderr
        most.append(int(done.stdout))
    assert most[0] > weights > most[1], (most, weights)
    with Candidate(folder + "/ref0.h5") as a, Candidate(folder + "/ref1.h5") as b:
        assert a.sum() == b.sum()
    small, inputs = MODELS["mixtral"]()  # a module that is given, and both formats of a replay
    recorded(converted(copy.deepcopy(small), torch.bfloat16), folder + "/s.h5", inputs(0)["input_ids"])
    for offload in (False, True):
        vernier_parity.replay(small, folder + "/s.h5", f"{folder}/s{offload}.h5", offload=offload)
    with open(folder + "/sFalse.h5", "rb") as a, open(folder + "/sTrue.h5", "rb") as b:
        assert a.read() == b.read()


def rebuilt(parts, files, dtype):
    """A weight of what /plan/sources says of it, computed with torch alone."""
    def part(p):
        one = [files[x["tensor"]][slice(*x.get("rows", (None,)))].to(dtype) for x in p]
        whole = torch.cat(one)
        return whole.t() if p[0].get("transposed") else whole
    return part(parts[0]) if len(parts) == 1 else torch.stack([part(p) for p in parts])


@test
def each_weight_is_known_by_the_tensors_of_the_files(folder):
    """Fused experts, parts of a fused product, transposed and tied ones: also of a wrong engine, of which reports say
    what it holds."""
    from safetensors.torch import load_file, save_file
    m, inputs = MODELS["mixtral"]()
    m.save_pretrained(folder + "/m")
    files = load_file(folder + "/m/model.safetensors")
    at = lambda name: f"{folder}/{name}"
    for wrong in (False, True):
        c = T.MixtralForCausalLM.from_pretrained(folder + "/m", dtype=torch.bfloat16)
        p = c.model.layers[1].mlp.experts.down_proj.data
        if wrong:
            p[[0, 1]] = p[[1, 0]]
            p[2, 3] = 0
        recorded(c, at("c.h5"), inputs(0)["input_ids"], force=True)
        with Candidate(at("c.h5")) as cand:
            lines = {x["weight"]: x["parts"] for x in cand.sources}
        assert set(lines) == set(c.state_dict()), set(lines) ^ set(c.state_dict())
        for name, parts in lines.items():
            if wrong and "1.mlp.experts.down" in name:
                assert [q is None for q in parts] == [False, False, True, False, False, False], parts
                parts[2] = [dict(tensor="model.layers.1.block_sparse_moe.experts.2.w2.weight")]
                files["model.layers.1.block_sparse_moe.experts.2.w2.weight"][3] = 0
            assert torch.equal(rebuilt(parts, files, torch.bfloat16), c.state_dict()[name]), name
        status = vernier_parity.explain(at("m"), at("c.h5"), at(f"{wrong}.txt"), program=os.path.abspath(sys.argv[1]))
        with open(at(f"{wrong}.txt"), encoding="utf-8") as f:
            text = " ".join(f.read().split())
        of, own = "model.layers.1.block_sparse_moe.experts.", "weights: model.layers.1.mlp.experts.down_proj"
        assert status == wrong and (own in text) == wrong, (status, text)
        for k, words in ((0, f"{of}1.w2.weight, the reference's {of}0.w2.weight"), (2, "in no file,")):
            assert not wrong or f"{own}[{k}]: in the model's files the candidate's is {words}" in text, text
    vernier_parity.reference(c, at("c.h5"), at("ref.h5"))  # of the wrong module itself
    assert list(load_file(at("ref.safetensors"))) == ["model.layers.1.mlp.experts.down_proj"]
    split = torch.nn.ModuleDict({k: torch.nn.Linear(8, n) for k, n in (("q", 8), ("k", 4), ("o", 6))})
    save_file({"qk.weight": torch.cat([split.q.weight, split.k.weight]), "qk.bias": torch.cat(
        [split.q.bias, split.k.bias]), "o.weight": split.o.weight.t().contiguous(), "o.bias": split.o.bias.flip(0)},
        folder + "/model.safetensors")
    lines, rest = sources.of_model(split, folder)
    parts = {x["weight"]: x["parts"][0] for x in lines}
    assert parts["k.weight"] == [dict(tensor="qk.weight", rows=[8, 12])] and parts["q.bias"] == [
        dict(tensor="qk.bias", rows=[0, 8])] and parts["o.weight"] == [dict(tensor="o.weight", transposed=True)], parts
    assert list(rest) == ["o.bias"] and parts["o.bias"] is None, rest


@test
def isolate_names_the_modules_whose_errors_are_the_divergence(folder):
    """One wrong module, two that are only right together, none."""
    right, inputs = MODELS["mixtral"]()
    right.save_pretrained(folder + "/mixtral")

    def wrong_at(*paths):
        m = converted(MODELS["mixtral"]()[0], torch.bfloat16)
        for path in paths:
            m.get_submodule(path).register_forward_hook(
                lambda m, a, o: (o[0] * 1.5, *o[1:]) if isinstance(o, tuple) else o * 1.5)
        recorded(m, folder + "/i.h5", inputs(0)["input_ids"], force=True)
        return folder + "/i.h5"

    one, two = "model.layers.1.self_attn.o_proj", "model.layers.0.mlp.experts"
    for paths in ((), (one,), (two, one)):
        found = vernier_parity.isolate(right, wrong_at(*paths))
        assert sorted(found.modules) == sorted(paths), (paths, found.modules)
        assert (found.floors > 4) == bool(paths) and found.repaired <= 4, (found.floors, found.repaired)
    done = subprocess.run([*PYTHON, "-m", "vernier_parity", "isolate", folder + "/mixtral", folder + "/i.h5"],
                          text=True, capture_output=True, env={**os.environ, "PYTHONPATH": PACKAGE})
    assert done.returncode == 1 and done.stdout.splitlines()[1:3] == [two, one], done


if __name__ == "__main__":
    sys.exit(main())
