/* weights_fused.c: handles weights that one side has in one piece and the other in parts: q, k and
 * v as qkv_proj, gate and up as gate_up_proj, as in vLLM; and parts of a fused matrix that was
 * transposed before it was split. */
#include "compare/weights/weights_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARTS = 3 };

static const struct {
	const char *whole, *part[PARTS], *says; /* third part NULL: two parts */
} fusions[] = {
	{ "qkv_proj.", { "q_proj.", "k_proj.", "v_proj." }, "q, k and v" },
	{ "gate_up_proj.", { "gate_proj.", "up_proj.", NULL }, "gate and up" },
};
enum { FUSIONS = sizeof fusions / sizeof *fusions };

/* The name with one word replaced by another; false when the word is absent. */
static bool rename_part(const char *name, const char *word, const char *other, char to[VN_NAME_MAX])
{
	const char *at = strstr(name, word);
	/* The word must be a whole one: "gate_up_proj." contains "up_proj.". */
	return at && (at == name || at[-1] == '.') &&
	       snprintf(to, VN_NAME_MAX, "%.*s%s%s", (int)(at - name), name, other, at + strlen(word)) < VN_NAME_MAX;
}

/* The fusion that a name is a part of, or (part -1) the whole. */
static int fusion_of(const char *name, char whole[VN_NAME_MAX])
{
	for (int f = 0; f < FUSIONS; f++) {
		if (rename_part(name, fusions[f].whole, fusions[f].whole, whole))
			return f;
		for (int p = 0; p < PARTS && fusions[f].part[p]; p++)
			if (rename_part(name, fusions[f].part[p], fusions[f].whole, whole))
				return f;
	}
	return -1;
}

/* Whether the parts' combined statistics are those of the whole, in any order of rows. */
static bool statistics_fit(const vn_weight_row *const *part, int n, const vn_weight_row *whole)
{
	double  min = INFINITY, max = -INFINITY, sum = 0, squares = 0;
	int64_t all = 0;
	for (int i = 0; i < n; i++) {
		const vn_stats *s = &part[i]->stats;
		if (part[i]->dtype != whole->dtype || s->nan + s->inf)
			return false;
		min = fmin(min, s->min);
		max = fmax(max, s->max);
		sum += s->mean * (double)s->n;
		squares += s->rms * s->rms * (double)s->n;
		all += s->n;
	}
	const vn_stats *w = &whole->stats;
	return all == w->n && all > 0 && min == w->min && max == w->max &&
	       fabs(sqrt(squares / (double)all) / w->rms - 1.0) < 1e-9 && fabs(sum / (double)all - w->mean) < 1e-9 * w->rms;
}

static bool is_fused_so(const vn_weight_numbers *m, const vn_weight_order *o, const vn_weight_row *whole)
{
	const vn_digest x = vn_weight_numbers_digest(m, o, &vn_weight_unchanged, whole->dtype, 0, NULL);
	return *x.hex && strcmp(x.hex, whole->digest.hex) == 0;
}

/* Whether the whole holds the parts' numbers one below the other, as they are or
 * in another order. */
static bool numbers_fit(const vn_weight_trial *t, const vn_tensor *const *part, int n, const vn_weight_row *whole,
                        vn_weight_difference *d, bool *same)
{
	const vn_weight_name name = vn_weight_name_of(t->side[0], whole->name);
	vn_weight_order      list[VN_MOST_ORDERS];
	vn_weight_numbers    m;
	bool                 found = false;

	if (vn_dtype_block(part[0]->dtype) > 1 || vn_dtype_block(whole->dtype) > 1)
		return false;
	vn_weight_numbers_of(part, n, &m);
	*same = found = is_fused_so(&m, &vn_weight_in_place, whole);
	const int orders = found ? 0 : vn_weight_orders_of(&name, &whole->shape, &whole->shape, &t->heads, list);
	for (int i = 0; !found && i < orders; i++)
		if ((found = list[i].axis != VN_WEIGHT_NUMBERS && is_fused_so(&m, &list[i], whole))) {
			vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(FUSED_PARTS), list[i].says);
			vn_weight_shows(d, list[i].id);
			d->key = vn_weight_key_of(VN_FOUND_FUSED_PARTS, list[i].key);
		}
	vn_weight_numbers_free(&m);
	return found;
}

