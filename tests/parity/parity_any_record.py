#!/usr/bin/env python3
"""parity_any_record.py VERNIER: what vernier_parity.record() keeps of any PyTorch module, what it refuses, and what a
file that somebody else made can do. torch is the judge. 77, skipped, without transformers."""

import contextlib
import copy
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.abspath(os.path.join(HERE, "..", "..", "capture", "python"))
sys.path[:0] = [HERE, PACKAGE]

import needs_transformers  # noqa: E402, F401
import h5py  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers as T  # noqa: E402

import any_judge  # noqa: E402
import vernier_parity  # noqa: E402
from vernier_parity import calls  # noqa: E402
from any_models import MODELS, Loop, numbers, shaken  # noqa: E402
from vernier_parity import RecordingError, choices, replayed, sources  # noqa: E402
from vernier_parity.align import align  # noqa: E402
from vernier_parity.candidate import Candidate  # noqa: E402
from vernier_parity.compute import differing  # noqa: E402
from vernier_parity.replaying import Replay  # noqa: E402
from vernier_parity.rerun import Models, converted  # noqa: E402
from vernier_parity.tracer import Trace  # noqa: E402

TESTS = []
PYTHON = [sys.executable, "-S", "-E", os.path.join(HERE, "..", "support", "warm.py")]


def test(f):
    TESTS.append(f)
    return f


@contextlib.contextmanager
def refused(word):
    try:
        yield
    except RecordingError as e:
        assert word in str(e), f"said {e}; expected {word}"
        assert "\n" not in str(e), "more than one line"
        return
    raise AssertionError(f"not refused; expected {word}")


def recorded(model, path, *args, **how):
    with torch.no_grad(), vernier_parity.record(model, path, **{"any": True, **how}):
        return model(*args)


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 6), torch.nn.Linear(6, 4)
        self.layer3 = torch.nn.Linear(4, 4)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x, scale=2.0):
        y = torch.relu(self.a(x)) * scale
        if y.sum().item() > 0:
            y = y.clone()
            y[:, 0].mul_(3)
        return dict(first=self.layer3(self.b(self.drop(y))), twice=(y, y + 1))


@test
def leaves_and_results_have_the_values_that_hooks_see(folder):
    m, x, seen = shaken(Small()), torch.randn(5, 8), {}
    for name in ("a", "b", "layer3"):
        getattr(m, name).register_forward_hook(lambda m, a, o, name=name: seen.update({name: o.clone()}))
    out = recorded(m, folder + "/a.h5", x)
    with vernier_parity.open(folder + "/a.h5") as rec:
        assert set(rec.names()) == {"in.x", "a", "b", "layer3.output", "out.first", "out.twice.0",
                                    "out.twice.1"}, rec.names()
        for name, t in dict(seen, x=x, **{"out.first": out["first"], "out.twice.1": out["twice"][1]}).items():
            held = {"x": "in.x", "layer3": "layer3.output"}.get(name, name)
            assert np.array_equal(rec[held], t.numpy()), name
        assert "item 1 times" in rec.run["values_read"], rec.run


@test
def functions_are_recorded_on_request(folder):
    m, x = shaken(Small()), torch.randn(5, 8)
    recorded(m, folder + "/f.h5", x, functions="{relu,mul}.*")
    with vernier_parity.open(folder + "/f.h5") as rec:
        assert "relu.0" in rec and "mul.0" in rec and "add.0" not in rec, rec.names()
        assert np.array_equal(rec["relu.0"], torch.relu(m.a(x)).detach().numpy())


