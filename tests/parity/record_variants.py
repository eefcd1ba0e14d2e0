"""record_variants.py: vernier_parity.record() of models that are not quite transformers' own; a part of
parity_record.py."""
import warnings

import h5py
from needs_transformers import torch, transformers

from record_help import OUTSIDE_LIMITS, load, model_of, record, run, vernier_parity


class Around(torch.nn.Module):
    """A user's own module around a model."""

    def __init__(self, model):
        super().__init__()
        self.inner = model

    def forward(self, ids, **more):
        return self.inner(ids, **more)


class Plain(torch.nn.Module):
    """A linear layer that has nothing but its numbers."""

    def __init__(self, of):
        super().__init__()
        self.weight, self.bias = of.weight, of.bias

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


class Fused(torch.nn.Module):
    """A gated feed-forward that makes both products at once."""

    def __init__(self, of):
        super().__init__()
        self.both = torch.nn.Parameter(torch.cat([of.gate_proj.weight, of.up_proj.weight]))
        self.down_proj, self.act = of.down_proj, of.act_fn

    def forward(self, x):
        gate, up = (x @ self.both.T).chunk(2, -1)
        return self.down_proj(self.act(gate) * up)


class Adapted(torch.nn.Module):
    """A linear layer with a low-rank addition, as PEFT puts one in its place; a fresh one adds nothing."""

    def __init__(self, of):
        super().__init__()
        self.base_layer = of
        self.lora_A, self.lora_B = (torch.nn.ModuleDict({"default": torch.nn.Linear(*n, bias=False)})
                                    for n in ((of.in_features, 2), (2, of.out_features)))
        torch.nn.init.zeros_(self.lora_B.default.weight)

    def forward(self, x):
        return self.base_layer(x) + self.lora_B.default(self.lora_A.default(x))


class Handing(torch.nn.Module):
    """A module that hands out what the one inside has, as PEFT's do."""

    def __init__(self, model):
        super().__init__()
        self.base_model = model

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("base_model"), name)

    def forward(self, *args, **more):
        return self.base_model(*args, **more)


def fetched(module):
    """The module's weights are on no device but while it runs."""
    kept = {k: p.data for k, p in module.named_parameters(recurse=False)}

    def put(make):
        for k in kept:
            setattr(module, k, torch.nn.Parameter(make(k), requires_grad=False))

    put(lambda k: kept[k].to("meta"))
    module.register_forward_pre_hook(lambda m, a: put(kept.get))
    module.register_forward_hook(lambda m, a, o: put(lambda k: kept[k].to("meta")))


def elsewhere(bench, ref, ids, cand):
    """Weights under other names, and on no device."""
    model = load("qwen2")
    for layer in model.model.layers:
        layer.self_attn.q_proj = Adapted(layer.self_attn.q_proj)
    with record(Handing(Handing(model)), cand):
        run(model, ids)
    bench.within("an adapter that adds nothing", ref, cand, weights=False)
    said = bench.vernier("weights", ref, cand).stdout
    bench.say("an adapter's weights", "4 of 30 differ" in said and "lora_A.default.weight" in said
              and "base_layer" not in said, said.splitlines()[0])
    model = load("qwen2")
    for linear in [m for m in model.model.layers.modules() if isinstance(m, torch.nn.Linear)]:
        fetched(linear)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with record(model, cand):
            run(model, ids)
    told = [str(w.message) for w in said if "weights" in str(w.message)]
    bench.say("weights on no device are said to be missing", len(told) == 1 and "on no device" in told[0],
              told[0] if told else "")
    bench.within("weights that are fetched when they are needed", ref, cand, weights=False)
    model = load("gemma2")  # of its embedding, rows are taken once more; accelerate fetches them in forward()
    embed = model.model.embed_tokens
    table, inner = embed.weight.data, embed.forward

    def put(weight):
        embed.weight = torch.nn.Parameter(weight, requires_grad=False)

    def forward(tokens):
        put(table)
        out = inner(tokens)
        put(table.to("meta"))
        return out

    put(table.to("meta"))
    embed.forward = forward
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with record(model, cand):
            run(model, ids)
    with h5py.File(cand) as f:
        bench.say("an embedding that is fetched", "embed" in f["step.0"] and "token_embed" not in f["step.0"])


