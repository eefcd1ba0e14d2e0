/* gguf_rope.c: recovers RoPE's llama3 scaling from what a GGUF file keeps of it.
 *
 * A file has one divisor per pair, by which llama.cpp divides the plain frequency. HuggingFace
 * computes scaled frequencies from four settings, and the reference must have its bits. So the
 * settings are searched for.
 */
#include "libref/model/gguf_config.h"
#include "libref/plan/rope.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdlib.h>

enum { PAIRS_MAX = 4096, FIRST_CONTEXT = 1 << 4, LAST_CONTEXT = 1 << 20 };

/* The converter works in float32. Where a divisor blends 1 and the factor, rounding is magnified by
 * the factor, to 3e-6 for 32. Other settings of the grid differ by more than 1e-3. */
static const double TOLERANCE = 1e-5;

typedef struct scaling_search {
	int          pairs;
	const float *divisor, *plain; /* (pairs) */
	float       *scaled;          /* (pairs) room */
	vn_rope      rope;
} scaling_search;

static bool fits_settings(scaling_search *s, double factor, double high, int64_t original)
{
	float attention;

	s->rope.type = VN_ROPE_LLAMA3;
	s->rope.factor = factor;
	s->rope.low_freq_factor = 1;
	s->rope.high_freq_factor = high;
	s->rope.original_context = (int)original;
	vn_rope_frequencies(&s->rope, NULL, 0, s->scaled, &attention);
	for (int i = 0; i < s->pairs; i++)
		if (!(fabs((double)s->plain[i] / (double)s->scaled[i] - (double)s->divisor[i]) <=
		      TOLERANCE * (double)s->divisor[i]))
			return false;
	return true;
}

/* Tries published settings first: when several fit, they give the same numbers. Factors of 2 and 8
 * and a context of 4096 equal 1, 4 and 2048, because low is always 1. */
static bool find_scaling(scaling_search *s, int64_t original)
{
	static const double factors[] = { 0 /* the largest divisor */, 8, 32, 2, 4, 16, 64 }, highs[] = { 4, 2, 8, 16, 32 };
	double              largest = 1;

	for (int i = 0; i < s->pairs; i++)
		largest = (double)s->divisor[i] > largest ? (double)s->divisor[i] : largest;
	for (size_t h = 0; h < sizeof highs / sizeof *highs; h++)
		for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
			const double factor = f ? factors[f] : largest;
			if (factor < largest)
				continue;
			if ((original && fits_settings(s, factor, highs[h], original)) || fits_settings(s, factor, highs[h], 8192))
				return true;
			for (int64_t c = FIRST_CONTEXT; c <= LAST_CONTEXT; c *= 2)
				if (fits_settings(s, factor, highs[h], c))
					return true;
		}
	return false;
}

vn_status vn_gguf_llama3(const vn_gguf_tensor *t, json_t *rope, int64_t pairs, int64_t original, vn_error *err)
{
	vn_status st = VN_OK;
	float     attention, *room = NULL;
	bool      good = t->t.shape.rank == 1 && t->t.shape.dim[0] == pairs && pairs > 0 && pairs <= PAIRS_MAX;

	if (!good)
		return vn_fail(err, VN_ERR_SHAPE, "%s: %s: expected one divisor for each of %lld pairs", t->path, t->name,
		               (long long)pairs);
	const double theta = json_number_value(json_object_get(rope, "rope_theta"));
	const size_t n = (size_t)pairs;
	if (!((float)theta > 1.0f)) /* the family's own check reports a bad theta */
		return VN_OK;
	room = vn_alloc(3 * n, sizeof *room);
	scaling_search s = { (int)pairs, room, room + n, room + 2 * n, { .theta = theta, .rotary_dim = (int)(2 * pairs) } };
	vn_to_f32(room, t->t.data, t->t.dtype, n);
	vn_rope_frequencies(&s.rope, NULL, 0, room + n, &attention);
	for (size_t i = 0; i < n; i++)
		good = good && room[i] >= 1.0f && room[i] <= 1e6f;
	if (!good || !find_scaling(&s, original)) {
		st = vn_fail(err, VN_ERR_UNSUPPORTED,
		             "%s: %s: its divisors match no usual setting of the RoPE scaling 'llama3'", t->path, t->name);
	} else {
		json_object_set_new(rope, "rope_type", json_string("llama3"));
		json_object_set_new(rope, "factor", json_real(s.rope.factor));
		json_object_set_new(rope, "low_freq_factor", json_real(s.rope.low_freq_factor));
		json_object_set_new(rope, "high_freq_factor", json_real(s.rope.high_freq_factor));
		json_object_set_new(rope, "original_max_position_embeddings", json_integer(s.rope.original_context));
	}
	free(room);
	return st;
}
