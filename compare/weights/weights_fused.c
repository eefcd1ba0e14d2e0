/* weights_fused.c: handles weights that one side has in one piece and the other in parts: q, k and
 * v as qkv_proj, gate and up as gate_up_proj, as in vLLM. */
#include "compare/weights/weights_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PARTS = 3 };

static const struct {
	const char *whole, *part[PARTS]; /* NULL: two parts */
} fusions[] = {
	{ "qkv_proj.", { "q_proj.", "k_proj.", "v_proj." } },
	{ "gate_up_proj.", { "gate_proj.", "up_proj.", NULL } },
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

/* The fusion that a name is a part of, or the whole of (part -1). */
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
	const vn_weight_change none = { .kind = VN_CHANGE_NONE };
	const vn_digest        x = vn_weight_numbers_digest(m, o, &none, whole->dtype, 0, NULL);
	return *x.hex && strcmp(x.hex, whole->digest.hex) == 0;
}

/* Whether the whole holds the parts' numbers one below the other, as they are or in another order. */
static bool numbers_fit(const vn_weight_trial *t, const vn_tensor *const *part, int n, const vn_weight_row *whole,
                        vn_weight_difference *d, bool *same)
{
	const vn_weight_name  name = vn_weight_name_of(whole->name);
	const vn_weight_order as_they_are = { .kind = VN_ORDER_SAME };
	vn_weight_order       list[VN_MOST_ORDERS];
	vn_weight_numbers     m;
	bool                  found = false;

	if (vn_dtype_block(part[0]->dtype) > 1 || vn_dtype_block(whole->dtype) > 1 ||
	    vn_weight_numbers_of(part, n, &m, NULL))
		return false;
	*same = found = is_fused_so(&m, &as_they_are, whole);
	const int orders = found ? 0 : vn_weight_orders_of(&name, &whole->shape, &whole->shape, &t->heads, list);
	for (int i = 0; !found && i < orders; i++)
		found = list[i].kind < VN_ORDER_TURNED && is_fused_so(&m, &list[i], whole) &&
		        vn_weight_is(d, VN_BY_DIGEST, true, "parts", list[i].id, "fused: %.120s", list[i].says);
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
			return vn_weight_is(d, VN_BY_STATISTICS, false, "fused", VN_NO_MISTAKE,
			                    known ? "%s are fused, in an order that no known mistake gives"
			                          : "%s are fused; the order can be found with the numbers (--model)",
			                    f ? "gate and up" : "q, k and v");
	}
	return false;
}
