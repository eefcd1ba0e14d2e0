/* residual.c: see residual.h. */
#include "capture/view/residual.h"

#include "capture/recording/numbers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { CLOSES = 100 /* the equation holds to 1 part in 100 */ };

const vn_residual_equation vn_residual_equations[VN_RESIDUALS] = {
	{ "attn_residual", "input", "attn_out" },
	{ "output", "attn_residual", "down_proj" },
};

bool vn_stream_around(const char *added, int layer, vn_stream *s)
{
	for (int i = 0; i < VN_RESIDUALS; i++) {
		const vn_residual_equation *k = &vn_residual_equations[i];
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

/* Adds the piece from `at` on of every term. */
static bool add_up(vn_numbers *const *s, int n, int64_t at, size_t m, double *left, double *size)
{
	double rest[VN_NUMBERS] = { 0 };
	for (int k = 0; k < n; k++) {
		if (vn_numbers_read(s[k], at, m, NULL))
			return false;
		for (size_t j = 0; k > 1 && j < m; j++)
			rest[j] += s[k]->x[j];
	}
	for (size_t j = 0; j < m; j++) {
		const double off = s[0]->x[j] - s[1]->x[j] - rest[j];
		*left += off * off;
		*size += rest[j] * rest[j];
	}
	return true;
}

double vn_residual_left(const vn_term *term, int n)
{
	vn_numbers *s[VN_MOST_TERMS] = { NULL };
	int64_t     count = 0;
	double      left = 0, size = 0;
	bool        good = true;
	assert(n > 2 && n <= VN_MOST_TERMS);
	for (int k = 0; good && k < n; k++) {
		const int64_t own = term[k].entry < 0 ? -1
		                                      : vn_shape_count(&vn_recording_entry(term[k].r, term[k].entry)->shape);
		count = k ? count : own;
		good = own >= 0 && own == count && (s[k] = vn_numbers_open(term[k].r, term[k].entry, NULL));
	}
	for (int64_t at = 0; good && at < count; at += VN_NUMBERS)
		good = add_up(s, n, at, vn_numbers_left(count, at), &left, &size);
	for (int k = 0; k < n; k++)
		vn_numbers_close(s[k]);
	const double share = good && size > 0 ? left / size : -1;
	return share >= 0 ? share : -1; /* and not of a NaN */
}

bool vn_residual_closes(double left)
{
	return left >= 0 && left * CLOSES <= 1;
}
