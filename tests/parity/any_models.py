"""any_models.py: tiny random models of many architectures. MODELS[name](attention) -> (model, inputs of a seed).

Weights are not flat, and exact in bfloat16.
"""

import logging
import warnings

import torch
import transformers as T

warnings.simplefilter("ignore")
T.logging.set_verbosity_error()
logging.disable(logging.WARNING)
VOCAB, TOKENS = 311, 24


def numbers(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def ids(seed, *shape):
    return torch.randint(3, 250, shape, generator=torch.Generator().manual_seed(seed))


def text(seed):
    return dict(input_ids=ids(seed, 1, TOKENS))


def pixels(seed):
    return dict(pixel_values=numbers(seed, 1, 3, 56, 56))


def shaken(m):
    """The model with weights that are not flat and that bfloat16 holds exactly."""
    g = torch.Generator().manual_seed(1)
    table = lambda n, p: "embed" in n and p.ndim == 2 and "proj" not in n
    with torch.no_grad():
        for n, p in [*m.named_parameters(), *((n, b) for n, b in m.named_buffers() if "correction_bias" in n)]:
            r = torch.randn(p.shape, generator=g)
            if p.ndim < 2:
                p.add_(0.2 * r)
            else:
                p.copy_(r * (1.0 if table(n, p) else 1.3 / (p.shape[-1] if p.ndim < 4 else p[0].numel()) ** 0.5))
            p.copy_(p.bfloat16().float())
    return m.eval()


def cast(inputs, dtype):
    return {k: t.to(dtype) if t.is_floating_point() else t for k, t in inputs.items()}


def hf(kind, config, inputs=text, **settings):
    """A model of transformers, of another depth on request; an older release lacks some: ImportError."""
    def make(attention="eager", depth=None):
        if not hasattr(T, kind):
            raise ImportError(f"transformers {T.__version__} has no {kind}")
        torch.manual_seed(0)
        other = dict(num_hidden_layers=depth) if depth else {}
        if depth and "layer_types" in settings:
            other["layer_types"] = (settings["layer_types"] * depth)[:depth]
        config_of = getattr(T, config)(**{**settings, **other})
        return shaken(getattr(T, kind)._from_config(config_of, attn_implementation=attention)), inputs
    return make


def other(build, inputs):
    def make(attention=None):
        torch.manual_seed(0)
        return shaken(build()), inputs
    return make


class Loop(torch.nn.Module):
    """One module used in a loop, tied weights, writes in place, a buffer of results."""

    def __init__(self):
        super().__init__()
        linear = torch.nn.Linear
        self.emb, self.norm = torch.nn.Embedding(VOCAB, 48), torch.nn.LayerNorm(48)
        self.block = torch.nn.Sequential(linear(48, 80), torch.nn.GELU(), linear(80, 48))
        self.head = linear(48, VOCAB, bias=False)
        self.head.weight, self.steps = self.emb.weight, 4

    def forward(self, input_ids):
        x = self.emb(input_ids) * 0.5
        out = torch.empty(self.steps, *x.shape, dtype=x.dtype, device=x.device)
        for i in range(self.steps):
            x = x + self.block(self.norm(x)) / (i + 1)
            out[i] = x
            if i % 2:
                x = x.clone()
                x[:, ::2].mul_(0.9)
                x.clamp_(-8, 8)
        m = out.mean(0)
        m.add_(out[-1])
        self.block(m)
        return self.head(m)


def unet():
    from diffusers import UNet2DConditionModel
    return UNet2DConditionModel(
        sample_size=16, in_channels=4, out_channels=4, layers_per_block=1, block_out_channels=(32, 64),
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32, attention_head_dim=4, norm_num_groups=8)


def dit():
    from diffusers import DiTTransformer2DModel
    return DiTTransformer2DModel(num_attention_heads=4, attention_head_dim=12, in_channels=4, num_layers=2,
                                 sample_size=8, patch_size=2, norm_num_groups=4, num_embeds_ada_norm=20)


def vae():
    from diffusers import AutoencoderKL
    return AutoencoderKL(block_out_channels=(16, 32), down_block_types=("DownEncoderBlock2D",) * 2,
                         up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, norm_num_groups=8,
                         layers_per_block=1, sample_size=16)


def of_timm(name, **settings):
    def build():
        import timm
        return timm.create_model(name, num_classes=10, **settings)
    return build


def encoder():
    layer = torch.nn.TransformerEncoderLayer(48, 4, 80, batch_first=True, dropout=0.0)
    return torch.nn.TransformerEncoder(layer, 2)


def image_text(seed):
    middle = torch.full((1, 4), 300)
    return dict(input_ids=torch.cat([ids(seed, 1, 5), middle, ids(seed + 1, 1, 12)], 1),
                pixel_values=numbers(seed, 16, 3 * 2 * 14 * 14), image_grid_thw=torch.tensor([[1, 4, 4]]),
                mm_token_type_ids=torch.tensor([[0] * 5 + [1] * 4 + [0] * 12]))


def llava_inputs(seed):
    middle = torch.full((1, 16), 300)
    return dict(input_ids=torch.cat([ids(seed, 1, 4), middle, ids(seed + 1, 1, 12)], 1),
                pixel_values=numbers(seed, 1, 3, 56, 56))


B = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
         pad_token_id=0, bos_token_id=1, eos_token_id=2)
