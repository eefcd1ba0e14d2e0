/* rope.h: rotary position settings and the frequencies they give. */
#ifndef VN_LIBREF_PLAN_ROPE_H
#define VN_LIBREF_PLAN_ROPE_H

#include <stdbool.h>

typedef enum vn_rope_type { VN_ROPE_DEFAULT, VN_ROPE_LINEAR, VN_ROPE_YARN, VN_ROPE_LLAMA3 } vn_rope_type;

typedef struct vn_rope {
	vn_rope_type type;
	double theta;
	int    rotary_dim;
	double factor, low_freq_factor, high_freq_factor, beta_fast, beta_slow, attention_factor, mscale, mscale_all_dim;
	int    original_context, max_context;
	bool   truncate;
} vn_rope;

void vn_rope_frequencies(const vn_rope *r, float *inv_freq, float *attention_factor);

#endif