@test
def a_function_that_makes_a_checkpoint_has_its_name(folder):
    """In the prompt and in a decoded token, whose axis has the length 1."""
    m, inputs = MODELS["mixtral"]()
    taken, made = [], []
    m.model.layers[1].self_attn.o_proj.register_forward_pre_hook(lambda m, a: taken.append(a[0].clone()))
    m.model.layers[1].register_forward_hook(lambda m, a, o: made.append(o.clone()))
    path, ids = folder + "/n.h5", inputs(0)["input_ids"]
    with torch.no_grad(), vernier_parity.record(m, path, functions="layer1.*"):
        m.generate(ids, max_new_tokens=2, min_new_tokens=2, do_sample=False, pad_token_id=0)
    with vernier_parity.open(path) as rec:
        for step, T in ((0, ids.shape[1]), (1, 1)):
            for name, sizes, t in (
                    ("attn_context", dict(batch=1, token=T, head=4, dim=16), taken[step]),
                    ("output", dict(batch=1, token=T, hidden=64), made[step]),
                    ("q_rope", dict(batch=1, head=4, token=T, dim=16), None),
                    ("k_rope", dict(batch=1, kv_head=2, token=T, dim=16), None)):
                a, said = rec[f"step.{step}/layer1.{name}"], rec.attributes(f"layer1.{name}", step)["axes"].split()
                assert dict(zip(said, a.shape)) == sizes, (step, name, a.shape, said)
                order = [said.index(w) for w in sizes]
                assert t is None or np.array_equal(a.transpose(order).reshape(t.shape), t.numpy()), (step, name)
        assert "layer0.q_rope" not in rec, rec.names()
    with vernier_parity.record(m, path, functions="model.layers.1.*", force=True), torch.no_grad():  # as the path, too
        m(ids)
    with vernier_parity.open(path) as rec:
        assert "layer1.attn_residual" in rec and "layer1.q_rope" in rec, rec.names()


class Body(torch.nn.Module):
    """A body of embeddings and layers, whose layer writes into what a function has made."""

    def __init__(self):
        super().__init__()
        self.embed_tokens, self.layers = torch.nn.Embedding(9, 4), torch.nn.ModuleList([torch.nn.Module()])
        self.layers[0].mlp, self.layers[0].forward = torch.nn.Linear(4, 4), self.layer

    def layer(self, x):
        y = x + 1
        return torch.relu_(y) if y.mul_(-1) is y else y

    def forward(self, ids):
        return self.layers[0](self.embed_tokens(ids))


@test
def a_layer_whose_attention_is_none_has_no_rotation(folder):
    m, inputs = MODELS["granite_moe_hybrid"]()
    assert any(layer.self_attn is None for layer in m.model.layers)
    recorded(m, folder + "/h.h5", inputs(0)["input_ids"])


@test
def a_write_does_not_change_what_was_recorded_before(folder):
    m, ids = Body(), torch.arange(9)[None]
    recorded(m, folder + "/w.h5", ids, functions="all")
    with vernier_parity.open(folder + "/w.h5") as rec:
        x = m.embed_tokens(ids).detach()
        assert np.array_equal(rec["layers.0.add.0"], (x + 1).numpy())
        assert np.array_equal(rec["layers.0.mul_.0"], -(x + 1).numpy()), rec.names()
        assert np.array_equal(rec["layer0.output"], torch.relu(-(x + 1)).numpy()), rec.names()


@test
def an_edge_is_a_storage_and_a_write(folder):
    """A write through a view is an edge to the next reader of the storage."""
    recorded(shaken(Small()), folder + "/e.h5", torch.randn(5, 8))
    with Candidate(folder + "/e.h5") as c:
        row = {name: r for r in c.rows for name in r["out"]}
        assert row["mul_.0"]["in"][0] == {"from": "clone.0"}, row["mul_.0"]
        assert row["b"]["in"] == [{"from": "mul_.0"}], row["b"]
        assert row["a"]["in"] == [{"input": "in.x"}] and row["a"]["weights"] == ["a.weight", "a.bias"]


@test
def random_numbers_are_drawn_again(folder):
    m = shaken(Small()).train()
    with torch.no_grad(), Trace(m, keep=True) as trace:
        m(torch.randn(5, 8))
    torch.rand(3)
    assert differing(trace) == []


@test
def memory_that_nobody_wrote_is_not_judged(folder):
    """In the loop, a buffer of results is empty before its rows are written."""
    m, x = shaken(Loop()), MODELS["loop"]()[1](0)["input_ids"]
    recorded(m, folder + "/u.h5", x, functions="all")
    with Candidate(folder + "/u.h5") as c:
        r = Replay(Models(m, c), c)
        replayed.write(r, folder + "/u-replayed.h5")
    rows = any_judge.judge(folder + "/u.h5", folder + "/u-replayed.h5")
    assert any(q["name"].startswith("__setitem__") for q in rows)
    assert not [q["name"] for q in rows if q["wrong"]]


@test
def an_interrupted_run_leaves_a_part(folder):
    m = shaken(Small())
    try:
        with vernier_parity.record(m, folder + "/p.h5"):
            m(torch.randn(5, 8))
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert not os.path.exists(folder + "/p.h5")
    with vernier_parity.open(folder + "/p.h5.partial") as rec:
        assert not rec.complete and "a" in rec
    assert not any(len(x._forward_hooks) + len(x._forward_pre_hooks) for x in m.modules()), "hooks were left"
    recorded(m, folder + "/p.h5", torch.randn(5, 8))  # replaces the part


