#!/usr/bin/env python3
"""parity_any_replay.py VERNIER [TEST...]: which results of any PyTorch module a replay judges, and what it makes of
right engines that compute otherwise. 77, skipped, without transformers."""

import copy
import json
import os
import subprocess
import sys
from unittest import mock

from any_help import HERE, PACKAGE, main, recorded, refused, test
import h5py
import torch
import transformers as T
import any_judge
import vernier_parity
from any_models import MODELS, Loop, numbers, shaken
from vernier_parity import alternatives, choices, replayed
from vernier_parity.align import align
from vernier_parity.candidate import Candidate
from vernier_parity.compute import Again, Pass
from vernier_parity.replaying import Judged, Replay
from vernier_parity.rerun import Models, converted
from vernier_parity.settling import Settling
from vernier_parity.tracer import Trace


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


@test
def recorded_scores_are_equal_within_a_rounding(folder):
    for gap, due in ((1, True), (3, False)):
        scores = torch.tensor([[1.0, 0.75, 0.75 - gap * 2.0 ** -8, 0.25]], dtype=torch.float64)
        c = choices.Choice(scores.topk(2, -1).indices, scores, 2.0 ** -7)
        assert choices.undecided(c, c, 1).tolist() == [due], gap


@test
def a_choice_of_which_nobody_reads_the_ids_is_none(folder):
    x, idle = torch.randn(3, 8), {}
    kept = []
    for name, call in (("scores", lambda: x.topk(2)[0].sum(-1)), ("read", lambda: x.gather(-1, x.topk(2)[1])),
                       ("returned", lambda: kept.append(x.topk(2)))):
        with choices.Choices() as held:
            call()
        assert len(held.made) == 1
        idle[name] = held.idle
    assert idle == {"scores": {0}, "read": set(), "returned": set()}, idle


@test
def a_large_row_hides_no_wrong_one(folder):
    """As that of an attention sink is."""
    torch.manual_seed(0)
    expected = torch.randn(64, 16, dtype=torch.float64)
    expected[0] *= 3000
    off = expected * 0.01 * torch.randn_like(expected).sign()
    cand = expected + off
    cand[7] += 8 * off[7]
    s, j = Settling.__new__(Settling), Judged(0, 0, "x", 0)
    s.expected, s.floor, s._cand = {(0, 0): expected}, {(0, 0): expected - off}, lambda j: cand
    assert s._wrong_rows([j], 64).nonzero().flatten().tolist() == [7]


@test
def tried_mistakes_leave_the_floors_of_float64(folder):
    """One of them computes a softmax in a narrower format."""
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.soft = torch.nn.Linear(8, 8), torch.nn.Softmax(-1)
            self.b, self.c = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

        def forward(self, x):
            y = self.soft(self.a(x))
            return self.b(y) + self.c(y)

    m = shaken(Two()).double()
    c, path = copy.deepcopy(m), folder + "/c.h5"
    c.b.weight.data.mul_(1.1)
    c.c.weight.data.mul_(1.1)
    recorded(c, path, torch.randn(5, 8).double())
    with h5py.File(path, "r+") as f:
        del f["step.0"]["soft"]
    with Candidate(path) as cand:
        r = Replay(Models(m, cand), cand)
        assert replayed.write(r, folder + "/1.h5") == 0
        with open(folder + "/v.json", "w", encoding="utf-8") as f:
            json.dump(any_judge.verdict(any_judge.judge(path, folder + "/1.h5")), f)
        assert replayed.write(r, folder + "/2.h5", folder + "/v.json") == 0
        found = any_judge.judge(path, folder + "/2.h5")
        assert sum(bool(q.get("tried")) for q in found) == 2 and {q["floor_format"] for q in found} == {"f64"}, found
        with mock.patch.object(alternatives, "MOST_WORK", 1e-9):
            assert replayed.write(r, folder + "/3.h5", folder + "/v.json") == 2, "cut short"


class Warm(torch.nn.Module):
    """Keys in a buffer, behind those of earlier calls."""

    def __init__(self):
        super().__init__()
        self.k, self.o = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros(1, 8, 8), persistent=False)
        self.register_buffer("sum", torch.zeros(8))

    def forward(self, x, start: int = 0):
        self.cache[:, start : start + x.shape[1]] = self.k(x)
        self.sum.mul_(0.9).add_(x.mean((0, 1)))
        return self.o(self.cache[:, : start + x.shape[1]]) + self.sum