static int64_t count_columns(const vn_weight_row *r)
{
	return r->shape.rank > 0 && r->shape.dim[0] > 0 ? vn_shape_count(&r->shape) / r->shape.dim[0] : 0;
}

bool vn_weight_fused(const vn_weight_trial *t, vn_weight_difference *d, bool *same)
{
	const vn_weight_row *own = t->row[0] ? t->row[0] : t->row[1], *part[PARTS], *whole = NULL;
	const vn_tensor     *numbers[PARTS];
	char                 name[VN_NAME_MAX], other[VN_NAME_MAX];
	const int            f = fusion_of(own->name, name);

	*same = false;
	for (int k = 0; f >= 0 && k < 2; k++) { /* side k has the parts */
		const vn_weight_side *s = t->side[k];
		int                   n = 0;
		bool                  known = true;
		whole = vn_weight_twin(t->side[!k]->row, t->side[!k]->n, name);
		for (int p = 0; whole && p < PARTS && fusions[f].part[p]; p++, n++) {
			part[n] = rename_part(name, fusions[f].whole, fusions[f].part[p], other)
			              ? vn_weight_twin(s->row, s->n, other)
			              : NULL;
			if (!part[n])
				break;
			numbers[n] = s->numbers ? &s->numbers[part[n] - s->row] : NULL;
			known = known && numbers[n] && numbers[n]->data && numbers[n]->dtype == part[0]->dtype &&
			        count_columns(part[n]) == count_columns(part[0]);
		}
		if (!whole || n < 2 || (n < PARTS && fusions[f].part[n]))
			continue;
		if (known && numbers_fit(t, numbers, n, whole, d, same))
			return true;
		if (statistics_fit(part, n, whole))
			return known ? vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(FUSED), fusions[f].says)
			             : vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(FUSED_LIKELY), fusions[f].says);
	}
	return false;
}

/* ---- transposed before the split ------------------------------------------------------------- */

static const struct {
	int         part[PARTS];
	int         n;
	const char *says;
} together[] = {
	{ { VN_POINT_Q_PROJ, VN_POINT_K_PROJ, VN_POINT_V_PROJ }, 3, "q, k and v" },
	{ { VN_POINT_GATE_PROJ, VN_POINT_UP_PROJ }, 2, "gate and up" },
	{ { VN_POINT_UP_PROJ, VN_POINT_GATE_PROJ }, 2, "up and gate" },
};
enum { TOGETHER = sizeof together / sizeof *together };

/* Finds the parts of a side that were one matrix, in its order. Returns t's index among them; -1:
 * there is no such matrix. */
static int find_parts(const vn_weight_trial *t, int k, int g, const vn_weight_row *part[PARTS])
{
	const vn_weight_name name = vn_weight_name_of(t->side[k], t->row[k]->name);
	int                  own = -1;

	for (int p = 0; p < together[g].n; p++) {
		const bool is = name.part == together[g].part[p];
		part[p] = is ? t->row[k] : vn_weight_beside(t->side[k], t->row[k], &name, together[g].part[p]);
		if (!part[p] || part[p]->shape.rank != 2 || part[p]->dtype != t->row[k]->dtype ||
		    count_columns(part[p]) != count_columns(t->row[k]) || vn_dtype_block(part[p]->dtype) > 1)
			return -1;
		own = is ? p : own;
	}
	return own;
}

