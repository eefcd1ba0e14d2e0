/* kernels.c: the table of shaders, and the pipelines made from it. */
#include "libgpu/kernels.h"

#include "libgpu/pipeline_cache.h"

#include "libref/base/progress.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* The words of the file `path` as spv_NAME, up to spv_NAME_end. */
#define SPIRV(name, path) \
	extern const uint32_t spv_##name[] __attribute__((visibility("hidden"))); \
	extern const uint32_t spv_##name##_end[] __attribute__((visibility("hidden"))); \
	__asm__(".pushsection .rodata\n.balign 4\nspv_" #name ":\n.incbin \"" path "\"\nspv_" #name "_end:\n.popsection")

/* Made by the build: a line SPIRV(NAME, path) for each shader. */
#include "kernels_spv.h"

/* The blocks as GLSL lays them out (std430): an address is 8 bytes and aligned so. */
static_assert(offsetof(vn_push_embed, T) == 24 && offsetof(vn_push_embed, D) == 28, "embed.comp");
static_assert(offsetof(vn_push_rms_norm, R) == 24 && offsetof(vn_push_rms_norm, eps) == 32 &&
                  offsetof(vn_push_rms_norm, divisor) == 40 && offsetof(vn_push_rms_norm, G) == 48,
              "rms_norm.comp, l2_norm.comp");
static_assert(offsetof(vn_push_layer_norm, R) == 32 && offsetof(vn_push_layer_norm, has_bias) == 44 &&
                  offsetof(vn_push_layer_norm, divisor) == 52,
              "layer_norm.comp");
static_assert(offsetof(vn_push_slice, R) == 16 && offsetof(vn_push_slice, width) == 28, "slice.comp");
static_assert(offsetof(vn_push_linear, T) == 32 && offsetof(vn_push_linear, y_stride) == 44 &&
                  offsetof(vn_push_linear, width) == 52 && offsetof(vn_push_linear, sums) == 56 &&
                  offsetof(vn_push_linear, y_wide) == 68,
              "linear.glsl");
static_assert(offsetof(vn_push_linear_gated, w) == 72 && offsetof(vn_push_linear_gated, up_has_bias) == 104 &&
                  offsetof(vn_push_linear_gated, act) == 108,
              "linear.glsl");
static_assert(offsetof(vn_push_add_norm, R) == 56 && offsetof(vn_push_add_norm, shares) == 72, "add_norm.comp");
static_assert(offsetof(vn_push_norm_rope, rows) == 40 && offsetof(vn_push_norm_rope, eps) == 56, "norm_rope.comp");
static_assert(offsetof(vn_push_rope, T) == 24 && offsetof(vn_push_rope, R) == 36 &&
                  offsetof(vn_push_rope, pairing) == 40,
              "rope.comp");
static_assert(offsetof(vn_push_attention, T) == 32 && offsetof(vn_push_attention, causal) == 56 &&
                  offsetof(vn_push_attention, scale) == 64 && offsetof(vn_push_attention, n_keys) == 76 &&
                  offsetof(vn_push_attention, table) == 88 && offsetof(vn_push_attention, ahead) == 96 &&
                  offsetof(vn_push_attention, padding) == 108 && offsetof(vn_push_attention, before) == 120,
              "mask.glsl");
static_assert(offsetof(vn_push_pages, at) == 24 && offsetof(vn_push_pages, B) == 40, "pages.comp");
static_assert(offsetof(vn_push_append, n) == 16 && offsetof(vn_push_append, eights) == 20, "append.comp");
static_assert(offsetof(vn_push_from_bf16, eights) == 16 && offsetof(vn_push_from_bf16, rest) == 20, "from_bf16.comp");
static_assert(offsetof(vn_push_causal_conv, T) == 32 && offsetof(vn_push_causal_conv, J) == 40 &&
                  offsetof(vn_push_causal_conv, linear) == 44,
              "causal_conv.comp");
static_assert(offsetof(vn_push_log_decay, T) == 32 && offsetof(vn_push_log_decay, N) == 36 &&
                  offsetof(vn_push_log_decay, form) == 40,
              "log_decay.comp");
static_assert(offsetof(vn_push_delta_rule, T) == 64 && offsetof(vn_push_delta_rule, scale) == 84 &&
                  offsetof(vn_push_delta_rule, P) == 100,
              "delta_rule.comp");
static_assert(offsetof(vn_push_gated_norm, R) == 32 && offsetof(vn_push_gated_norm, eps) == 40 &&
                  offsetof(vn_push_gated_norm, divisor) == 44 && offsetof(vn_push_gated_norm, gate_first) == 56,
              "gated_norm.comp");
static_assert(sizeof(vn_push_attention) <= 128 && sizeof(vn_push_delta_rule) <= 128, "a device need not take more");
static_assert(offsetof(vn_push_map, n) == 24 && offsetof(vn_push_map, act) == 28 &&
                  offsetof(vn_push_map, eights) == 32 && offsetof(vn_push_map, form) == 36,
              "map.glsl");
static_assert(VN_SILU == 0 && VN_GELU == 1 && VN_GELU_TANH == 2 && VN_SIGMOID == 3 && VN_RELU == 4 &&
                  VN_QUICK_GELU == 5 && VN_IDENTITY == 6 && VN_TWO_SIGMOID == 7 && VN_SOFT_CAP == 8 && VN_AS_F16 == 9 &&
                  VN_AS_F16_SATURATED == 10 && VN_AS_F16_FLUSHED == 11 && VN_AS_F16_CUT == 12 && VN_AS_BF16_CUT == 13 &&
                  VN_N_ACTS == 14,
              "activation.glsl, map_experiment.glsl, gated_norm_experiment.glsl");
static_assert(VN_ROWS_SHIFTED == 1 && VN_ROWS_PARTS_FIRST == 2 && VN_ROWS_IN_TURN == 3 && VN_ROWS_TILES == 4 &&
                  VN_ROWS_LOG_SOFTMAX == 5 && VN_ROWS_ROUND == 6 && VN_N_ROWS_FORMS == 7 &&
                  offsetof(vn_push_rows, T) == 24 && offsetof(vn_push_rows, inner) == 44,
              "rows.comp");
static_assert(VN_GATE_PRODUCT == 1 && VN_GATE_BOTH == 2 && VN_N_GATE_FORMS == 3, "map_experiment.glsl");
static_assert(VN_PAIR_NEIGHBOURS == 1 && VN_PAIR_ACROSS == 2 && VN_N_PAIRINGS == 3, "rope_experiment.glsl");
static_assert(VN_DECAY_POSITIVE == 1 && VN_DECAY_RAW == 2 && VN_DECAY_NEGATED == 3 && VN_DECAY_LINEAR == 4,
              "log_decay_experiment.glsl");
static_assert(VN_DELTA_NO_DECAY == 1 && VN_DELTA_FACTOR == 2 && VN_DELTA_DECAY_LATE == 3 && VN_DELTA_READ_FIRST == 4 &&
                  VN_DELTA_MEMORY_FIRST == 5 && VN_DELTA_NO_DELTA == 6 && VN_DELTA_UNSOLVED == 7 &&
                  VN_DELTA_BETA_KEYS == 8 && VN_DELTA_BETA_VALUES == 9 && VN_N_DELTA_FORMS == 10,
              "delta_rule_experiment.glsl");
static_assert(VN_HEADS_MODULO == 1 && VN_HEADS_NONE == 2 && VN_HEADS_FLAT == 3 && VN_N_HEAD_MAPS == 4,
              "mask_experiment.glsl");
static_assert(VN_ATTN_OVER_QUERIES == 1 && VN_ATTN_OVER_HEADS == 2 && VN_ATTN_NO_MAX == 3 && VN_ATTN_NO_MAX_F16 == 4 &&
                  VN_ATTN_PROBS_F16 == 5 && VN_ATTN_PROBS_BF16 == 6 && VN_ATTN_SCORES_F16 == 7 && VN_N_ATTN_FORMS == 8,
              "mask_experiment.glsl");
static_assert(VN_CACHE_BLOCKLESS == 1 && VN_CACHE_NEXT == 2 && VN_CACHE_SWAPPED == 3 && VN_CACHE_HEADS_FIRST == 4 &&
                  VN_CACHE_LATE == 5 && VN_CACHE_STALE == 6 && VN_CACHE_RING == 7 && VN_CACHE_F16 == 8 &&
                  VN_CACHE_F8 == 9 && VN_CACHE_FORMER == 10 && VN_CACHE_SEEN == 11 && VN_CACHE_PAST == 12 &&
                  VN_CACHE_F8_WIDE == 13 && VN_N_CACHE_FORMS == 14,
              "mask_experiment.glsl");

/* clang-format off */
typedef struct code { const uint32_t *words, *end; } code;

#define CODE(name) { spv_##name, spv_##name##_end }
#define BOTH(name) CODE(name##_f16), CODE(name##_f16), CODE(name##_f32)
#define NONE { NULL, NULL }, { NULL, NULL }, { NULL, NULL }

static const struct shader_row {
	const char *name;
	code        f16, acc16, f32;
	uint32_t    push;
	bool        experiment;
} table[VN_N_KERNELS] = {
#define SHADER(NAME, name, push) [VN_K_##NAME] = { #name, BOTH(name), push, false },
#define PAIR(NAME, name, block, from) \
	[VN_K_##NAME] = { #name, BOTH(name), offsetof(block, from), false }, \
	[VN_K_##NAME##_EXPERIMENT] = { #name "_experiment", BOTH(name##_experiment), sizeof(block), true },
#define EXPERIMENT(NAME, name, push) [VN_K_##NAME] = { #name, BOTH(name), push, true },
#include "libgpu/kernels.def"
#define TILE(size) \
	[VN_K_LINEAR_##size] = { "linear_" #size,           CODE(linear_##size##_f16), CODE(linear_##size##_acc16), \
		                     CODE(linear_##size##_f32), sizeof(vn_push_linear),    false }
	TILE(64X128), TILE(64X64), TILE(32X32), TILE(16X64),
	[VN_K_LINEAR_VEC]   = { "linear_vec",   CODE(linear_vec_f16), CODE(linear_vec_acc16), CODE(linear_vec_f32),
	                        sizeof(vn_push_linear), false },
	[VN_K_LINEAR_VEC_KEPT] = { "linear_vec_kept", CODE(linear_vec_kept_f16), CODE(linear_vec_kept_acc16),
	                           CODE(linear_vec_kept_f32), sizeof(vn_push_linear), false },
	[VN_K_LINEAR_GATED] = { "linear_gated", CODE(linear_gated_f16), CODE(linear_gated_acc16), CODE(linear_gated_f32),
	                        sizeof(vn_push_linear_gated), false },
#define TILE_GATED(size) \
	[VN_K_LINEAR_##size##_GATED] = { "linear_" #size "_gated", CODE(linear_##size##_gated_f16), \
		                             CODE(linear_##size##_gated_acc16), CODE(linear_##size##_gated_f32), \
		                             sizeof(vn_push_linear_gated), false }
	TILE_GATED(64X128), TILE_GATED(64X64),
#define COOP(size) [VN_K_COOP_##size] = { "linear_coop_" #size, NONE, sizeof(vn_push_linear), false }
	COOP(8X8), COOP(8X4), COOP(4X4), COOP(2X4), COOP(2X2), COOP(1X2),
#define COOP_GATED(size) \
	[VN_K_COOP_##size##_GATED] = { "linear_coop_" #size "_gated", NONE, sizeof(vn_push_linear_gated), false }
	COOP_GATED(4X4), COOP_GATED(2X4), COOP_GATED(2X2),
	[VN_K_ATTENTION]    = { "attention",    NONE /* by_width */, offsetof(vn_push_attention, ahead), false },
	[VN_K_ATTENTION_EXPERIMENT] = { "attention_experiment", BOTH(attention_experiment), sizeof(vn_push_attention),
		true },
	[VN_K_ATTENTION_COOP_64]  = { "attention_coop_64",  NONE, offsetof(vn_push_attention, ahead), false },
	[VN_K_ATTENTION_COOP_128] = { "attention_coop_128", NONE, offsetof(vn_push_attention, ahead), false },
	[VN_K_ATTENTION_COOP_256] = { "attention_coop_256", NONE, offsetof(vn_push_attention, ahead), false },
	[VN_K_PAGED_PUT]    = { "paged_put",    NONE, sizeof(vn_push_pages), false },
	[VN_K_PAGED_GET]    = { "paged_get",    NONE, sizeof(vn_push_pages), false },
	[VN_K_FROM_BF16]    = { "from_bf16", CODE(from_bf16), CODE(from_bf16), { NULL, NULL }, sizeof(vn_push_from_bf16),
		                    false },
};
/* clang-format on */

/* Compiled with PUSH_IN_MEMORY: the shaders that a decoded token needs and whose block contains a
 * place in the cache. */
static const bool in_memory[VN_N_KERNELS] = {
#define IN_MEMORY(NAME, name) [VN_K_##NAME] = true,
#include "libgpu/kernels.def"
	[VN_K_LINEAR_VEC_KEPT] = true,
	[VN_K_PAGED_PUT] = true,
};

/* The code with a paged cache; a shader without an entry has the code of the table above. */
/* clang-format off */
static const struct { code f16, f32; } paged_code[VN_N_KERNELS] = {
#define PAGED(name) { CODE(name##_paged_f16), CODE(name##_paged_f32) }
	[VN_K_ATTENTION_FEW]          = PAGED(attention_few),
	[VN_K_ATTENTION_EXPERIMENT]   = PAGED(attention_experiment),
	[VN_K_ATTN_SCORES]            = PAGED(attn_scores),
	[VN_K_ATTN_SCORES_EXPERIMENT] = PAGED(attn_scores_experiment),
	[VN_K_ATTN_PROBS]             = PAGED(attn_probs),
	[VN_K_ATTN_PROBS_EXPERIMENT]  = PAGED(attn_probs_experiment),
	[VN_K_PAGED_PUT]              = { CODE(paged_put_f16), CODE(paged_put_f32) },
	[VN_K_PAGED_GET]              = { CODE(paged_get_f16), CODE(paged_get_f32) },
};
/* clang-format on */

/* The code of VN_K_ATTENTION: a lane's registers grow with the width of a head. */
static const struct {
	int  width;
	code f16, f32, paged_f16, paged_f32;
} by_width[] = {
#define WIDTH(n) \
	{ \
		n, CODE(attention_##n##_f16), CODE(attention_##n##_f32), CODE(attention_##n##_paged_f16), \
			CODE(attention_##n##_paged_f32) \
	}
	WIDTH(64), WIDTH(128), WIDTH(256)
};

static code attention_code(const vn_plan *p, bool f32, bool paged)
{
	int widest = 1, i = 0;

	for (int n = 0; n < p->n_nodes; n++)
		if (p->node[n].op == VN_OP_ATTENTION && p->node[n].c.attention.head_dim > widest)
			widest = p->node[n].c.attention.head_dim;
	while (by_width[i].width < widest) /* at most the last: gpu.c has checked */
		i++;
	return paged ? f32 ? by_width[i].paged_f32 : by_width[i].paged_f16 : f32 ? by_width[i].f32 : by_width[i].f16;
}

static code code_of(const vn_plan *p, vn_policy policy, bool paged, vn_kernel k)
{
	const struct shader_row *t = &table[k];
	const bool               f32 = policy.storage == VN_F32;

	if (k == VN_K_ATTENTION)
		return attention_code(p, f32, paged);
	if (paged && paged_code[k].f16.words)
		return f32 ? paged_code[k].f32 : paged_code[k].f16;
	return f32 ? t->f32 : policy.sums == VN_F16 ? t->acc16 : t->f16;
}

/* Code for half precision with float sums, by the size of the device's cooperative matrices. */
static const struct {
	code of[VN_N_COOPS];
} coop_code[VN_N_KERNELS] = {
#define BY_SIZE(size) \
	[VN_K_COOP_## \
		size] = { { [VN_COOP_16] = CODE(linear_coop_##size##_by16), [VN_COOP_8] = CODE(linear_coop_##size##_by8) } }
	BY_SIZE(8X8), BY_SIZE(8X4), BY_SIZE(4X4), BY_SIZE(2X4), BY_SIZE(2X2), BY_SIZE(1X2),
#define GATED_BY_SIZE(size) \
	[VN_K_COOP_##size##_GATED] = { \
		{ [VN_COOP_16] = CODE(linear_coop_##size##_gated_by16), [VN_COOP_8] = CODE(linear_coop_##size##_gated_by8) } \
	}
	GATED_BY_SIZE(4X4), GATED_BY_SIZE(2X4), GATED_BY_SIZE(2X2),
#define ATTENTION_BY_SIZE(width, paged) \
	[VN_K_ATTENTION_COOP_##width] = { { [VN_COOP_16] = CODE(attention_coop_##width##paged##_by16), \
		                                [VN_COOP_8] = CODE(attention_coop_##width##paged##_by8) } }
	ATTENTION_BY_SIZE(64, ), ATTENTION_BY_SIZE(128, ), ATTENTION_BY_SIZE(256, ),
}, paged_coop_code[VN_N_KERNELS] = {
	ATTENTION_BY_SIZE(64, _paged), ATTENTION_BY_SIZE(128, _paged), ATTENTION_BY_SIZE(256, _paged),
};

/* The shader with cooperative matrices for heads of a width; VN_K_ATTENTION: there is none. */
static vn_kernel coop_attention(int head_dim)
{
	return head_dim > 128  ? VN_K_ATTENTION_COOP_256
	       : head_dim % 8  ? VN_K_ATTENTION
	       : head_dim > 64 ? VN_K_ATTENTION_COOP_128
	                       : VN_K_ATTENTION_COOP_64;
}

static code coop_code_of(const vn_plan *p, const vn_device *d, bool paged, vn_kernel k)
{
	bool used = k < VN_K_ATTENTION_COOP_64 || k > VN_K_ATTENTION_COOP_256;

	for (int n = 0; n < p->n_nodes && !used; n++)
		used = p->node[n].op == VN_OP_ATTENTION && coop_attention(p->node[n].c.attention.head_dim) == k;
	if (!used)
		return (code) { NULL, NULL };
	return paged && paged_coop_code[k].of[d->coop].words ? paged_coop_code[k].of[d->coop] : coop_code[k].of[d->coop];
}

const char *vn_kernel_name(vn_kernel k)
{
	return table[k].name;
}

uint32_t vn_kernel_push_bytes(vn_kernel k)
{
	return table[k].push;
}

bool vn_kernel_in_memory(vn_kernel k)
{
	return in_memory[k];
}

vn_kernel vn_kernel_of(vn_kernel usual, const vn_node *n)
{
	if (!vn_node_is_experiment(n))
		return usual;
	assert(usual + 1 < VN_N_KERNELS && !table[usual].experiment && table[usual + 1].experiment);
	return (vn_kernel)(usual + 1);
}

vn_kernel vn_kernel_of_attention(const vn_kernels *k, int head_dim)
{
	const vn_kernel coop = coop_attention(head_dim);

	return k->shader[coop].words ? coop : VN_K_ATTENTION;
}

static bool has_experiment(const vn_plan *p)
{
	bool has = false;

	for (int i = 0; i < p->n_nodes; i++)
		has = has || vn_node_is_experiment(&p->node[i]);
	return has;
}

/* Cooperative matrices require a subgroup of this many lanes. */
vn_status vn_kernel_build(vn_kernels *k, vn_kernel which, vn_error *err)
{
	vn_device                                                *d = k->d;
	const vn_shader                                          *s = &k->shader[which];
	const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo lanes = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO,
		.requiredSubgroupSize = vn_coop_subgroup(s->coop)
	};
	VkShaderModule module = VK_NULL_HANDLE;
	VkResult       r;

	if ((k->pipeline[which] = vn_pipelines_find(d->pipelines, s->words)))
		return VN_OK;
	vn_device_unheard = s->coop && d->old_layer;
	r = vn_vk.CreateShaderModule(d->device,
	                             &(VkShaderModuleCreateInfo) { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
	                                                           .codeSize = s->bytes,
	                                                           .pCode = s->words },
	                             NULL, &module);
	vn_device_unheard = false;
	if (r != VK_SUCCESS)
		return vn_device_fail(d, r, err, table[which].name);
	vn_device_name(d, VK_OBJECT_TYPE_SHADER_MODULE, (uint64_t)module, table[which].name);
	vn_device_unheard = s->coop && d->old_layer;
	r = vn_vk.CreateComputePipelines(
		d->device, k->cache, 1,
		&(VkComputePipelineCreateInfo) {
			.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
			.layout = k->layout,
			.stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
	                   .pName = "main",
	                   .pNext = s->coop ? &lanes : NULL,
	                   .flags = s->coop ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
	                   .stage = VK_SHADER_STAGE_COMPUTE_BIT,
	                   .module = module } },
		NULL, &k->pipeline[which]);
	vn_device_unheard = false;
	vn_vk.DestroyShaderModule(d->device, module, NULL);
	if (r != VK_SUCCESS) {
		k->pipeline[which] = VK_NULL_HANDLE;
		return vn_device_fail(d, r, err, table[which].name);
	}
	vn_device_name(d, VK_OBJECT_TYPE_PIPELINE, (uint64_t)k->pipeline[which], table[which].name);
	if (!vn_pipelines_add(d->pipelines, s->words, k->pipeline[which])) {
		vn_vk.DestroyPipeline(d->device, k->pipeline[which], NULL);
		k->pipeline[which] = VK_NULL_HANDLE;
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a pipeline");
	}
	return VN_OK;
}

vn_status vn_kernel_pipeline(vn_kernels *k, vn_kernel which, VkPipeline *pipeline, vn_error *err)
{
	const double begun = k->pipeline[which] ? 0.0 : vn_seconds();
	vn_status    st = VN_OK;

	if (!k->pipeline[which]) {
		st = vn_kernel_build(k, which, err);
		k->seconds += vn_seconds() - begun;
	}
	*pipeline = k->pipeline[which];
	return st;
}

static void choose_shaders(vn_kernels *k, const vn_plan *plan, vn_policy policy, bool paged)
{
	const bool experiment = has_experiment(plan);

	for (int i = 0; i < VN_N_KERNELS; i++) {
		const code matrices = k->side ? coop_code_of(plan, k->d, paged, (vn_kernel)i) : (code) { NULL, NULL };
		const code usual = matrices.words ? matrices : code_of(plan, policy, paged, (vn_kernel)i);
		if (!table[i].experiment || experiment)
			k->shader[i] = (vn_shader) { usual.words, (size_t)(usual.end - usual.words) * sizeof *usual.words,
				                         matrices.words ? k->d->coop : VN_COOP_NONE };
	}
}

/* One layout fits all pipelines. */
static vn_status create_layout(vn_device *d, vn_error *err)
{
	VkResult r;

	if (d->pipelines->layout)
		return VN_OK;
	r = vn_vk.CreatePipelineLayout(
		d->device,
		&(VkPipelineLayoutCreateInfo) {
			.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
			.pushConstantRangeCount = 1,
			.pPushConstantRanges = &(VkPushConstantRange) { .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = 128 } },
		NULL, &d->pipelines->layout);
	if (r != VK_SUCCESS) {
		d->pipelines->layout = VK_NULL_HANDLE;
		return vn_device_fail(d, r, err, "pipeline layout");
	}
	vn_device_name(d, VK_OBJECT_TYPE_PIPELINE_LAYOUT, (uint64_t)d->pipelines->layout, "push block");
	return VN_OK;
}

vn_status vn_kernels_create(vn_device *d, vn_kernels *k, const vn_plan *plan, vn_policy policy, bool paged,
                            const char *cache_dir, vn_error *err)
{
	vn_status st;

	*k = (vn_kernels) { .d = d,
		                .float_sums = policy.sums == VN_F32,
		                .side = policy.storage == VN_F16 && policy.sums == VN_F32 ? (int)vn_coop_side(d->coop) : 0 };
	choose_shaders(k, plan, policy, paged);
	if ((cache_dir && !(k->cache_dir = strdup(cache_dir))) ||
	    !vn_pipelines_keep_for(d->device, d->pipelines, cache_dir)) {
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for the name of a folder");
		goto fail;
	}
	if ((st = create_layout(d, err)))
		goto fail;
	k->layout = d->pipelines->layout;
	k->had = d->pipelines->n;
	if (!(st = vn_pipeline_cache_open(d, k->cache_dir, &k->cache, &k->cache_hit, err)))
		return VN_OK;
fail:
	vn_kernels_destroy(k);
	return st;
}

void vn_kernels_destroy(vn_kernels *k)
{
	if (k->cache && k->d->pipelines->n > k->had)
		vn_pipeline_cache_save(k->d, k->cache_dir, k->cache);
	if (k->cache)
		vn_vk.DestroyPipelineCache(k->d->device, k->cache, NULL);
	free(k->cache_dir);
	*k = (vn_kernels) { 0 };
}