def wrong_of(model, path):
    """(the wrong results of a recording, what is not judged)"""
    with Candidate(path) as cand:
        r = Replay(Models(model, cand), cand)
        replayed.write(r, path + ".replayed", force=True)
    return [q["name"] for q in any_judge.judge(path, path + ".replayed") if q["wrong"]], r.unjudged


class Keeps(torch.nn.Module):
    """A buffer that its run changes in some way."""

    def __init__(self, write, start=0.0):
        super().__init__()
        self.a, self.b, self.write = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4), write
        self.register_buffer("kept", torch.full((3, 4), start))

    def forward(self, x):
        y = self.a(x) * (1 + self.kept)
        self.write(self, y)
        return self.b(y)


def assigned(m, y):
    m.kept = y


def taken_out(m, y):
    kept, m.kept = m.kept, None
    kept[0] = y[0]
    m.kept = kept


def deleted(m, y):
    kept = m.kept
    del m.kept
    kept[0] = y[0]
    m.register_buffer("kept", kept)


@test
def the_object_that_was_recorded_may_be_given(folder):
    """Its buffers are changed by then; the recording holds what they were, 0 too."""
    for write in (assigned, taken_out, deleted, lambda m, y: m.kept.add_(1), lambda m, y: torch.add(
            m.kept, y, out=m.kept), lambda m, y: setattr(m, "kept", torch.cat([m.kept, y])[:1])):
        for start in (0.0, 1.5):
            m, x, path = Keeps(write, start), torch.randn(3, 4), folder + "/c.h5"
            plain = copy.deepcopy(m)
            with torch.no_grad():
                due = plain(x), plain(x)
            with torch.no_grad(), vernier_parity.record(m, path, any=True, force=True):
                assert all(map(torch.equal, due, (m(x), m(x)))), write
            assert wrong_of(m, path)[0] == [], (write, start)


class Exchanged(torch.nn.Module):
    """A layer that is called with weights of its own and with others."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        half = {k: p * 0.5 for k, p in self.a.named_parameters()}
        return self.b(torch.func.functional_call(self.a, half, (x,)) + self.a(x))


class Packed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.o = torch.nn.GRU(8, 8, batch_first=True), torch.nn.Linear(8, 8)

    def forward(self, x):
        rows = torch.nn.utils.rnn.pack_padded_sequence(x, [6, 4], batch_first=True)
        return self.o(torch.nn.utils.rnn.pad_packed_sequence(self.rnn(rows)[0], batch_first=True)[0])


class Nested(torch.nn.Module):
    """Rows of several lengths, which the encoder makes a nested tensor."""

    def __init__(self):
        super().__init__()
        self.e = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 2)
        self.o = torch.nn.Linear(8, 8)

    def forward(self, x):
        return self.o(self.e(x, src_key_padding_mask=torch.arange(6) >= torch.tensor([[6], [4]])))


def scripted():
    inner = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU())
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.jit.script(inner), torch.nn.Linear(8, 8))


def dynamic():
    return torch.nn.Sequential(torch.ao.quantization.quantize_dynamic(
        torch.nn.Sequential(torch.nn.Linear(8, 8)), {torch.nn.Linear}), torch.nn.Linear(8, 8))


@test
def what_torch_offers_is_followed_with_the_same_bits(folder):
    normed = lambda: torch.nn.Sequential(torch.nn.utils.weight_norm(torch.nn.Linear(8, 8)), torch.nn.Linear(8, 8))
    for make in (Warm, Exchanged, Packed, Nested, scripted, normed, dynamic):
        torch.manual_seed(0)
        fresh, m, x = make().eval(), make().eval(), torch.randn(2 if make is not Warm else 1, 6, 8)
        if make is not dynamic:
            m.load_state_dict(fresh.state_dict())
        plain = copy.deepcopy(m) if make is not normed else m
        with torch.no_grad():
            due = plain(x), plain(x)
        if make is Warm:  # its buffers are warm when the recording begins
            m(x)
            due = due[1:] + (plain(x),)
        with torch.no_grad(), vernier_parity.record(m, folder + "/c.h5", any=True, functions="all", force=True):
            found = m(x), m(x)
        assert all(map(torch.equal, due, found)), make
        if make is dynamic:  # a float64 reference cannot be made
            with refused("in float64, as a float32"):
                vernier_parity.replay(fresh, folder + "/c.h5", folder + "/r.h5", force=True)
            continue
        vernier_parity.replay(fresh, folder + "/c.h5", folder + "/r.h5", force=True)
        rows = any_judge.judge(folder + "/c.h5", folder + "/r.h5")
        assert rows and not [q for q in rows if q["wrong"]], (make, [(q["name"], q["ratio"]) for q in rows])


@test
def the_largest_and_the_least_are_choices(folder):
    x = torch.tensor([[3.0, 2.0, 5.0], [1.0, 0.0, 4.0]])
    by = choices.exchanged(torch.tensor([1, 0]))
    for call, ids in ((lambda: x.argmax(-1), [0, 2]), (lambda: torch.argmin(x, 1), [0, 1]),
                      (lambda: x.max(-1)[1], [0, 2]), (lambda: torch.min(x, dim=1, keepdim=True)[1][:, 0], [0, 1]),
                      (lambda: x.topk(1, largest=False)[1][:, 0], [0, 1])):
        with choices.Choices([by]) as held:
            assert call().tolist() == ids
        assert len(held.made) == 1
    with choices.Choices() as held:
        x.max(), x.max(0), x.argmax(), torch.max(x, x), x.long().argmax(-1)
    assert not held.made


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


@test
def what_compare_does_not_refuse_is_no_refusal(folder):
    m, path = shaken(torch.nn.Sequential(torch.nn.Linear(4, 4))), folder + "/c.h5"
    recorded(m, path, torch.randn(3, 4))
    for option, status in (("--help", 0), ("--no-such-option", 2)):
        assert vernier_parity.explain(m, path, program=sys.argv[1], options=[option]) == status, option
    other = shaken(torch.nn.Sequential(torch.nn.Linear(5, 4)))
    try:
        vernier_parity.replay(other, path, folder + "/r.h5")
    except vernier_parity.RecordingError as e:
        assert "mat1" in str(e) and "float64" not in str(e), e
    else:
        raise AssertionError("a model of another shape was called")


class Least(torch.nn.Module):
    """Masks with a number that its own format holds, in float32, which lacks float64's."""

    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 6), torch.nn.Linear(6, 6)

    def forward(self, x, mask):
        y = self.a(x)
        least = -1.7e308 if y.dtype == torch.float64 else torch.finfo(y.dtype).min
        mask = (1.0 - mask.float()) * least
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