@test
def what_cannot_be_recorded_is_refused(folder):
    m = shaken(Small())
    with refused("torch.compile"):
        recorded(torch.compile(m, backend="eager"), folder + "/r.h5", torch.randn(5, 8))
    with refused("not called"):
        with vernier_parity.record(m, folder + "/r.h5"):
            pass
    with refused("functions="):
        recorded(m, folder + "/r.h5", torch.randn(5, 8), layers=1)
    t5, inputs = MODELS["t5"]()
    with refused("beam search"):
        with torch.no_grad(), vernier_parity.record(t5, folder + "/r.h5"):
            t5.generate(input_ids=inputs(0)["input_ids"], num_beams=3, max_new_tokens=6, min_new_tokens=6)
    assert not os.path.exists(folder + "/r.h5")


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
def a_list_read_of_a_tensor_is_an_edge(folder):
    """JetMoE sorts tokens by their experts and reads how many each has. Another choice makes other lists."""
    m, inputs = MODELS["jetmoe"]()
    c = converted(MODELS["jetmoe"]()[0], torch.bfloat16)
    with torch.no_grad():  # another choice of experts, as a tie would make
        for layer in c.model.layers:
            layer.mlp.router.layer.weight.add_(0.3 * torch.randn(layer.mlp.router.layer.weight.shape))
    recorded(c, folder + "/l.h5", inputs(0)["input_ids"], any=True)
    with Candidate(folder + "/l.h5") as cand:
        r = Replay(Models(m, cand), cand)
        replayed.write(r, folder + "/l-rep.h5", force=True)
        rows = [q for q in cand.rows if q["path"].endswith("mlp.input_linear")]
    assert not any("arg.1" in q["const"] for q in rows) and not r.settings()
    wrong = [q["name"] for q in any_judge.judge(folder + "/l.h5", folder + "/l-rep.h5") if q["wrong"]]
    assert len(rows) == 2 and all("router" in n for n in wrong), wrong


@test
def a_list_read_of_a_tensor_does_not_move_the_places_of_tensors(folder):
    """What changes a node's inputs finds them by their places among the tensors of its call."""
    class Leaf(torch.nn.Linear):
        def forward(self, sizes, x):
            return super().forward(x.view(sizes).sum(0))

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.leaf = Leaf(6, 1)

        def forward(self, x, counts):
            return self.leaf(counts.tolist(), x + 1)

    with torch.no_grad(), Trace(Whole()) as trace:
        trace.model(torch.randn(4, 6), torch.tensor([2, 2, 6]))
    n = next(n for n in trace.nodes if n.op == "Leaf")
    assert [r.size for r in n.ins] == [(4, 6), (3,)], n.ins


@test
def calls_in_another_order_are_paired_by_their_arguments(folder):
    """Gemma 3 calls its rotary module for each kind of layer, in the order of a set."""
    m, inputs = MODELS["gemma3"]()
    c = converted(MODELS["gemma3"]()[0], torch.bfloat16)
    recorded(c, folder + "/g.h5", inputs(0)["input_ids"], any=True)
    with Candidate(folder + "/g.h5") as cand:
        r = Replay(Models(m, cand), cand)
        rows = [i for i, row in enumerate(cand.rows) if row["path"] == "model.rotary_emb"]
        swapped = list(cand.rows)
        swapped[rows[0]], swapped[rows[1]] = swapped[rows[1]], swapped[rows[0]]
        pairs = align(swapped, r.fine.rows)
    args = lambda row: {k: v for k, v in row["const"].items() if k.startswith("arg.")}
    assert len(rows) == 2 and args(swapped[rows[0]]) != args(swapped[rows[1]]), "the calls tell the kind of layer"
    for i in rows:
        assert args(swapped[i]) == args(r.fine.rows[pairs[i]])