K = dict(B, num_key_value_heads=2)
VIT = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=56,
           patch_size=14)
MROPE = dict(rope_type="default", mrope_section=[2, 3, 3], rope_theta=1e4)
DELTA = dict(head_dim=32, linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=16,
             linear_value_head_dim=16, layer_types=["linear_attention", "full_attention"])
DELTA_MOE = dict(DELTA, moe_intermediate_size=40, shared_expert_intermediate_size=40, num_experts=8,
                 num_experts_per_tok=3)
WINDOW = dict(head_dim=24, sliding_window=9, query_pre_attn_scalar=24)

MODELS = {
    "llama": hf("LlamaForCausalLM", "LlamaConfig", **K),
    "gpt2": hf("GPT2LMHeadModel", "GPT2Config", vocab_size=VOCAB, n_embd=64, n_layer=2, n_head=4, n_positions=64),
    "mistral": hf("MistralForCausalLM", "MistralConfig", **K, sliding_window=9),
    "qwen2": hf("Qwen2ForCausalLM", "Qwen2Config", **K),
    "qwen3": hf("Qwen3ForCausalLM", "Qwen3Config", **K, head_dim=24),
    "qwen3_5": hf("Qwen3_5ForCausalLM", "Qwen3_5TextConfig", **K, **DELTA),
    "mixtral": hf("MixtralForCausalLM", "MixtralConfig", **K, num_local_experts=6, num_experts_per_tok=2),
    "qwen3_moe": hf("Qwen3MoeForCausalLM", "Qwen3MoeConfig", **K, head_dim=24, moe_intermediate_size=40,
                    num_experts=9, num_experts_per_tok=3),
    "qwen3_5_moe": hf("Qwen3_5MoeForCausalLM", "Qwen3_5MoeTextConfig", **K, **DELTA_MOE),
    "qwen3_next": hf("Qwen3NextForCausalLM", "Qwen3NextConfig", **K, **DELTA_MOE),
    "gpt_oss": hf("GptOssForCausalLM", "GptOssConfig", **K, head_dim=16, num_local_experts=6, num_experts_per_tok=2,
                  sliding_window=9),
    "olmoe": hf("OlmoeForCausalLM", "OlmoeConfig", **K, num_experts=8, num_experts_per_tok=2),
    "deepseek_v3": hf("DeepseekV3ForCausalLM", "DeepseekV3Config", **dict(K, num_key_value_heads=4),
                      moe_intermediate_size=32, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3,
                      n_group=4, topk_group=2, first_k_dense_replace=1, q_lora_rank=24, kv_lora_rank=20,
                      qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=16),
    "gemma2": hf("Gemma2ForCausalLM", "Gemma2Config", **K, **WINDOW, attn_logit_softcapping=5.0,
                 final_logit_softcapping=8.0),
    "gemma3": hf("Gemma3ForCausalLM", "Gemma3TextConfig", **K, **WINDOW,
                 layer_types=["sliding_attention", "full_attention"]),
    "gemma4": hf("Gemma4ForCausalLM", "Gemma4TextConfig", **dict(K, num_hidden_layers=3), head_dim=24,
                 global_head_dim=32, sliding_window=9, hidden_size_per_layer_input=16,
                 vocab_size_per_layer_input=VOCAB, num_kv_shared_layers=1,
                 layer_types=["sliding_attention", "full_attention", "full_attention"]),
    "phi3": hf("Phi3ForCausalLM", "Phi3Config", **K),
    "phi": hf("PhiForCausalLM", "PhiConfig", **K),
    "granite": hf("GraniteForCausalLM", "GraniteConfig", **K),
    "cohere2": hf("Cohere2ForCausalLM", "Cohere2Config", **K, sliding_window=9),
    "llama4": hf("Llama4ForCausalLM", "Llama4TextConfig", **K, head_dim=16, intermediate_size_mlp=96,
                 num_local_experts=4, num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=12),
    "granite_moe_hybrid": hf("GraniteMoeHybridForCausalLM", "GraniteMoeHybridConfig", **K, num_local_experts=6,
                             num_experts_per_tok=2, shared_intermediate_size=48, layer_types=["mamba", "attention"],
                             mamba_n_heads=8, mamba_d_head=16, mamba_d_state=16, mamba_n_groups=1,
                             mamba_chunk_size=16),
    "glm4_moe": hf("Glm4MoeForCausalLM", "Glm4MoeConfig", **K, head_dim=16, moe_intermediate_size=32,
                   n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3, first_k_dense_replace=1,
                   use_qk_norm=True),
    "mamba2": hf("Mamba2ForCausalLM", "Mamba2Config", vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2,
                 num_heads=8, head_dim=16, state_size=16, n_groups=1, chunk_size=16),
    "falcon_h1": hf("FalconH1ForCausalLM", "FalconH1Config", **K, head_dim=16, mamba_d_ssm=64, mamba_n_heads=4,
                    mamba_d_head=16, mamba_d_state=16, mamba_n_groups=1, mamba_chunk_size=16),
    "lfm2": hf("Lfm2ForCausalLM", "Lfm2Config", **K, layer_types=["conv", "full_attention"]),
    "bloom": hf("BloomForCausalLM", "BloomConfig", vocab_size=VOCAB, hidden_size=64, n_layer=2, n_head=4),
    "bert": hf("BertModel", "BertConfig", **B),
    "modernbert": hf("ModernBertForMaskedLM", "ModernBertConfig", **dict(B, num_hidden_layers=3), local_attention=8,
                     cls_token_id=1, sep_token_id=2),
    "xlm_roberta": hf("XLMRobertaForMaskedLM", "XLMRobertaConfig", **B),
    "deberta_v2": hf("DebertaV2Model", "DebertaV2Config", **B, relative_attention=True, pos_att_type=["c2p", "p2c"],
                     max_position_embeddings=64),
    "t5": hf("T5ForConditionalGeneration", "T5Config", lambda s: dict(text(s), decoder_input_ids=ids(s + 9, 1, 12)),
             vocab_size=VOCAB, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4,
             feed_forward_proj="gated-gelu", pad_token_id=0, eos_token_id=2, decoder_start_token_id=0),
    "whisper": hf("WhisperForConditionalGeneration", "WhisperConfig",
                  lambda s: dict(input_features=numbers(s, 1, 20, 60), decoder_input_ids=ids(s, 1, 12)),
                  vocab_size=VOCAB, d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                  decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=30,
                  num_mel_bins=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1),
    "wav2vec2": hf("Wav2Vec2ForCTC", "Wav2Vec2Config", lambda s: dict(input_values=numbers(s, 1, 1600)),
                   **dict(B, vocab_size=40), conv_dim=(32, 32, 32), conv_stride=(5, 4, 2), conv_kernel=(10, 4, 3),
                   num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4),
    "siglip": hf("SiglipVisionModel", "SiglipVisionConfig", pixels, **VIT),
    "vit": hf("ViTModel", "ViTConfig", pixels, **VIT),
    "dinov2": hf("Dinov2Model", "Dinov2Config", pixels, **{k: v for k, v in VIT.items() if k != "intermediate_size"},
                 mlp_ratio=2),
    "clip": hf("CLIPModel", "CLIPConfig", lambda s: dict(text(s), **pixels(s)), text_config=dict(B, projection_dim=32),
               vision_config=dict(VIT, projection_dim=32), projection_dim=32),
    "qwen2_5_vl": hf("Qwen2_5_VLForConditionalGeneration", "Qwen2_5_VLConfig", image_text,
                     text_config=dict(K, rope_parameters=MROPE),
                     vision_config=dict(depth=2, hidden_size=64, intermediate_size=96, num_heads=4,
                                        out_hidden_size=64, window_size=28, fullatt_block_indexes=[1]),
                     image_token_id=300, video_token_id=301, vision_start_token_id=302, vision_end_token_id=303),
    "llava": hf("LlavaForConditionalGeneration", "LlavaConfig", llava_inputs, text_config=dict(K, model_type="llama"),
                vision_config=dict(VIT, model_type="clip_vision_model", projection_dim=32), image_token_index=300,
                vision_feature_layer=-1),
    "olmo2": hf("Olmo2ForCausalLM", "Olmo2Config", **K),
    "mamba": hf("MambaForCausalLM", "MambaConfig", vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2,
                state_size=16),
    "gemma3n": hf("Gemma3nForCausalLM", "Gemma3nTextConfig",
                  **dict(K, num_hidden_layers=4, intermediate_size=[96] * 4), head_dim=16, sliding_window=9,
                  hidden_size_per_layer_input=16, vocab_size_per_layer_input=VOCAB, num_kv_shared_layers=1,
                  laurel_rank=8, altup_num_inputs=2, activation_sparsity_pattern=[0.5, 0.0, 0.0, 0.0],
                  layer_types=["sliding_attention"] * 2 + ["full_attention"] * 2),
    "jamba": hf("JambaForCausalLM", "JambaConfig", **K, attn_layer_period=2, attn_layer_offset=1,
                expert_layer_period=2, expert_layer_offset=1, num_experts=4, use_mamba_kernels=False,
                mamba_d_state=8, mamba_dt_rank=8),
    "zamba2": hf("Zamba2ForCausalLM", "Zamba2Config", **dict(K, num_hidden_layers=4, num_key_value_heads=4),
                 attention_hidden_size=128, attention_head_dim=32, n_mamba_heads=8, mamba_headdim=16,
                 mamba_d_state=16, mamba_ngroups=1, chunk_size=16, num_mem_blocks=1, use_mem_rope=True,
                 adapter_rank=8, layers_block_type=["mamba", "hybrid"] * 2),
    "recurrent_gemma": hf("RecurrentGemmaForCausalLM", "RecurrentGemmaConfig", **dict(K, num_hidden_layers=3),
                          lru_width=64, attention_window_size=16),
    "minimax": hf("MiniMaxForCausalLM", "MiniMaxConfig", **K, head_dim=16, num_local_experts=4,
                  num_experts_per_tok=2, block_size=8, layer_types=["linear_attention", "full_attention"]),
    "jetmoe": hf("JetMoeForCausalLM", "JetMoeConfig", vocab_size=VOCAB, hidden_size=64, intermediate_size=48,
                 num_hidden_layers=2, num_key_value_heads=2, kv_channels=16, num_local_experts=4,
                 num_experts_per_tok=2),
    "longcat": hf("LongcatFlashForCausalLM", "LongcatFlashConfig", vocab_size=VOCAB, hidden_size=64,
                  ffn_hidden_size=96, expert_ffn_hidden_size=32, num_layers=1, num_attention_heads=4,
                  kv_lora_rank=20, q_lora_rank=24, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=16, head_dim=8,
                  n_routed_experts=6, zero_expert_num=2, moe_topk=3),
    "albert": hf("AlbertModel", "AlbertConfig", **B, embedding_size=32),
    "bart": hf("BartForConditionalGeneration", "BartConfig",
               lambda s: dict(text(s), decoder_input_ids=ids(s + 9, 1, 12)), vocab_size=VOCAB, d_model=64,
               encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
               encoder_ffn_dim=96, decoder_ffn_dim=96, max_position_embeddings=64),
    "moonshine": hf("MoonshineForConditionalGeneration", "MoonshineConfig",  # its encoder's results are its own class
                    lambda s: dict(input_values=numbers(s, 1, 4000), decoder_input_ids=ids(s, 1, 8)),
                    vocab_size=VOCAB, hidden_size=64, intermediate_size=96, encoder_num_hidden_layers=2,
                    decoder_num_hidden_layers=2, encoder_num_attention_heads=4, decoder_num_attention_heads=4,
                    encoder_num_key_value_heads=4, decoder_num_key_value_heads=4),
    "mpt": hf("MptForCausalLM", "MptConfig", vocab_size=VOCAB, d_model=64, n_heads=4, n_layers=2, max_seq_len=64),
    "hrm": hf("HrmTextForCausalLM", "HrmTextConfig", **B, head_dim=16),  # two modules of layers, called in turn
    "prophetnet": hf("ProphetNetForCausalLM", "ProphetNetConfig",  # positions that begin behind its cache
                     vocab_size=VOCAB, hidden_size=64, encoder_ffn_dim=96, decoder_ffn_dim=96, num_encoder_layers=2,
                     num_decoder_layers=2, num_encoder_attention_heads=4, num_decoder_attention_heads=4, dropout=0.0,
                     attention_dropout=0.0, activation_dropout=0.0, max_position_embeddings=128),
    "canine": hf("CanineModel", "CanineConfig", **B, num_hash_buckets=64),  # float64 makes its mask NaN
    "inkling2": hf("Inkling2ForCausalLM", "Inkling2TextConfig",  # float32 routers, of float32 inputs
                   vocab_size=VOCAB, unpadded_vocab_size=VOCAB, hidden_size=64, num_hidden_layers=2,
                   num_attention_heads=4, num_key_value_heads=2, head_dim=16, layer_types=["hybrid_sliding", "hybrid"],
                   moe_intermediate_size=32, n_routed_experts=8, num_experts_per_tok=2, max_position_embeddings=128),
    "patchtst": hf("PatchTSTForPrediction", "PatchTSTConfig", lambda s: dict(past_values=numbers(s, 2, 32, 3)),
                   num_input_channels=3, context_length=32, patch_length=8, patch_stride=8, d_model=32,
                   num_attention_heads=4, num_hidden_layers=2, ffn_dim=48, prediction_length=8),
    "swinv2": hf("Swinv2Model", "Swinv2Config", pixels, image_size=56, patch_size=4, embed_dim=24, depths=[1, 1],
                 num_heads=[2, 4], window_size=7),  # a buffer that is not saved, which a product reads
    "segformer": hf("SegformerModel", "SegformerConfig", pixels, depths=[1] * 4, hidden_sizes=[16, 32, 32, 64],
                    num_attention_heads=[1, 2, 2, 4], decoder_hidden_size=32),
    "funnel": hf("FunnelModel", "FunnelConfig", vocab_size=VOCAB, block_sizes=[1, 1], d_model=64, n_head=4, d_head=16,
                 d_inner=96, num_decoder_layers=1),
    "apertus": hf("ApertusForCausalLM", "ApertusConfig", **K),
    "nemotron": hf("NemotronForCausalLM", "NemotronConfig", **K),
    "unet": other(unet, lambda s: dict(sample=numbers(s, 1, 4, 16, 16), timestep=torch.tensor([7 + s]),
                                       encoder_hidden_states=numbers(s + 1, 1, 6, 32))),
    "dit": other(dit, lambda s: dict(hidden_states=numbers(s, 1, 4, 8, 8), timestep=torch.tensor([5 + s]),
                                     class_labels=torch.tensor([3]))),
    "vae": other(vae, lambda s: dict(sample=numbers(s, 1, 3, 16, 16))),
    "convnext": other(of_timm("convnext_atto", depths=(1, 1, 2, 1), dims=(16, 24, 32, 48)),
                      lambda s: dict(x=numbers(s, 1, 3, 64, 64))),
    "mobilenet": other(of_timm("mobilenetv3_small_050"), lambda s: dict(x=numbers(s, 1, 3, 64, 64))),
    "swin": other(of_timm("swin_tiny_patch4_window7_224", img_size=56, embed_dim=24, depths=(2, 2),
                          num_heads=(2, 4)), lambda s: dict(x=numbers(s, 1, 3, 56, 56))),
    "encoder_layer": other(encoder, lambda s: dict(src=numbers(s, 1, TOKENS, 48))),
    "lstm": other(lambda: torch.nn.Sequential(torch.nn.LSTM(32, 40, 2, batch_first=True)),
                  lambda s: dict(input=numbers(s, 1, TOKENS, 32))),
    "loop": other(Loop, text),
}