/* Do both sides' parts hold the same numbers in any order? */
static bool statistics_agree(const vn_weight_row *const *a, const vn_weight_row *const *b, int n)
{
	double least[2] = { INFINITY, INFINITY }, most[2] = { -INFINITY, -INFINITY }, squares[2] = { 0 };

	for (int k = 0; k < 2; k++)
		for (int p = 0; p < n; p++) {
			const vn_stats *s = &(k ? b : a)[p]->stats;
			if (s->nan + s->inf || s->n <= 0)
				return false;
			least[k] = fmin(least[k], s->min);
			most[k] = fmax(most[k], s->max);
			squares[k] += s->rms * s->rms * (double)s->n;
		}
	return least[0] == least[1] && most[0] == most[1] && fabs(squares[0] - squares[1]) <= 1e-9 * squares[0];
}

static bool is_transposed_so(const vn_weight_trial *t, int from, int g, const vn_weight_row *const *part, int own,
                             vn_weight_difference *d)
{
	const vn_weight_side *side = t->side[from];
	const vn_tensor      *numbers[PARTS];
	int64_t               start = 0;
	bool                  found = false;
	vn_weight_numbers     m;

	for (int p = 0; p < together[g].n; p++) {
		numbers[p] = side->numbers ? &side->numbers[part[p] - side->row] : NULL;
		if (!numbers[p] || !numbers[p]->data)
			return false;
		start += p < own ? part[p]->shape.dim[0] : 0;
	}
	if (!*t->row[!from]->digest.hex)
		return false;
	vn_weight_numbers_of(numbers, together[g].n, &m);
	for (int back = 0; back < 2 && !found; back++) {
		vn_weight_order o = { .axis = VN_WEIGHT_NUMBERS,
			                  .rule = { VN_ARRANGE_TRANSPOSED, .a = m.all, .b = m.cols },
			                  .start = start };
		if (back != from) /* from the candidate's numbers, the reverse */
			o.rule = vn_arrange_back(&o.rule);
		found = vn_weight_has_order(t, !from, &m, &o, &vn_weight_unchanged, m.rows[own]) &&
		        (back ? vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(TOGETHER_TRANSPOSED_SHAPE), together[g].says)
		              : vn_weight_is(d, 1, VN_PROOF_DIGEST, VN_FOUND(TOGETHER_OLD_SHAPE), together[g].says));
	}
	vn_weight_numbers_free(&m);
	return found;
}

bool vn_weight_transposed_together(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row *part[2][PARTS];

	if (t->name.bias || !vn_shape_equal(&t->row[0]->shape, &t->row[1]->shape))
		return false;
	for (int g = 0; g < TOGETHER; g++) {
		const int own = find_parts(t, 0, g, part[0]);
		if (own < 0 || find_parts(t, 1, g, part[1]) != own || !statistics_agree(part[0], part[1], together[g].n))
			continue;
		if (is_transposed_so(t, 0, g, part[0], own, d) || is_transposed_so(t, 1, g, part[1], own, d))
			return true;
	}
	return false;
}

bool vn_weight_mixed(const vn_weight_trial *t, vn_weight_difference *d)
{
	const vn_weight_row *part[2][PARTS];
	const bool           known = t->numbers[0] || t->numbers[1];

	if (t->name.bias || t->row[0]->dtype != t->row[1]->dtype)
		return false;
	for (int g = 0; g < TOGETHER; g++)
		if (find_parts(t, 0, g, part[0]) >= 0 && find_parts(t, 1, g, part[1]) >= 0 &&
		    statistics_agree(part[0], part[1], together[g].n) && !statistics_agree(&t->row[0], &t->row[1], 1))
			return known ? vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(MIXED), together[g].says)
			             : vn_weight_is(d, 1, VN_PROOF_STATISTICS, VN_FOUND(MIXED_LIKELY), together[g].says,
			                            g ? vn_mistake_id(VN_MISTAKE_W5) : "", g ? " or " : "",
			                            vn_mistake_id(VN_MISTAKE_W1B));
	return false;
}
