/* kernels.c: the table of shaders, and the pipelines made from it. */
#include "libgpu/kernels.h"

#include "libgpu/pipeline_cache.h"

#include "libref/base/progress.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Made by the build: a row SPIRV(NAME, path) for each module. The words of the file `path` are
 * spv_NAME, up to spv_NAME_end. */
#define SPIRV(name, path) \
	extern const uint32_t spv_##name[] __attribute__((visibility("hidden"))); \
	extern const uint32_t spv_##name##_end[] __attribute__((visibility("hidden"))); \
	__asm__(".pushsection .rodata\n.balign 4\nspv_" #name ":\n.incbin \"" path "\"\nspv_" #name "_end:\n.popsection");
#include "kernels_spv.h"
#undef SPIRV

static const struct module {
	const char     *name;
	const uint32_t *words, *end;
} modules[] = {
#define SPIRV(name, path) { #name, spv_##name, spv_##name##_end },
#include "kernels_spv.h"
};

#define FORM(name, number) static_assert(name == number, "forms.glsl");
#include "libgpu/shaders/forms.glsl"

/* A device need not take more. */
#define SHADER(NAME, name, push) static_assert((push) <= 128, #name);
#include "libgpu/kernels.def"
/* As GLSL lays blocks out (std430): an address is 8 bytes and aligned so. */
static_assert(offsetof(vn_push_attention, table) == 96, "blocks.glsl");

static const struct shader_row {
	const char *name;
	uint32_t    push;
} table[VN_N_KERNELS] = {
#define SHADER(NAME, name, push) [VN_K_##NAME] = { #name, push },
#include "libgpu/kernels.def"
};

static const bool in_memory[VN_N_KERNELS] = {
#define IN_MEMORY(NAME, name) [VN_K_##NAME] = true,
#include "libgpu/kernels.def"
};

/* The shader with cooperative matrices for the heads of a node; VN_K_ATTENTION: there is none. */
static vn_kernel coop_attention(const vn_node *n)
{
	const int K = n->c.attention.head_dim, U = vn_attention_value_dim(&n->c), widest = K > U ? K : U;

	return widest > 128     ? VN_K_ATTENTION_COOP_256
	       : K % 8 || U % 8 ? VN_K_ATTENTION
	       : widest > 64    ? VN_K_ATTENTION_COOP_128
	                        : VN_K_ATTENTION_COOP_64;
}

/* The width of values decides how many registers a lane needs. */
static const char *attention_name(const vn_plan *p)
{
	int widest = 1;

	for (int n = 0; n < p->n_nodes; n++)
		if (p->node[n].op == VN_OP_ATTENTION && vn_attention_value_dim(&p->node[n].c) > widest)
			widest = vn_attention_value_dim(&p->node[n].c);
	return widest > 128 ? "attention_256" : widest > 64 ? "attention_128" : "attention_64";
}

/* Returns NAME_paged_FORM if paged, and if it exists; else NAME_FORM; NULL: neither exists. */
static const struct module *find_module(const char *name, bool paged, const char *form)
{
	char full[64];

	snprintf(full, sizeof full, "%s%s_%s", name, paged ? "_paged" : "", form);
	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
		if (strcmp(modules[i].name, full) == 0)
			return &modules[i];
	return paged ? find_module(name, false, form) : NULL;
}

/* Does the plan have heads for this shader, if it is one of attention with cooperative matrices? */
static bool has_heads(const vn_plan *p, vn_kernel k)
{
	bool has = k < VN_K_ATTENTION_COOP_64 || k > VN_K_ATTENTION_COOP_256;

	for (int i = 0; i < p->n_nodes && !has; i++)
		has = p->node[i].op == VN_OP_ATTENTION && coop_attention(&p->node[i]) == k;
	return has;
}

static vn_shader choose_shader(const vn_kernels *k, const vn_plan *plan, vn_policy policy, bool paged, vn_kernel which)
{
	static const char *const by_size[VN_N_COOPS] = { [VN_COOP_16] = "by16", [VN_COOP_8] = "by8" };
	const char              *name = which == VN_K_ATTENTION ? attention_name(plan) : table[which].name;
	const struct module     *m = NULL;

	if (k->side && has_heads(plan, which))
		m = find_module(name, paged, by_size[k->d->coop]);
	const vn_coop coop = m ? k->d->coop : VN_COOP_NONE;
	if (!m && policy.sums == VN_F16)
		m = find_module(name, paged, "acc16");
	if (!m)
		m = find_module(name, paged, policy.storage == VN_F32 ? "f32" : "f16");
	return m ? (vn_shader) { m->words, (size_t)(m->end - m->words) * sizeof *m->words, coop } : (vn_shader) { 0 };
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

vn_kernel vn_kernel_of_attention(const vn_kernels *k, const vn_node *n)
{
	const vn_kernel coop = coop_attention(n);

	return k->shader[coop].words ? coop : VN_K_ATTENTION;
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

vn_status vn_kernels_cache_in(vn_device *d, const char *cache_dir, vn_error *err)
{
	return vn_pipelines_keep_for(d->device, d->pipelines, cache_dir)
	           ? VN_OK
	           : vn_fail(err, VN_ERR_NOMEM, "no memory for the name of a folder");
}

vn_status vn_kernels_create(vn_device *d, vn_kernels *k, const vn_plan *plan, vn_policy policy, bool paged,
                            vn_error *err)
{
	vn_status st;

	*k = (vn_kernels) { .d = d,
		                .float_sums = policy.sums == VN_F32,
		                .side = policy.storage == VN_F16 && policy.sums == VN_F32 ? (int)vn_coop_side(d->coop) : 0 };
	for (int i = 0; i < VN_N_KERNELS; i++)
		k->shader[i] = choose_shader(k, plan, policy, paged, (vn_kernel)i);
	if ((st = create_layout(d, err)))
		return st;
	k->layout = d->pipelines->layout;
	k->had = d->pipelines->n;
	return vn_pipeline_cache_open(d, d->pipelines->cache_dir, &k->cache, &k->cache_hit, err);
}

void vn_kernels_destroy(vn_kernels *k)
{
	if (k->cache && k->d->pipelines->n > k->had)
		vn_pipeline_cache_save(k->d, k->d->pipelines->cache_dir, k->cache);
	if (k->cache)
		vn_vk.DestroyPipelineCache(k->d->device, k->cache, NULL);
	*k = (vn_kernels) { 0 };
}
