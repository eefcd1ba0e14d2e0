"""families.py: the checkpoints of each family of models, in execution order, and the modules that hold them.

Printed from the program's plans: not to be edited.
"""

from typing import Dict, List, NamedTuple, Optional, Sequence, Tuple


class Row(NamedTuple):
    """A checkpoint."""

    point: str
    axes: str
    basis: str
    op: str
    on_demand: bool = False
    module: Optional[str] = None  # below the layer, or the body; "": the layer itself; None: no module has it
    # the module returns it ("heads": heads before tokens), or as the last but one or last of three
    # things ("1", "2"), or would for one slot of a token ("each"); it takes it ("in"; "in1", "in2":
    # in the second or third place), or takes the ids whose rows it is ("rows")
    how: str = "out"
    part: Optional[Tuple[int, int, bool]] = None  # part i of n of the module's columns; True: of those of each head


class Family(NamedTuple):
    """The checkpoints before the layers, in a layer by its kind ("": all alike), and behind the layers."""

    before: List[Row]
    layer: Dict[str, List[Row]]
    behind: List[Row]

    def rows_of(self, n: int, kinds: Optional[Sequence[str]]) -> List[Row]:
        """The checkpoints of layer n. kinds: of places.kinds_of."""
        of = self.layer.get(kinds[n] if kinds else "full_attention")
        return of or self.layer[next(iter(self.layer))]


