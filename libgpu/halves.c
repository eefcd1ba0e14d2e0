/* halves.c: see halves.h. */
#include "libgpu/halves.h"

#include <string.h>

/* LANES: as in shaders/from_bf16.comp. GROUPS: enough to keep the memory of a large device busy;
 * each has a count of its own. */
enum { LANES = 128, GROUPS = 1024, COUNTS = GROUPS * sizeof(uint32_t) };

static void convert_weight(vn_encoder *e, vn_gpu_weights *w, int weight, const vn_buffer *counts)
{
	const vn_gpu_weight_place *at = &w->at[weight];
	const VkDeviceSize         n = at->bytes / 2;
	const int64_t              groups = (int64_t)(n / 8 + LANES - 1) / LANES;
	const vn_push_from_bf16    push = { .x = at->address,
		                                .over = counts->address + (VkDeviceAddress)weight * COUNTS,
		                                .eights = (uint32_t)(n / 8),
		                                .rest = (uint32_t)(n % 8) };

	vn_encode_writes(e, &w->block[at->block]);
	vn_encode_dispatch(e, VN_K_FROM_BF16, &push, groups < GROUPS ? groups : GROUPS, 1);
}

static vn_status convert_weights(vn_encoder *e, vn_gpu_weights *w, const bool *bf16, const vn_buffer *counts,
                                 vn_error *err)
{
	const int i = e->cur;
	vn_status st;

	if (!e->recording)
		vn_encode_begin(e);
	for (int k = 0; k < w->n; k++)
		if (bf16[k])
			convert_weight(e, w, k, counts);
	if ((st = vn_encode_submit(e, err)) || (st = vn_encode_wait(e, i, err)))
		vn_encode_abandon(e);
	return st;
}

vn_status vn_halves_make(vn_encoder *e, vn_gpu_weights *w, const bool *bf16, vn_error *err)
{
	vn_buffer counts;
	vn_status st;
	int       first = 0;

	while (first < w->n && !bf16[first])
		first++;
	if (first == w->n)
		return VN_OK;
	if ((st = vn_buffer_create(e->d, &counts,
	                           &(vn_buffer_need) { VN_FOR_READBACK, (VkDeviceSize)w->n * COUNTS, false, "overflows" },
	                           err)))
		return st;
	const uint32_t *count = memset(counts.map, 0, counts.size);
	st = convert_weights(e, w, bf16, &counts, err);
	for (int k = 0; k < w->n && !st; k++)
		for (int g = 0; g < GROUPS; g++)
			vn_gpu_weights_overflow(w, k, count[k * GROUPS + g]);
	vn_buffer_destroy(e->d, &counts);
	return st;
}
