#!/usr/bin/env python3
"""parity_any_record.py VERNIER [TEST...]: what vernier_parity.record() keeps of any PyTorch module, and what it
refuses. torch is the judge. 77, skipped, without transformers."""

import os
import sys
from unittest import mock

from any_help import main, recorded, refused, test
import numpy as np
import torch
import transformers as T
import vernier_parity
from any_models import MODELS, shaken
from vernier_parity.candidate import Candidate
from vernier_parity.compute import differing
from vernier_parity.tracer import Trace


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


class Compiled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)
        self.f = torch.compile(lambda x: x * 2, backend="eager")

    def forward(self, x):
        return self.b(self.f(self.a(x)))


@test
def compiled_code_inside_a_model_is_not_followed(folder):
    """flex attention is one operation, compiled once, with the same bits; other such functions are refused."""
    from transformers.integrations import flex_attention as flex
    with refused("attention: model.set_attn_implementation('sdpa')"):
        recorded(Compiled(), folder + "/c.h5", torch.randn(3, 8), functions="all")
    m, inputs = MODELS["gemma3"]()
    m.set_attn_implementation("flex_attention")
    own = flex.WrappedFlexAttention
    once = staticmethod(torch.compile(flex.flex_attention, backend="eager"))
    x = inputs(0)["input_ids"]
    with mock.patch.multiple(own, create=True, _is_flex_compiled=True, training=False, _compiled_flex_attention=once):
        with torch.no_grad():
            plain = m(x).logits
        with torch._dynamo.config.patch(error_on_recompile=True):
            found = recorded(m, folder + "/f.h5", x, functions="all")
        assert torch.equal(plain, found.logits)
        with torch.no_grad(), vernier_parity.record(m, folder + "/g.h5", any=True, functions="all"), \
                torch.device("cpu"):  # another mode, above the recorder's
            assert torch.equal(plain, m(x).logits)
    names = vernier_parity.open(folder + "/f.h5").names()
    assert names == vernier_parity.open(folder + "/g.h5").names()
    assert [n for n in names if "attn_context" in n] == ["layer0.attn_context", "layer1.attn_context"], names
    assert not [n for n in names if "__eq__" in n], names


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
def a_norm_without_a_projection_before_it_breaks_no_run(folder):
    m, inputs = MODELS["deepseek_v3"]()
    x = inputs(0)["input_ids"]

    def norm(attn, args):
        attn.kv_a_layernorm(hidden_states=torch.ones(*x.shape, attn.kv_lora_rank))

    m.model.layers[1].self_attn.register_forward_pre_hook(norm)
    recorded(m, folder + "/n.h5", x, any=False)
    assert "layer1.kv_latent" in vernier_parity.open(folder + "/n.h5").names()


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


if __name__ == "__main__":
    sys.exit(main())