_LLAMA: List[Row] = [
    Row("input", "token hidden", "hidden", ""),
    Row("attn_norm", "token hidden", "hidden", "rms_norm", module="input_layernorm"),
    Row("q_proj", "token head dim", "head", "linear", module="self_attn.q_proj"),
    Row("k_proj", "token kv_head dim", "kv_head", "linear", module="self_attn.k_proj"),
    Row("v_proj", "token kv_head dim", "kv_head", "linear", module="self_attn.v_proj"),
    Row("q_rope", "token head dim", "head", "rope"),
    Row("k_rope", "token kv_head dim", "kv_head", "rope"),
    Row("k_cache", "key kv_head dim", "kv_head", "attention", on_demand=True),
    Row("v_cache", "key kv_head dim", "kv_head", "attention", on_demand=True),
    Row("attn_scores", "head token key", "score", "attention", on_demand=True),
    Row("attn_probs", "head token key", "score", "attention", on_demand=True),
    Row("attn_context", "token head dim", "head", "attention", module="self_attn.o_proj", how="in"),
    Row("attn_out", "token hidden", "hidden", "linear", module="self_attn.o_proj"),
    Row("attn_residual", "token hidden", "hidden", "add", module="post_attention_layernorm", how="in"),
    Row("mlp_norm", "token hidden", "hidden", "rms_norm", module="post_attention_layernorm"),
    Row("gate_proj", "token ffn", "ffn", "linear", module="mlp.gate_proj"),
    Row("up_proj", "token ffn", "ffn", "linear", module="mlp.up_proj"),
    Row("gate_act", "token ffn", "ffn", "act", on_demand=True, module="mlp.act_fn"),
    Row("mlp_act", "token ffn", "ffn", "gated", module="mlp.down_proj", how="in"),
    Row("down_proj", "token hidden", "hidden", "linear", module="mlp.down_proj"),
    Row("output", "token hidden", "hidden", "add", module=""),
]
_BEFORE_LLAMA: List[Row] = [
    Row("embed", "token hidden", "hidden", "embed", module="embed_tokens"),
]
_BEHIND_LLAMA: List[Row] = [
    Row("final_norm", "token hidden", "hidden", "rms_norm", module="norm"),
    Row("logits", "token vocab", "vocab", "linear", module="lm_head"),
]
_GEMMA2: List[Row] = [
    *_LLAMA[:13],
    Row("attn_post_norm", "token hidden", "hidden", "rms_norm", module="post_attention_layernorm"),
    Row("attn_residual", "token hidden", "hidden", "add", module="pre_feedforward_layernorm", how="in"),
    Row("mlp_norm", "token hidden", "hidden", "rms_norm", module="pre_feedforward_layernorm"),
    *_LLAMA[15:20],
    Row("mlp_post_norm", "token hidden", "hidden", "rms_norm", module="post_feedforward_layernorm"),
    Row("output", "token hidden", "hidden", "add", module=""),
]
_BEFORE_GEMMA2: List[Row] = [
    Row("token_embed", "token hidden", "hidden", "embed", module="embed_tokens", how="rows"),
    Row("embed", "token hidden", "hidden", "scale", module="embed_tokens"),
]
_BEHIND_GEMMA2: List[Row] = [
    Row("final_norm", "token hidden", "hidden", "rms_norm", module="norm"),
    Row("raw_logits", "token vocab", "vocab", "linear", module="lm_head"),
    Row("logits", "token vocab", "vocab", "scale", module="lm_head"),
]
_GPT2: List[Row] = [
    Row("input", "token hidden", "hidden", ""),
    Row("attn_norm", "token hidden", "hidden", "layer_norm", module="ln_1"),
    Row("c_attn", "token qkv", "fused", "linear", module="attn.c_attn"),
    Row("q_proj", "token head dim", "head", "slice", module="attn.c_attn", part=(0, 3, False)),
    Row("k_proj", "token kv_head dim", "kv_head", "slice", module="attn.c_attn", part=(1, 3, False)),
    Row("v_proj", "token kv_head dim", "kv_head", "slice", module="attn.c_attn", part=(2, 3, False)),
    *_LLAMA[7:11],
    Row("attn_context", "token head dim", "head", "attention", module="attn.c_proj", how="in"),
    Row("attn_out", "token hidden", "hidden", "linear", module="attn.c_proj"),
    Row("attn_residual", "token hidden", "hidden", "add", module="ln_2", how="in"),
    Row("mlp_norm", "token hidden", "hidden", "layer_norm", module="ln_2"),
    Row("up_proj", "token ffn", "ffn", "linear", module="mlp.c_fc"),
    Row("mlp_act", "token ffn", "ffn", "act", module="mlp.act"),
    Row("down_proj", "token hidden", "hidden", "linear", module="mlp.c_proj"),
    Row("output", "token hidden", "hidden", "add", module=""),
]
_BEFORE_GPT2: List[Row] = [
    Row("token_embed", "token hidden", "hidden", "embed", module="wte"),
    Row("pos_embed", "token hidden", "hidden", "positions", module="wpe"),
    Row("embed", "token hidden", "hidden", "add", module="drop"),
]
_BEHIND_GPT2: List[Row] = [
    Row("final_norm", "token hidden", "hidden", "layer_norm", module="ln_f"),
    Row("logits", "token vocab", "vocab", "linear", module="lm_head"),
]
_QWEN3: List[Row] = [
    *_LLAMA[:5],
    Row("q_norm", "token head dim", "head", "rms_norm", module="self_attn.q_norm"),
    Row("k_norm", "token kv_head dim", "kv_head", "rms_norm", module="self_attn.k_norm"),
    *_LLAMA[5:],
]
_QWEN3_5_TEXT_LINEAR_ATTENTION: List[Row] = [
    Row("input", "token hidden", "hidden", ""),
    Row("attn_norm", "token hidden", "hidden", "rms_norm", module="input_layernorm"),
    Row("gdn_qkv", "token lin_mix", "lin_mix", "linear", module="linear_attn.in_proj_qkv"),
    Row("gdn_z", "token lin_head dim", "lin_v", "linear", module="linear_attn.in_proj_z"),
    Row("gdn_b", "token lin_head", "lin_head", "linear", module="linear_attn.in_proj_b"),
    Row("gdn_a", "token lin_head", "lin_head", "linear", module="linear_attn.in_proj_a"),
    Row("gdn_conv", "token lin_mix", "lin_mix", "causal_conv"),
    Row("gdn_conv_state", "row lin_mix", "lin_mix", "causal_conv"),
    Row("gdn_q_conv", "token lin_key dim", "lin_k", "slice"),
    Row("gdn_k_conv", "token lin_key dim", "lin_k", "slice"),
    Row("gdn_v", "token lin_head dim", "lin_v", "slice"),
    Row("gdn_q", "token lin_key dim", "lin_k", "l2_norm"),
    Row("gdn_k", "token lin_key dim", "lin_k", "l2_norm"),
    Row("gdn_beta", "token lin_head", "lin_head", "act"),
    Row("gdn_g", "token lin_head", "lin_head", "log_decay"),
    Row("gdn_core", "token lin_head dim", "lin_v", "delta_rule", module="linear_attn.norm", how="in"),
    Row("gdn_state", "lin_head key_dim dim", "state", "delta_rule"),
    Row("gdn_norm", "token lin_head dim", "lin_v", "gated_norm", module="linear_attn.norm"),
    Row("attn_out", "token hidden", "hidden", "linear", module="linear_attn.out_proj"),
    *_LLAMA[13:],
]
_QWEN3_5_TEXT_FULL_ATTENTION: List[Row] = [
    Row("input", "token hidden", "hidden", ""),
    Row("attn_norm", "token hidden", "hidden", "rms_norm", module="input_layernorm"),
    Row("qg_proj", "token head dim", "fused", "linear", module="self_attn.q_proj"),
    Row("q_proj", "token head dim", "head", "slice", module="self_attn.q_proj", part=(0, 2, True)),
    Row("attn_gate", "token head dim", "head", "slice", module="self_attn.q_proj", part=(1, 2, True)),
    *_QWEN3[3:13],
    Row("attn_context", "token head dim", "head", "attention"),
    Row("attn_gated", "token head dim", "head", "gated", module="self_attn.o_proj", how="in"),
    *_LLAMA[12:],
]
_GEMMA3_TEXT: List[Row] = [
    *_LLAMA[:5],
    Row("q_norm", "token head dim", "head", "rms_norm", module="self_attn.q_norm", how="heads"),
    Row("k_norm", "token kv_head dim", "kv_head", "rms_norm", module="self_attn.k_norm", how="heads"),
    *_GEMMA2[5:],
]
_MIXTRAL: List[Row] = [
    *_LLAMA[:15],
    Row("router_logits", "token expert", "expert", "linear", module="mlp.gate"),
    Row("router_ids", "token slot", "expert_id", "top_k", module="mlp.gate", how="2"),
    Row("router_weights", "token slot", "slot", "route", module="mlp.gate", how="1"),
    Row("expert_out", "token slot hidden", "hidden", "experts", module="mlp.experts", how="each"),
    Row("moe_out", "token hidden", "hidden", "combine", module="mlp.experts"),
    Row("output", "token hidden", "hidden", "add", module=""),
]
_OLMOE: List[Row] = [
    *_QWEN3[:17],
    *_MIXTRAL[15:],
]
_GPT_OSS: List[Row] = [
    *_LLAMA[:15],
    Row("router_logits", "token expert", "expert", "linear", module="mlp.router"),
    Row("router_ids", "token slot", "expert_id", "top_k", module="mlp.router", how="2"),
    Row("router_weights", "token slot", "slot", "route", module="mlp.router", how="1"),
    *_MIXTRAL[18:],
]
_QWEN3_5_MOE_TEXT_LINEAR_ATTENTION: List[Row] = [
    *_QWEN3_5_TEXT_LINEAR_ATTENTION[:21],
    *_MIXTRAL[15:19],
    Row("routed_out", "token hidden", "hidden", "combine", module="mlp.experts"),
    Row("gate_proj", "token ffn", "ffn", "linear", module="mlp.shared_expert.gate_proj"),
    Row("up_proj", "token ffn", "ffn", "linear", module="mlp.shared_expert.up_proj"),
    Row("gate_act", "token ffn", "ffn", "act", on_demand=True, module="mlp.shared_expert.act_fn"),
    Row("mlp_act", "token ffn", "ffn", "gated", module="mlp.shared_expert.down_proj", how="in"),
    Row("shared_expert_out", "token hidden", "hidden", "linear", module="mlp.shared_expert.down_proj"),
    Row("shared_expert_gate", "token slot", "shared_gate", "linear", module="mlp.shared_expert_gate"),
    Row("shared_expert_weight", "token slot", "shared_gate", "act"),
    Row("shared_expert_gated", "token hidden", "hidden", "combine"),
    Row("moe_out", "token hidden", "hidden", "add", module="mlp"),
    Row("output", "token hidden", "hidden", "add", module=""),
]
_QWEN3_5_MOE_TEXT_FULL_ATTENTION: List[Row] = [
    *_QWEN3_5_TEXT_FULL_ATTENTION[:20],
    *_QWEN3_5_MOE_TEXT_LINEAR_ATTENTION[21:],
]
_DEEPSEEK_V2_DENSE: List[Row] = [
    Row("input", "token hidden", "hidden", ""),
    Row("attn_norm", "token hidden", "hidden", "rms_norm", module="input_layernorm"),
    Row("q_a_proj", "token latent", "q_latent", "linear", module="self_attn.q_a_proj"),
    Row("q_a_norm", "token latent", "q_latent", "rms_norm", module="self_attn.q_a_layernorm"),
    Row("q_proj", "token head dim", "head", "linear", module="self_attn.q_b_proj"),
    Row("kv_a_proj", "token fused", "fused", "linear", module="self_attn.kv_a_proj_with_mqa"),
    Row("kv_latent", "token latent", "kv_latent", "slice"),
    Row("k_pe", "token kv_head dim", "k_pe", "slice"),
    Row("kv_a_norm", "token latent", "kv_latent", "rms_norm", module="self_attn.kv_a_layernorm"),
    Row("kv_b_proj", "token head dim", "fused", "linear"),
    Row("k_nope", "token kv_head dim", "k_nope", "slice"),
    Row("v_proj", "token kv_head dim", "kv_head", "slice"),
    Row("q_rope", "token head dim", "head", "rope"),
    Row("k_pe_rope", "token kv_head dim", "k_pe", "rope"),
    Row("k_rope", "token kv_head dim", "kv_head", "join"),
    *_LLAMA[7:],
]
_DEEPSEEK_V2_EXPERTS: List[Row] = [
    *_DEEPSEEK_V2_DENSE[:23],
    Row("router_logits", "token expert", "expert", "linear", module="mlp.gate"),
    Row("router_ids", "token slot", "expert_id", "top_k", module="mlp.experts", how="in1"),
    Row("router_weights", "token slot", "slot", "route", module="mlp.experts", how="in2"),
    Row("expert_out", "token slot hidden", "hidden", "experts", module="mlp.experts", how="each"),
    Row("routed_out", "token hidden", "hidden", "combine", module="mlp.experts"),
    Row("gate_proj", "token ffn", "ffn", "linear", module="mlp.shared_experts.gate_proj"),
    Row("up_proj", "token ffn", "ffn", "linear", module="mlp.shared_experts.up_proj"),
    Row("gate_act", "token ffn", "ffn", "act", on_demand=True, module="mlp.shared_experts.act_fn"),
    Row("mlp_act", "token ffn", "ffn", "gated", module="mlp.shared_experts.down_proj", how="in"),
    Row("shared_expert_out", "token hidden", "hidden", "linear", module="mlp.shared_experts.down_proj"),
    Row("moe_out", "token hidden", "hidden", "add", module="mlp"),
    Row("output", "token hidden", "hidden", "add", module=""),
]
FAMILIES: Dict[str, Family] = {
    "deepseek_v2": Family(_BEFORE_LLAMA, {"dense": _DEEPSEEK_V2_DENSE,
                                          "experts": _DEEPSEEK_V2_EXPERTS}, _BEHIND_LLAMA),
    "deepseek_v3": Family(_BEFORE_LLAMA, {"dense": _DEEPSEEK_V2_DENSE,
                                          "experts": _DEEPSEEK_V2_EXPERTS}, _BEHIND_LLAMA),
    "gemma2": Family(_BEFORE_GEMMA2, {"": _GEMMA2}, _BEHIND_GEMMA2),
    "gemma3_text": Family(_BEFORE_GEMMA2, {"": _GEMMA3_TEXT}, _BEHIND_LLAMA),
    "gpt2": Family(_BEFORE_GPT2, {"": _GPT2}, _BEHIND_GPT2),
    "gpt_oss": Family(_BEFORE_LLAMA, {"": _GPT_OSS}, _BEHIND_LLAMA),
    "llama": Family(_BEFORE_LLAMA, {"": _LLAMA}, _BEHIND_LLAMA),
    "mistral": Family(_BEFORE_LLAMA, {"": _LLAMA}, _BEHIND_LLAMA),
    "mixtral": Family(_BEFORE_LLAMA, {"": _MIXTRAL}, _BEHIND_LLAMA),
    "olmoe": Family(_BEFORE_LLAMA, {"": _OLMOE}, _BEHIND_LLAMA),
    "qwen2": Family(_BEFORE_LLAMA, {"": _LLAMA}, _BEHIND_LLAMA),
    "qwen3": Family(_BEFORE_LLAMA, {"": _QWEN3}, _BEHIND_LLAMA),
    "qwen3_5_moe_text": Family(_BEFORE_LLAMA, {"linear_attention": _QWEN3_5_MOE_TEXT_LINEAR_ATTENTION,
                                               "full_attention": _QWEN3_5_MOE_TEXT_FULL_ATTENTION}, _BEHIND_LLAMA),
    "qwen3_5_text": Family(_BEFORE_LLAMA, {"linear_attention": _QWEN3_5_TEXT_LINEAR_ATTENTION,
                                           "full_attention": _QWEN3_5_TEXT_FULL_ATTENTION}, _BEHIND_LLAMA),
    "qwen3_moe": Family(_BEFORE_LLAMA, {"experts": _OLMOE,
                                        "dense": _QWEN3}, _BEHIND_LLAMA),
}
FAMILIES.update({name[:-5]: f for name, f in FAMILIES.items() if name.endswith("_text")})
FAMILIES = dict(sorted(FAMILIES.items()))