def shared(bench, ref, ids, cand):
    """A module that is in two places is recorded under the name of each, and the mistake is found where it was made."""

    def norm(layers):
        layers[0].post_attention_layernorm = layers[0].input_layernorm

    def mlp(layers):
        layers[1].mlp = layers[0].mlp

    def whole(layers):
        layers[1] = layers[0]

    for what, change, origins, fault in (
            ("a norm", norm, ["layer0.mlp_norm"], "N12"),
            ("a feed-forward", mlp, ["layer1.gate_proj", "layer1.up_proj", "layer1.down_proj"], "W9.before"),
            ("a layer", whole, ["layer1.attn_norm", "layer1.q_proj"], "W9.before")):
        model = load("qwen2")
        change(model.model.layers)
        with record(model, cand):
            run(model, ids, use_cache=False)
        status, report = bench.compare(ref, cand, "--explain", "--model", model_of("qwen2"), "--allow", "weights")
        told = {e["checkpoint"]: [a["id"] for a in e["answers"]] for e in report.get("explanations", [])}
        found = (report.get("origins") or [report["summary"]])[: len(origins)]
        bench.say(f"{what} in two places", status == OUTSIDE_LIMITS and found == origins
                  and fault in told.get(found[0], []), f"{found} {told}")


def odd(bench, ref, ids, cand):
    """All of them."""
    shared(bench, ref, ids, cand)
    elsewhere(bench, ref, ids, cand)
    full = bench.reference("qwen2", ids, "--points", "*", name="full.h5")
    model = load("qwen2", attention="flex_attention")
    with record(model, cand, "*"):
        run(model, ids)
    bench.within("flex attention", full, cand)
    model = load("qwen2")
    kind = type(model.model.layers[0].self_attn)
    for layer in model.model.layers:
        layer.self_attn.__class__ = type("Mine", (kind,), {"__module__": __name__})
        layer.self_attn.q_proj = Plain(layer.self_attn.q_proj)
    around = Around(model)
    with record(around, cand, "*"), torch.no_grad():
        around(torch.tensor([ids]))
    bench.within("an attention, a linear layer and a module around it of one's own", full, cand)
    for rows in (5, 1):
        with record(model, cand):
            run(model, ids, logits_to_keep=rows)
        bench.within(f"logits of {rows} tokens", ref, cand)
    for layer in model.model.layers:
        layer.mlp = Fused(layer.mlp)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with record(model, cand):
            run(model, ids)
    with vernier_parity.open(cand) as r:
        told = [str(w.message) for w in said if "layer0.gate_proj, layer0.up_proj" in str(w.message)]
        bench.say("a fused feed-forward", len(told) == 1 and "layer1.up_proj" in r.run["not_hooked"]
                  and "layer1.mlp_act" in r, told[0])
    learning = load("gpt2").train()
    for dropout in [m for m in learning.modules() if isinstance(m, torch.nn.Dropout)]:
        dropout.p = 0.1
    told = []
    for model in (learning, learning.eval()):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with record(model.train(not told), cand):
                run(model, ids)
        told.append([str(w.message) for w in said if "training mode" in str(w.message)])
    bench.say("dropout", [len(t) for t in told] == [1, 0] and "transformer.drop " in told[0][0], str(told))
    changed = transformers.AutoModelForCausalLM.from_pretrained(model_of("qwen2"), max_position_embeddings=64).eval()
    with record(changed, cand):
        run(changed, ids)
    said = [line for line in bench.compare(ref, cand)[1]["summary"].splitlines() if "config" in line]
    bench.say("a changed config", len(said) == 1 and "max_position_embeddings is 512" in said[0], said[0])