@test
def a_recording_of_a_known_family_is_explained_by_the_engine(folder):
    """Its names are the standard ones, so the reference is vernier's own engine."""
    m, inputs = MODELS["gemma3"]()
    m.save_pretrained(folder + "/m")
    for wrong in (False, True):
        path, report = f"{folder}/k{wrong}.h5", f"{folder}/k{wrong}.txt"
        if wrong:
            with torch.no_grad():
                m.model.layers[1].mlp.down_proj.weight.mul_(1.01)
        recorded(m, path, inputs(0)["input_ids"], weights=False, any=False)
        assert vernier_parity.explain(folder + "/m", path, report, program=sys.argv[1]) == wrong
    with open(report, encoding="utf-8") as f:
        assert "layer1.down_proj" in f.read().split("explained")[1]


RECORD_GEMMA3 = """
import sys
sys.path[:0] = sys.argv[2:]
import torch, vernier_parity
from any_models import MODELS
m, inputs = MODELS["gemma3"]()
with torch.no_grad(), vernier_parity.record(m, sys.argv[1], any=True, functions="all", weights=False):
    m(**inputs(0))
"""


@test
def processes_with_other_hash_seeds_pair_the_same_calls(folder):
    """The order of a set's elements, and so of Gemma 3's rotary calls, is that of their hashes."""
    seeds, run = {}, lambda seed, *words: subprocess.run([sys.executable, "-c", *words], check=True, text=True,
                                                         capture_output=True,
                                                         env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout
    for seed in range(16):
        seeds.setdefault(run(seed, "print(*{'sliding_attention', 'full_attention'})"), seed)
    assert len(seeds) == 2, seeds
    one, two = paths = [f"{folder}/s{seed}.h5" for seed in seeds.values()]
    for path, seed in zip(paths, seeds.values()):
        run(seed, RECORD_GEMMA3, path, HERE, PACKAGE)
    with Candidate(one) as a, Candidate(two) as b:
        kinds = lambda c: [r["const"] for r in c.rows if r["path"] == "model.rotary_emb"]
        assert sorted(map(str, kinds(a))) == sorted(map(str, kinds(b))) and kinds(a) != kinds(b), "no other order"
        pairs = align(a.rows, b.rows)
        assert len(pairs) == sum(not r.get("cast") for r in a.rows) == sum(not r.get("cast") for r in b.rows)
        for i, j in pairs.items():
            for x, y in zip(a.rows[i]["out"], b.rows[j]["out"]):
                if (0, x) in a.held:
                    assert torch.equal(a.tensor(0, x), b.tensor(0, y)), (x, y)


class Positions(torch.nn.Embedding):
    """Rows behind those that a cache holds."""

    def forward(self, x, cache):
        return super().forward(torch.arange(x.shape[-1]) + cache.get_seq_length() + cache.get_seq_length(layer_idx=1))


class Cached(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.at, self.inner = Positions(40, 6), torch.nn.Linear(6, 6)

    def forward(self, x, cache):
        for _ in range(2):
            y = self.inner(self.at(x, cache))[None, None]
            cache.update(y, y, 0)
        return y


@test
def a_leaf_reads_the_length_that_a_cache_had(folder):
    m = shaken(Cached())
    with torch.no_grad(), Trace(m, keep=True) as trace:
        m(torch.zeros(4), T.DynamicCache())
    assert differing(trace) == []
    at = [n.digests[0] for n in trace.nodes if n.op == "Positions"]
    assert len(set(at)) == 2, "both calls read the same length"


@test
def a_leaf_that_makes_another_shape_when_called_again_is_not_judged(folder):
    """What reads its result is, from the candidate's own."""
    class Grows(torch.nn.Linear):
        times = 0

        def forward(self, x):
            self.times += 1
            return super().forward(x)[: self.times]

    m = torch.nn.Sequential(torch.nn.Linear(6, 6), Grows(6, 6), torch.nn.Linear(6, 6))
    wrong = copy.deepcopy(m)
    wrong[2].weight.data.mul_(1.5)
    recorded(wrong, folder + "/c.h5", torch.randn(4, 6))
    with Candidate(folder + "/c.h5") as cand:
        r = Replay(Models(m, cand), cand)
        assert [x["name"] for x in r.unjudged] == ["1"] and "edges" in r.unjudged[0]["why"], r.unjudged
        replayed.write(r, folder + "/r.h5")
    assert [x["name"] for x in any_judge.judge(folder + "/c.h5", folder + "/r.h5") if x["wrong"]] == ["2"]


@test
def weights_that_transformers_keeps_in_float32_are_so_in_the_floor(folder):
    m, inputs = MODELS["deepseek_v3"]()
    m.save_pretrained(folder + "/m")
    formats = lambda x: {n: t.dtype for n, t in [*x.named_parameters(), *x.named_buffers()]}
    for dtype in (torch.bfloat16, torch.float16):
        loaded = T.DeepseekV3ForCausalLM.from_pretrained(folder + "/m", dtype=dtype).eval()
        assert len(set(formats(loaded).values())) == 2
        assert formats(converted(copy.deepcopy(m), dtype)) == formats(loaded)
    for c in (loaded, copy.deepcopy(m).half()):  # which has no such weights
        recorded(c, folder + "/c.h5", inputs(0)["input_ids"], force=True, weights=False)
        with Candidate(folder + "/c.h5") as cand:
            floor, own = formats(Models(m, cand).get(torch.float16)), formats(c)
            assert [n for n, _ in c.named_parameters() if floor[n] != own[n]] == []


class Prefixed(torch.nn.Module):
    """A body whose layers have more rows than the call has ids."""

    def __init__(self):
        super().__init__()
        self.embed_tokens, self.layers = torch.nn.Embedding(40, 6), torch.nn.ModuleList([Block(), Block()])

    def forward(self, input_ids):
        x = self.embed_tokens(input_ids)
        x = torch.cat([x[:, :1] * 0.5, x], 1)
        for layer in self.layers:
            x = layer(x)
        return x


@test
def layers_with_other_rows_than_the_call_has_ids_are_judged(folder):
    whisper, inputs = MODELS["whisper"]()  # the call of its decoder, of several inputs, has no ids
    for i, (m, given) in enumerate(((shaken(Prefixed()), dict(input_ids=torch.arange(3, 9)[None])),
                                    (whisper, inputs(0)))):
        path = f"{folder}/c{i}.h5"
        with torch.no_grad(), vernier_parity.record(m, path, functions="all", weights=False):
            m(**given)
        with vernier_parity.open(path) as rec:
            assert "layer0.output" in rec.names(), rec.names()
        assert vernier_parity.explain(m, path, f"{folder}/r{i}.txt", program=sys.argv[1]) == 0


class Noisy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x):
        return self.b(torch.nn.functional.dropout(self.a(x), 0.5) * (1 + torch.rand([])))


@test
def random_numbers_of_another_state_are_not_judged(folder):
    """What is computed from them is."""
    m = shaken(Noisy())
    for wrong in (0, 1):
        c = copy.deepcopy(m)
        c.b.weight.data.mul_(1 + wrong)
        torch.manual_seed(5)
        recorded(c, f"{folder}/c{wrong}.h5", torch.randn(4, 6), functions="all", weights=False)
        torch.manual_seed(17)  # whose two draws are near to each other
        report = f"{folder}/r{wrong}.json"
        done = vernier_parity.explain(m, f"{folder}/c{wrong}.h5", report, program=sys.argv[1],
                                      options=["--format", "json"])
        with open(report, encoding="utf-8") as f:
            said = json.load(f)
        assert done == wrong and said["origins"] == ["b"][:wrong], (done, said["origins"])


@test
def a_gelu_of_negative_numbers_may_cancel(folder):
    m, x = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.GELU()), torch.zeros(20000, 4)
    m[0].weight.data.copy_(torch.eye(4))
    x[:1000] = torch.linspace(-6, -2, 4000).reshape(-1, 4)  # few, or they would be the floor
    for dtype in (torch.float32, torch.bfloat16):
        with torch.backends.mkldnn.flags(enabled=False):
            recorded(copy.deepcopy(m).to(dtype), folder + "/c.h5", x.to(dtype), force=True)
        with Candidate(folder + "/c.h5") as cand:
            replayed.write(Replay(Models(m, cand), cand), folder + "/r.h5", force=True)
        found = any_judge.judge(folder + "/c.h5", folder + "/r.h5")
        assert not [q for q in found if q["wrong"]], (dtype, [(q["name"], q["ratio"]) for q in found])


