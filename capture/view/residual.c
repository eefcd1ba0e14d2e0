/* residual.c: see residual.h. */
#include "capture/view/residual.h"

#include "capture/recording/numbers.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { CLOSES = 100 /* the equation holds to 1 part in 100 */ };

/* The sums of recordings whose plan is not known. */
static bool sum_of_llama(int layer, int i, vn_residual_sum *s)
{
	static const char *const names[][3] = { { "attn_residual", "input", "attn_out" },
		                                    { "output", "attn_residual", "down_proj" } };

	if (i >= (int)(sizeof names / sizeof *names))
		return false;
	snprintf(s->after, sizeof s->after, "layer%d.%s", layer, names[i][0]);
	snprintf(s->before[0], sizeof s->before[0], "layer%d.%s", layer, names[i][1]);
	snprintf(s->added, sizeof s->added, "layer%d.%s", layer, names[i][2]);
	if (i == 0)
		snprintf(s->before[1], sizeof s->before[1], layer > 0 ? "layer%d.output" : "embed", layer - 1);
	return true;
}

/* A value's name in a layer: of the output of the layer below, "layer3.input". */
static const char *name_in(const vn_plan *p, int value, int layer)
{
	for (int v = 0; v < p->n_values; v++)
		if (p->value[v].layer == layer && vn_plan_root(p, v) == value)
			return p->value[v].name;
	return p->value[value].name;
}

bool vn_residual_sum_at(const vn_plan *p, int layer, int i, vn_residual_sum *s)
{
	*s = (vn_residual_sum) { .after = "" };
	if (!p)
		return sum_of_llama(layer, i, s);
	for (int k = 0; k < p->n_nodes && p->node[k].layer <= layer; k++) {
		const vn_node *n = &p->node[k];
		if (n->op != VN_OP_ADD || n->layer != layer || i-- > 0)
			continue;
		const char *stream = p->value[n->in[0]].name, *here = name_in(p, n->in[0], layer);
		snprintf(s->after, sizeof s->after, "%s", p->value[n->out[0]].name);
		snprintf(s->before[0], sizeof s->before[0], "%s", here);
		if (strcmp(here, stream) != 0)
			snprintf(s->before[1], sizeof s->before[1], "%s", stream);
		snprintf(s->added, sizeof s->added, "%s", p->value[n->in[1]].name);
		return true;
	}
	return false;
}

bool vn_residual_sum_of(const vn_plan *p, const char *added, vn_residual_sum *s)
{
	const int layer = vn_name_layer(added);

	for (int i = 0; layer >= 0 && vn_residual_sum_at(p, layer, i, s); i++)
		if (strcmp(s->added, added) == 0)
			return true;
	return false;
}

/* Adds the piece from `at` on of every term. */
static vn_status add_up(vn_numbers *const *s, int n, int64_t at, size_t m, double *left, double *size, vn_error *err)
{
	double rest[VN_NUMBERS] = { 0 };
	for (int k = 0; k < n; k++) {
		const vn_status st = vn_numbers_read(s[k], at, m, err);
		if (st)
			return st;
		for (size_t j = 0; k > 1 && j < m; j++)
			rest[j] += s[k]->x[j];
	}
	for (size_t j = 0; j < m; j++) {
		const double off = s[0]->x[j] - s[1]->x[j] - rest[j];
		*left += off * off;
		*size += rest[j] * rest[j];
	}
	return VN_OK;
}

/* The number of elements that all terms have; -1: one is missing, or they differ. */
static int64_t count_of(const vn_term *term, int n)
{
	int64_t count = -1;
	for (int k = 0; k < n; k++) {
		const int64_t own = term[k].entry < 0 ? -1
		                                      : vn_shape_count(&vn_recording_entry(term[k].r, term[k].entry)->shape);
		if (own < 0 || (k && own != count))
			return -1;
		count = own;
	}
	return count;
}

vn_status vn_residual_left(const vn_term *term, int n, double *left, vn_error *err)
{
	vn_numbers   *s[VN_MOST_TERMS] = { NULL };
	const int64_t count = count_of(term, n);
	double        off = 0, size = 0;
	vn_status     st = VN_OK;
	assert(n > 2 && n <= VN_MOST_TERMS);
	*left = -1;
	for (int k = 0; count > 0 && k < n; k++)
		s[k] = vn_numbers_open(term[k].r, term[k].entry, err);
	for (int64_t at = 0; !st && at < count; at += VN_NUMBERS)
		st = add_up(s, n, at, vn_numbers_left(count, at), &off, &size, err);
	for (int k = 0; k < n; k++)
		vn_numbers_close(s[k]);
	if (!st && size > 0 && off / size >= 0) /* and no NaN */
		*left = off / size;
	return vn_status_ends_job(st) ? st : VN_OK;
}

bool vn_residual_closes(double left)
{
	return left >= 0 && left * CLOSES <= 1;
}