class Routed(torch.nn.Module):
    """Layers of experts, of which each row has k. tied: two experts each have one score; late: of equal scores, the
    last ones are chosen."""

    def __init__(self, layers, experts, k, tied=False):
        super().__init__()
        self.k, self.late = k, None
        self.routers = torch.nn.ModuleList(torch.nn.Linear(16, experts, bias=False) for _ in range(layers))
        self.experts = torch.nn.ModuleList(torch.nn.ModuleList(torch.nn.Linear(16, 16) for _ in range(experts))
                                           for _ in range(layers))
        self.head = torch.nn.Linear(16, 11)
        for r in self.routers if tied else ():
            r.weight.data[1::2] = r.weight.data[::2]

    def forward(self, x):
        for router, experts in zip(self.routers, self.experts):
            scores = router(x).softmax(-1)
            if self.late is None:
                share, ids = scores.topk(self.k, -1)
            else:
                n = scores.shape[-1]
                order = (scores.flip(-1) if self.late else scores).sort(dim=-1, descending=True, stable=True)
                ids = order.indices[..., : self.k]
                ids = n - 1 - ids if self.late else ids
                share = scores.gather(-1, ids)
            each = torch.stack([e(x) for e in experts], -2)
            x = x + (share[..., None] * each.gather(-2, ids[..., None].expand(*ids.shape, x.shape[-1]))).sum(-2)
        return self.head(x)


@test
def undecided_choices_excuse_no_error_that_they_cannot_make(folder):
    """Of a result alone, behind 12 layers: each row has several undecided choices."""
    torch.manual_seed(1)
    m, path = Routed(12, 16, 2), folder + "/c.h5"
    torch.manual_seed(3)
    x = torch.randn(2, 20, 16).bfloat16()
    for fault in (False, True):
        c = copy.deepcopy(m)
        if fault:
            c.experts[0][3].weight.data.mul_(2)
            c.experts[0][3].bias.data.add_(3)
        recorded(converted(c, torch.bfloat16), path, x, force=True)
        with h5py.File(path, "r+") as f:
            for name in [n for n in f["step.0"] if not n.startswith("in") and n != "out.0"]:
                del f["step.0"][name]
        wrong, left = wrong_of(m, path)
        assert (wrong, left) == (["out.0"][:fault], []), (fault, wrong, left)