@test
def a_gelu_may_get_its_input_by_name(folder):
    class Named(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.gelu(input=x)

    recorded(Named(), folder + "/c.h5", torch.linspace(-3, 3, 12).reshape(3, 4), force=True)
    with Candidate(folder + "/c.h5") as cand:
        assert Replay(Models(Named(), cand), cand).judged


@test
def masked_scores_leave_choices_undecided(folder):
    scores = torch.tensor([[3.0, 1.0, 0.9999, -torch.inf], [3.0, 2.0, 1.0, -torch.inf]], dtype=torch.float64)
    fine = choices.Choice(scores.topk(2, -1).indices, scores)
    coarse = choices.Choice(fine.ids, scores + 1e-3)
    assert choices.undecided(fine, coarse, 1).tolist() == [True, False]
    fewer = choices.Choice(fine.ids[:1], scores[:1])
    assert choices.undecided(fine, fewer, 1).tolist() == [False, False]
    by = torch.tensor([1, 0], dtype=torch.int8)
    assert choices.exchanged(by)(scores, fine.ids).tolist() == [[0, 2], [0, 1]]


class Differential(torch.nn.Module):
    """Two maps of attention, each with the mask, less the largest score, as DIFF and MiMo have them."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.o = torch.nn.Linear(8, 16), torch.nn.Linear(8, 16), torch.nn.Linear(8, 8)

    def forward(self, x, mask):
        q, k = self.q(x), self.k(x)
        maps = []
        for i in (slice(0, 8), slice(8, 16)):
            score = q[:, i] @ k[:, i].T + mask
            maps.append((score - score.amax(-1, keepdim=True)).softmax(-1))
        return self.o((maps[0] - 0.5 * maps[1]) @ x)


@test
def a_mask_that_several_operations_have_is_named(folder):
    m, x = shaken(Differential()), torch.randn(8, 8)
    mask = torch.full((8, 8), torch.finfo(torch.float32).min).triu(1)
    c = copy.deepcopy(m)
    c.register_forward_pre_hook(lambda m, a: (a[0], torch.cat([a[1][1:], a[1][-1:]])))
    recorded(c, folder + "/c.h5", x, mask, weights=False)
    report = folder + "/r.txt"
    assert vernier_parity.explain(m, folder + "/c.h5", report, program=sys.argv[1]) == 1
    with open(report, encoding="utf-8") as f:
        assert "the mask: each query has that of the query after it" in f.read()


class Least(torch.nn.Module):
    """Masks with the least number of its own format, in float32, as CANINE does."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x, mask):
        y = self.a(x)
        mask = (1.0 - mask.float()) * torch.finfo(y.dtype).min
        return self.b((y + mask).softmax(-1).to(y.dtype))


@test
def what_the_reference_has_no_number_for_is_not_judged(folder):
    m = shaken(Least())
    recorded(m, folder + "/c.h5", torch.randn(4, 6), torch.ones(4, 6, dtype=torch.int64))
    with Candidate(folder + "/c.h5") as cand:
        replayed.write(Replay(Models(m, cand), cand), folder + "/r.h5")
    with h5py.File(folder + "/r.h5") as f:
        (left,) = map(json.loads, f["replay/unjudged"])
        assert left["name"] == "b" and "NaN" in left["why"], left
    assert not [x for x in any_judge.judge(folder + "/c.h5", folder + "/r.h5") if x["wrong"]]


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(6, 6)

    def forward(self, x):
        return x + self.inner(x)


class Thrice(torch.nn.Module):
    """Calls one block three times, as looped models do."""

    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(self.block(self.block(x)))


@test
def an_extra_operation_in_a_module_that_is_called_again_moves_no_other_call(folder):
    m = shaken(Thrice())
    c = copy.deepcopy(m)
    c.block.register_forward_hook(lambda m, a, o: o + a[0])
    recorded(c, folder + "/c.h5", torch.randn(4, 6), functions="all")
    with Candidate(folder + "/c.h5") as cand:
        r = Replay(Models(m, cand), cand)
        lost = [row["out"][0] for i, row in enumerate(cand.rows) if i not in r.fine.pairs]
        assert lost == ["block.add.1", "block@1.add.1", "block@2.add.1"], lost
        for i, j in r.fine.pairs.items():
            assert cand.rows[i]["out"] == r.fine.rows[j]["out"], (cand.rows[i], r.fine.rows[j])


class Sums(torch.nn.Module):
    """Adds terms that cancel, from the first or from the last on."""

    def __init__(self, back):
        super().__init__()
        self.same, self.back = torch.nn.Linear(64, 64, bias=False), back
        self.same.weight.data.copy_(torch.eye(64))

    def forward(self, x):
        y = self.same(x).float()
        y = torch.cat([y, -y.flip(-1) * 1.0001], -1)
        return (y.flip(-1) if self.back else y).sum(-1)


@test
def a_sum_may_be_added_in_another_order(folder):
    x = torch.randn(40, 64, generator=torch.Generator().manual_seed(1)) * torch.logspace(-3, 3, 64)
    for dtype in (torch.float32, torch.float16):
        cand, rep = os.path.join(folder, "cand.h5"), os.path.join(folder, "replayed.h5")
        recorded(converted(Sums(True), dtype), cand, x.to(dtype), functions="all", force=True)
        with Candidate(cand) as c:
            replayed.write(Replay(Models(Sums(False), c), c), rep, force=True)
        rows = any_judge.judge(cand, rep)
        assert [q for q in rows if q["name"] == "sum.0"], [q["name"] for q in rows]
        assert not [q for q in rows if q["wrong"]], [(q["name"], q["ratio"]) for q in rows if q["wrong"]]


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
    os.mkdir(folder + "/empty")
    for model, cand, word in (("bert2", "lost", "no node of /plan"), ("bert2", "broken", "/plan"),
                              ("bert2", "text", "not an HDF5 file"), ("bert2", "other", "PyTorch"),
                              ("bert2", "absent", "no such file"), ("empty", "b", "config.json"),
                              ("strange", "b", "nonsense")):
        for words in (("replay", model, cand + ".h5"), ("reference", model, "--like", cand + ".h5")):
            status, said = program(folder, [*words, "-o", "out.h5"])
            assert status == 2 and word in said and "\x1b" not in said, (words, status, said)
            assert model == "strange" or len(said.splitlines()) == 1, said  # of transformers' own error
            assert not os.path.exists(folder + "/out.h5")


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
def a_model_that_changed_between_two_calls_is_refused(folder):
    def exchange(m):
        m.b = torch.nn.Linear(6, 4)

    x = torch.randn(5, 8)
    for change in (lambda m: m.a.weight.mul_(2), exchange):
        m = shaken(Small())
        with refused("changed between two calls"), torch.no_grad(), vernier_parity.record(m, folder + "/m.h5"):
            m(x)
            m(x)
            change(m)
            m(x)


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


@test
def a_second_round_computes_what_is_wrong(folder):
    """The same work in another order: queries scaled in place of scores, one name for another tensor. In the second
    round the rest is right; of a real mistake the result stays wrong."""
    class Attention(torch.nn.Module):
        def __init__(self, early):
            super().__init__()
            self.q, self.k = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
            self.early, self.by = early, 0.25

        def forward(self, x):
            q, k = self.q(x), self.k(x)
            if self.early:
                return torch.softmax(torch.matmul(q * self.by, k.mT), -1)
            return torch.softmax(torch.matmul(q, k.mT) * self.by, -1)

    x, right = torch.randn(1, 16, 16), shaken(Attention(False))
    for by, wrong in ((0.25, False), (0.3, True)):
        other = Attention(True)
        other.load_state_dict(right.state_dict())
        other.by = by
        cand = folder + f"/o{wrong}.h5"
        recorded(other.eval(), cand, x, functions="all")
        with Candidate(cand) as c:
            r = Replay(Models(right, c), c)
            replayed.write(r, cand + ".1")
            rows = any_judge.judge(cand, cand + ".1")
            assert [q for q in rows if q["wrong"]], "the first round sees it"
            with open(cand + ".json", "w", encoding="utf-8") as f:
                json.dump(any_judge.verdict(rows), f)
            replayed.write(r, cand + ".2", cand + ".json")
            gone = replayed.wrong_in(cand + ".json", r)
        rest = [q["name"] for q in any_judge.judge(cand, cand + ".2", True)
                if q["wrong"] and (q["step"], q["name"]) not in gone]
        assert bool(rest) == wrong, (by, rest)


class Shared(torch.nn.Module):
    """A gate of one of two sums, or wrongly of both: one name, `mul`, stands for two tensors."""

    def __init__(self, wrong=False):
        super().__init__()
        self.a, self.b, self.gate = (torch.nn.Linear(16, 16) for _ in range(3))
        self.wrong = wrong

    def forward(self, x):
        if self.wrong:
            both = self.a(x) + self.b(x)
            return torch.sigmoid(self.gate(x)) * both
        one = torch.sigmoid(self.gate(x)) * self.b(x)
        return self.a(x) + one


class Stack(torch.nn.Module):
    def __init__(self, wrong=False):
        super().__init__()
        self.mix = torch.nn.ModuleList(Shared(wrong) for _ in range(3))
        self.norm = torch.nn.ModuleList(torch.nn.LayerNorm(16) for _ in range(3))

    def forward(self, x):
        for mix, norm in zip(self.mix, self.norm):
            x = x + mix(norm(x))
        return x


@test
def a_name_that_stands_for_another_tensor_accuses_nobody_behind(folder):
    right, x = shaken(Stack()), torch.randn(1, 5, 16)
    wrong = Stack(True).eval()
    wrong.load_state_dict(right.state_dict())
    at = lambda name: os.path.join(folder, name)
    recorded(wrong, at("cand.h5"), x, functions="all")
    vernier_parity.reference(right, at("cand.h5"), at("ref.h5"))
    vernier_parity.replay(right, at("cand.h5"), at("rep.h5"))
    line = [os.path.abspath(sys.argv[1]), "compare", at("ref.h5"), at("cand.h5"), "--replayed", at("rep.h5")]
    said = json.loads(subprocess.run([*line, "--format", "json"], capture_output=True, check=False).stdout)
    assert said["origins"] == [f"mix.{n}.mul.0" for n in range(3)], said["origins"]


@test
def a_recurrent_leaf_may_round_each_operation(folder):
    """Kernels for all steps at once round less than those for one operation: each may be the candidate's."""
    right, highest = shaken(torch.nn.Sequential(torch.nn.LSTM(32, 40, 2, batch_first=True))), 0
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        for whole, seed in ((False, 0), (False, 1), (False, 2), (False, 3), (True, 0)):
            x = numbers(seed, 1, 24, 32)
            with torch.backends.mkldnn.flags(enabled=whole):
                recorded(converted(copy.deepcopy(right), dtype), folder + "/l.h5", x.to(dtype), force=True)
            with Candidate(folder + "/l.h5") as c:
                replayed.write(Replay(Models(right, c), c), folder + "/l-replayed.h5", force=True)
            rows = any_judge.judge(folder + "/l.h5", folder + "/l-replayed.h5")
            assert not [q for q in rows if q["wrong"]], (dtype, whole, seed, [(q["name"], q["ratio"]) for q in rows])
            highest = max(highest, *(q["ratio"] for q in rows))
    assert highest > 0.9, "nothing was measured"


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
def replaced_modules_get_the_recorded_results(folder):
    """Of a wrong engine, exactly the wrong module's; its other results stay, the model's own are right again."""
    right, inputs = MODELS["mixtral"]()
    wrong = MODELS["mixtral"]()[0]
    p = wrong.model.layers[0].mlp.experts.down_proj
    p.data[[0, 1]] = p.data[[1, 0]]
    x, at = inputs(0)["input_ids"], lambda name: f"{folder}/{name}.h5"
    want = recorded(right, at("ref"), x)["logits"]
    assert not torch.equal(recorded(wrong, at("wrong"), x)["logits"], want)
    mlp = {"model.layers.0.mlp": at("ref")}
    got = recorded(wrong, at("mended"), x, replace=mlp)["logits"]
    assert torch.equal(got, want)
    with vernier_parity.open(at("mended")) as mended, vernier_parity.open(at("ref")) as ref:
        assert mended.run["replaced"] == "model.layers.0.mlp"
        assert all(np.array_equal(mended[n], ref[n]) for n in ref.names())
    assert torch.equal(recorded(wrong, at("other"), x, replace={"model.layers.0.self_attn": at("ref")})["logits"],
                       recorded(wrong, at("wrong2"), x)["logits"])
    for module, word in (("model.layers.7", "no module of this path"), ("model.layers.0", "is not recorded")):
        with refused(word):
            recorded(wrong, at("no"), x, replace={module: at("ref")})
    with refused("step 1 made no"):  # the reference has decoded a token more
        with torch.no_grad(), vernier_parity.record(right, at("two"), any=True, force=True):
            right.generate(x, max_new_tokens=2, min_new_tokens=2, do_sample=False, pad_token_id=0)
        recorded(wrong, at("no"), x, replace={"model.layers.0.mlp": at("two")})


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


def main():
    torch.set_num_threads(1)
    wanted, bad = sys.argv[2:], 0
    for f in TESTS:
        if wanted and f.__name__ not in wanted:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                f(folder)
                print(f"ok      {f.__name__}", flush=True)
            except Exception as e:
                bad += 1
                import traceback
                traceback.print_exc()
                print(f"FAILED  {f.__name__}: {type(e).__name__}: {str(e)[:600]}", flush=True)
    print(f"{bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
