/* tables.c: cosines and sines of RoPE's angles; see tables.h. */
#include "libgpu/tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void vn_rope_table_free(vn_rope_table *t)
{
	VN_FREE(t->freq, t->row);
	*t = (vn_rope_table) { 0 };
}

static void compute_table(const vn_rope *r, const float *freq, float factor, float *row, int64_t past, int64_t tokens)
{
	for (int64_t t = 0; t < tokens; t++)
		for (int i = 0; i < r->rotary_dim / 2; i++) {
			const float angle = vn_rope_angle(NULL, freq[i], i, (double)(past + t));
			*row++ = (float)cos((double)angle) * factor;
			*row++ = (float)sin((double)angle) * factor;
		}
}

/* Makes room for rows up to `upto`. False: no memory; nothing has changed. */
static bool make_room(vn_rope_table *t, int64_t upto, int width)
{
	int64_t room = t->room ? t->room : 256;

	while (room < upto)
		room *= 2;
	if (room == t->room)
		return true;
	float *more = realloc(t->row, (size_t)room * (size_t)width * sizeof(*more));
	if (!more)
		return false;
	t->row = more;
	t->room = room;
	return true;
}

vn_status vn_rope_table_fill(vn_rope_table *kept, float *table, int64_t past, int64_t tokens, vn_error *err)
{
	const vn_rope  *r = kept->rope;
	const int       R = r->rotary_dim;
	const size_t    bytes = (size_t)(R / 2) * sizeof(float);
	VN_FREED float *freq = malloc(bytes);
	float           factor;

	if (!freq || (!kept->freq && !(kept->freq = calloc(1, bytes)))) {
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d frequencies", R / 2);
	}
	vn_rope_frequencies(r, kept->lists, past + tokens, freq, &factor);
	if (memcmp(freq, kept->freq, bytes) != 0 || memcmp(&factor, &kept->factor, sizeof factor) != 0) {
		memcpy(kept->freq, freq, bytes);
		kept->factor = factor;
		kept->upto = 0;
	}
	if (past > kept->upto || !make_room(kept, past + tokens, R)) {
		compute_table(r, freq, factor, table, past, tokens);
	} else {
		if (past + tokens > kept->upto) {
			compute_table(r, freq, factor, kept->row + kept->upto * R, kept->upto, past + tokens - kept->upto);
			kept->upto = past + tokens;
		}
		memcpy(table, kept->row + past * R, (size_t)(tokens * R) * sizeof(*table));
	}
	return VN_OK;
}
