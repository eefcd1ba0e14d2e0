"""record_experts.py: vernier_parity.record() of models with experts; a part of parity_record.py."""
import functools
import os
from types import MethodType
from unittest import mock

from needs_transformers import torch, transformers

from record_help import record, run, vernier_parity
from vernier_parity import about, weights
from vernier_parity.places import parts_of

SMALL = dict(vocab_size=60, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2,
             max_position_embeddings=64)
LATENT = dict(q_lora_rank=None, kv_lora_rank=12, qk_nope_head_dim=8, qk_rope_head_dim=4, v_head_dim=6, head_dim=4,
              num_key_value_heads=2, n_routed_experts=4, num_experts_per_tok=2, n_shared_experts=1, n_group=1,
              topk_group=1, topk_method="greedy", moe_intermediate_size=16, first_k_dense_replace=1)


def latent(bench, ref, ids, cand):
    """DeepSeek-V2, whose router is not called in transformers 5.2, and whose values are padded for some attentions."""
    torch.manual_seed(1)
    model = transformers.DeepseekV2ForCausalLM(transformers.DeepseekV2Config(**SMALL, **LATENT)).eval()
    model.set_attn_implementation("eager")
    folder = bench.at("latent")
    model.save_pretrained(folder)
    bench.vernier("capture", "ref", folder, "--ids", ",".join(map(str, ids)), "--points", "*", "--force", "-o", ref)

    def within(what):
        status, report = bench.compare(ref, cand)
        good = [c["name"] for c in report.get("checkpoints", []) if c["status"] in ("within", "unlimited")]
        bench.say(f"DeepSeek-V2, {what}", status == 0 and "layer1.router_logits" in good and len(good) == 61,
                  f"{report['summary']} {len(good)}")

    with record(model, cand, "*"):
        run(model, ids)
    within("every point")
    source = __import__(type(model).__module__, fromlist=["x"])
    if hasattr(source, "is_flash_attention_requested"):
        with mock.patch.object(source, "is_flash_attention_requested", lambda config: True), record(model, cand, "*"):
            run(model, ids)
        within("with padded values")


def kernels(bench):
    """Experts that get other arguments than those of the family: of such a model no checkpoints are known."""
    from transformers.integrations import mxfp4

    of = dict(SMALL, num_key_value_heads=1, head_dim=12, num_local_experts=4, num_experts_per_tok=2)
    made = lambda: transformers.GptOssForCausalLM(transformers.GptOssConfig(**of)).eval()
    plain, forward, experts, offloaded = (made() for _ in range(4))
    mlp = forward.model.layers[1].mlp
    mlp.forward = MethodType(lambda m, x: (x, None), mlp)
    mlp = experts.model.layers[1].mlp
    mlp.experts = mxfp4.Mxfp4GptOssExperts(experts.config)
    if hasattr(mxfp4, "Mxfp4GptOssMLP"):  # from transformers 5.24
        experts.model.layers[1].mlp = mxfp4.Mxfp4GptOssMLP(mlp.router, mlp.experts)
    mlp = offloaded.model.layers[1].mlp  # as accelerate puts it
    mlp.forward = functools.update_wrapper(functools.partial(lambda m, *a, **k: type(m).forward(m, *a, **k), mlp),
                                           mlp.forward)
    known = [parts_of(m) is not None for m in (plain, forward, experts, offloaded)]
    bench.say("experts of MXFP4's kernels are not the family's", known == [True, False, False, True], str(known))


def loads(bench):
    """Each weight of a module whose experts lie in turn in a file is fetched once."""
    of = dict(SMALL, num_key_value_heads=1, num_local_experts=4, num_experts_per_tok=2)
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(**of)).eval()
    folder = bench.at("mixtral")
    model.save_pretrained(folder)
    with mock.patch.object(weights, "_there", wraps=weights._there) as there:
        rows = weights.of_memory(model, folder, "mixtral")
    due = len(list(model.parameters()))
    bench.say("each weight is fetched once", there.call_count == due < len(rows), f"{there.call_count} of {due}")


def experts(bench, ids, cand):
    """All of them."""
    latent(bench, bench.at("latent.h5"), [i % SMALL["vocab_size"] for i in ids], cand)
    kernels(bench)
    loads(bench)
    pair = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.TripletMarginLoss(p=2.0)).train()
    bench.say("a loss with a power drops nothing", about.dropping(pair) is None, str(about.dropping(pair)))