@test
def of_equal_scores_any_may_be_chosen(folder):
    for k in (1, 3, 5):
        torch.manual_seed(k)
        m, x = Routed(1, 8, k, tied=True), torch.randn(2, 12, 16)
        for late in (False, True):
            c = copy.deepcopy(m)
            c.late = late
            recorded(c, folder + "/c.h5", x, force=True)
            assert wrong_of(m, folder + "/c.h5") == ([], []), (k, late)


@test
def a_mask_of_float64_is_the_candidates_too(folder):
    for kind, config in ((T.GPT2LMHeadModel, T.GPT2Config(n_embd=32, n_layer=2, n_head=4, vocab_size=64)),
                         (T.LlamaForCausalLM, T.LlamaConfig(
                             hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                             vocab_size=64))):
        m = kind._from_config(config, attn_implementation="eager").eval().double()
        ids, mask = torch.arange(12).reshape(2, 6), torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6])
        with torch.no_grad(), vernier_parity.record(m, folder + "/c.h5", any=True, functions="all", force=True):
            m(input_ids=ids, attention_mask=mask)
        assert wrong_of(m, folder + "/c.h5")[0] == [], kind


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
def float64_has_the_floor_of_what_is_computed_in_float32(folder):
    """transformers' eager attention has a softmax in float32, in any format, and its norms are so too; products are
    not."""
    for place, by, due in (("", 0, []), ("model.layers.1.self_attn.o_proj", 1e-4, ["model.layers.1.self_attn.o_proj"]),
                           ("model.layers.1.mlp.up_proj", 1e-12, ["model.layers.1.mlp.up_proj"])):
        right, inputs = MODELS["llama"]()
        m = converted(copy.deepcopy(right), torch.float64)
        m.set_attn_implementation("sdpa")
        if place:
            m.get_submodule(place).weight.data.mul_(1 + by)
        recorded(m, folder + "/c.h5", inputs(0)["input_ids"], force=True)
        vernier_parity.replay(right, folder + "/c.h5", folder + "/r.h5", force=True)
        wrong = [q["name"] for q in any_judge.judge(folder + "/c.h5", folder + "/r.h5") if q["wrong"]]
        assert wrong == due, (place, wrong)


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


class InPlace(torch.nn.Module):
    """Results that share a storage, writes into one, and results that nothing changes."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (torch.nn.Linear(8, 8) for _ in range(3))

    def forward(self, x):
        y = self.a(x)
        one, two = y.chunk(2, -1)
        kept = self.b(x) * 2
        one.add_(two)
        y[:, 1:3] = kept[:, :2]
        two.mul_(3)
        return self.c(torch.cat([one, two], -1) + y.sin() + kept)


@test
def a_node_computed_again_is_as_in_a_whole_pass(folder):
    """With each node before the last one exchanged in turn, and with some results given."""
    m, x = shaken(InPlace()), torch.randn(5, 8)
    with torch.no_grad(), Trace(m, keep=True) as trace:
        m(x)
    last = len(trace.nodes) - 1
    plain = {n.index: [t.clone() for t in out] for n, out, _ in Pass(trace).run(set(range(last + 1)))}
    half = lambda fn, a, k: torch.utils._pytree.tree_map(lambda t: t * 0.5, fn(*a, **k))
    for ops in ((), ("add_", "Linear"), ("__setitem__",)):
        given = {n.index: lambda n=n: plain[n.index] for n in trace.nodes if n.op in ops and n.index < last}
        again = Again(trace, given, last)
        first = again.results()
        assert torch.equal(first[0], plain[last][0])
        for i in (i for i in again.nodes if not trace.nodes[i].writes):
            got, own = again.results({i: half})[0], Again(trace, given, last)
            own._pass.compute = lambda n, call=None, i=i, p=own._pass: Pass.compute(
                p, n, half if n.index == i else call)
            assert torch.equal(got, own.results()[0]), (trace.nodes[i].name, ops)
            assert torch.equal(again.results()[0], first[0]), trace.nodes[i].name
            again.work = 0
            again.results({i: half})
            behind = {i}
            for n in trace.nodes:
                read = [r._replace(write=r.write - 1) for r in n.outs if r.write]
                if any(trace.maker.get(r.key) in behind for r in (read if n.index in given else (*n.ins, *n.writes))):
                    behind.add(n.index)
            assert again.work <= len((behind | {last}) - given.keys()), (trace.nodes[i].name, again.work, behind)


if __name__ == "__main__":
    sys.exit(main())
