/* kernels.h: the shaders as pipelines, and the C struct of each push block. Inside libgpu only.
 *
 * A shader, a row of kernels.def, has a name, code for each precision policy, and a push block. A
 * faster form for some device is a row of its own.
 *
 * Only pipelines that are needed are built (compile.h): some drivers take seconds for all of them,
 * and a run needs only a few.
 *
 * Threads  one at a time, but vn_kernel_build of different shaders may run at the same time.
 */
#pragma once

#include "libgpu/device.h"

#include "libref/plan/plan.h"
#include "libref/plan/policy.h"

typedef enum vn_kernel {
#define SHADER(NAME, name, push) VN_K_##NAME,
#include "libgpu/kernels.def"
	VN_N_KERNELS
} vn_kernel;

typedef struct vn_shader {
	const uint32_t *words; /* NULL: the policy, the device or the plan has no such shader */
	size_t          bytes;
	vn_coop         coop; /* the cooperative matrices it uses */
} vn_shader;

typedef struct vn_kernels {
	vn_device       *d;
	VkPipelineLayout layout; /* the device's, as are the pipelines (pipelines.h) */
	VkPipelineCache  cache;
	vn_shader        shader[VN_N_KERNELS];
	VkPipeline       pipeline[VN_N_KERNELS]; /* NULL: not needed so far */
	bool             cache_hit;              /* a valid cache file was read */
	int              had;                    /* pipelines that the device had before */
	double           seconds;                /* spent on building pipelines */
	/* rows of a cooperative matrix; 0: the policy or the device has none */
	int              side;
	bool             float_sums;
} vn_kernels;

/* Returns the shader of attention for many queries and the heads of this node. */
vn_kernel vn_kernel_of_attention(const vn_kernels *k, const vn_node *n);

/* Sets the folder of the pipeline cache of the kernels to come: as in vn_gpu_options. */
vn_status vn_kernels_cache_in(vn_device *d, const char *cache_dir, vn_error *err);
/* Selects the shaders for the policy, for a paged or contiguous cache. A pipeline cache that cannot
 * be read or written is not an error. */
vn_status vn_kernels_create(vn_device *d, vn_kernels *k, const vn_plan *plan, vn_policy policy, bool paged,
                            vn_error *err);
/* Saves the compiled shaders for the next run. k may be zeroed. */
void      vn_kernels_destroy(vn_kernels *k);

/* Finds a shader's pipeline on the device, or builds it. k must not have it yet. */
vn_status vn_kernel_build(vn_kernels *k, vn_kernel which, vn_error *err);
/* Returns a shader's pipeline, and builds it if it does not exist yet. */
vn_status vn_kernel_pipeline(vn_kernels *k, vn_kernel which, VkPipeline *pipeline, vn_error *err);

const char *vn_kernel_name(vn_kernel k);
uint32_t    vn_kernel_push_bytes(vn_kernel k);
/* Does the shader read its push block from memory, so that only the block's address is pushed
 * (push.glsl)? True for shaders whose block changes from one decoded token to the next: the
 * commands then stay the same (tape.h). */
bool        vn_kernel_in_memory(vn_kernel k);

/* The push blocks. Addresses are VkDeviceAddress. */
#define GATED   1
#define EXPERTS 1
#define BLOCK(name) \
	typedef struct name name; \
	struct name
#define Address uint64_t
#define Real    uint64_t
#define Float   uint64_t
#define Int     uint64_t
#define Raw     uint64_t
#define uint    uint32_t
#include "libgpu/shaders/blocks.glsl"
#undef GATED
#undef EXPERTS
#undef BLOCK
#undef Address
#undef Real
#undef Float
#undef Int
#undef Raw
#undef uint
