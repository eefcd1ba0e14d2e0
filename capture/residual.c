/* residual.c: see residual.h. */
#include "capture/residual.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { PIECE = 512, CLOSES = 100 /* 1 part in so many */ };

const vn_residual vn_residuals[VN_RESIDUALS] = {
	{ "attn_residual", "input", "attn_out" },
	{ "output", "attn_residual", "down_proj" },
};

bool vn_stream_around(const char *added, int layer, vn_stream *s)
{
	for (int i = 0; i < VN_RESIDUALS; i++) {
		const vn_residual *k = &vn_residuals[i];
		if (strcmp(k->added, added) != 0)
			continue;
		*s = (vn_stream) { .after = "" };
		snprintf(s->after, sizeof s->after, "layer%d.%s", layer, k->whole);
		snprintf(s->before[0], sizeof s->before[0], "layer%d.%s", layer, k->before);
		if (strcmp(k->before, "input") == 0)
			snprintf(s->before[1], sizeof s->before[1], layer > 0 ? "layer%d.output" : "embed", layer - 1);
		return true;
	}
	return false;
}

static void add_up(const vn_term *term, const void *const *data, int n, int64_t count, double *left, double *size)
{
	double x[PIECE], rest[PIECE], stream[PIECE];
	for (int64_t i = 0; i < count; i += PIECE) {
		const size_t m = count - i < PIECE ? (size_t)(count - i) : PIECE;
		memset(rest, 0, sizeof rest);
		for (int k = 0; k < n; k++) {
			const vn_dtype dtype = vn_recording_entry(term[k].r, term[k].entry)->dtype;
			vn_to_f64(x, (const unsigned char *)data[k] + (size_t)i * vn_dtype_size(dtype), dtype, m);
			for (size_t j = 0; j < m; j++) {
				if (k == 0)
					stream[j] = x[j];
				else if (k == 1)
					stream[j] -= x[j];
				else
					rest[j] += x[j];
			}
		}
		for (size_t j = 0; j < m; j++) {
			*left += (stream[j] - rest[j]) * (stream[j] - rest[j]);
			*size += rest[j] * rest[j];
		}
	}
}

double vn_residual_left(const vn_term *term, int n)
{
	const void *data[VN_MOST_TERMS];
	int64_t count = 0;
	double  left = 0, size = 0;
	int     had = 0;
	assert(n > 2 && n <= VN_MOST_TERMS);
	for (bool good = true; good && had < n; had += good) {
		const vn_term *t = &term[had];
		const int64_t  own = t->entry < 0 ? -1 : vn_shape_count(&vn_recording_entry(t->r, t->entry)->shape);
		count = had ? count : own;
		good = own >= 0 && own == count && !vn_recording_data(t->r, t->entry, &data[had], NULL);
	}
	if (had == n)
		add_up(term, data, n, count, &left, &size);
	for (int k = 0; k < had; k++)
		vn_recording_release(term[k].r, term[k].entry);
	const double share = had == n && size > 0 ? left / size : -1;
	return share >= 0 ? share : -1; /* and not of a NaN */
}

bool vn_residual_closes(double left)
{
	return left >= 0 && left * CLOSES <= 1;
}
