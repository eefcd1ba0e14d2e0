/* identities.c: see identities.h. */
#include "capture/recording/derive.h"
#include "capture/recording/numbers.h"
#include "capture/show/identities_internal.h"
#include "capture/view/residual.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/plan/policy.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* count: the elements or rows that break an identity; 0: it holds. */
__attribute__((format(printf, 3, 4))) static void report_if_broken(vn_identity_walk *w, int64_t count,
                                                                   const char *format, ...)
{
	va_list args;
	if (!count)
		return;
	w->found->broken = vn_alloc_grown(w->found->broken, (size_t)w->found->n, sizeof *w->found->broken);
	vn_identity *k = &w->found->broken[w->found->n++];
	*k = (vn_identity) { .step = w->step, .place = w->place };
	va_start(args, format);
	vn_text_print(k->words, sizeof k->words, format, args);
	va_end(args);
}

static bool same_shape(const vn_parts *s)
{
	for (int i = 1; i < s->n; i++)
		if (!vn_shape_equal(&s->e[0]->shape, &s->e[i]->shape))
			return false;
	return true;
}

/* ---- the residual stream ----------------------------------------------------------------- */

/* The engine may have added its ranks' partial results in another order, so the sum may differ in
 * its last bits. (Joining the ranks already checks that the parts add up.) */
static bool summed_by_us(const vn_parts *s)
{
	for (int k = 0; k < s->n; k++)
		if (vn_derive_is_sum(s->w->r, s->entry[k]))
			return true;
	return false;
}

/* A tensor recorded in a finer format may have been rounded to the coarser one
 * before the addition. */
static vn_dtype coarsest_of(const vn_parts *s)
{
	vn_dtype d = vn_parts_format(s, 0);
	for (int k = 1; k < s->n; k++)
		d = vn_dtype_coarser(d, vn_parts_format(s, k));
	return d;
}

/* Each of the three, and the sum, may have been rounded when stored. A number's ULP is at least its
 * format's unit times the number, so most sums pass without computing ULPs. */
static void check_sum(vn_identity_walk *w, const char *whole, const char *a, const char *b)
{
	vn_parts s = { 0 };
	double   x[VN_MOST_INPUTS][VN_PIECE], most = 0;
	int64_t  count = 0, at = -1;
	if (vn_parts_load(w, &s, w->layer, whole) && vn_parts_load(w, &s, w->layer, a) &&
	    vn_parts_load(w, &s, w->layer, b) && same_shape(&s) && !summed_by_us(&s)) {
		const int64_t  n = vn_shape_count(&s.e[0]->shape);
		const vn_dtype coarsest = coarsest_of(&s);
		double         unit[VN_MOST_INPUTS];
		w->found->checked++;
		for (int k = 0; k < VN_MOST_INPUTS; k++)
			unit[k] = coarsest < VN_N_ENGINE_DTYPES ? vn_dtype_ulp(coarsest, 1.0) / 2 : 0;
		for (int64_t i = 0; i < n; i += VN_PIECE) {
			const size_t m = vn_piece_size(n - i);
			for (int k = 0; k < VN_MOST_INPUTS; k++)
				vn_parts_piece(&s, k, i, m, x[k]);
			if (vn_show_count_sums(x[0], x[1], x[2], unit, m) == m)
				continue;
			for (size_t j = 0; j < m; j++) {
				const double off = fabs(x[0][j] - (x[1][j] + x[2][j]));
				double       allowed = 0;
				for (int k = 0; k < VN_MOST_INPUTS; k++)
					allowed += vn_dtype_ulp(coarsest, x[k][j]);
				if (!isfinite(x[0][j]) || off <= allowed)
					continue;
				count++;
				if (!(off <= most)) {
					most = off;
					at = i + (int64_t)j;
				}
			}
		}
		report_if_broken(w, count,
		                 "layer%d.%s is not %s + %s: %" PRId64 " of %" PRId64
		                 " elements are off by more than rounding, most %.3g "
		                 "at element %" PRId64,
		                 w->layer, whole, a, b, count, n, most, at);
	}
	vn_parts_done(w, &s);
}

static void check_chain(vn_identity_walk *w)
{
	vn_parts s = { 0 };
	if (w->layer > 0 && vn_parts_load(w, &s, w->layer, "input") && vn_parts_load(w, &s, w->layer - 1, "output") &&
	    same_shape(&s) && s.e[0]->dtype == s.e[1]->dtype && !vn_parts_same(&s, 0, 1)) {
		vn_numbers_differ d = { 0 };
		w->found->checked++;
		if (!w->st)
			w->st = vn_numbers_compare(w->r, s.entry[0], w->r, s.entry[1], &d, w->err);
		report_if_broken(w, d.count, "layer%d.input is not layer%d.output: %" PRId64 " of %" PRId64 " elements differ",
		                 w->layer, w->layer - 1, d.count, vn_shape_count(&s.e[0]->shape));
	}
	vn_parts_done(w, &s);
}

/* ---- attention ------------------------------------------------------------------------------ */

/* The factor by which a rotation scales lengths; 0: unknown. */
static double factor_of(const vn_identity_walk *w, const char *name)
{
	const vn_plan *p = w->plan;
	char           full[VN_NAME_MAX];
	snprintf(full, sizeof full, "layer%d.%s", w->layer, name);
	const int i = p ? vn_plan_find(p, full) : -1;
	if (i >= 0) {
		const vn_value *v = &p->value[i];
		const vn_node  *node = &p->node[v->node];
		if (node->op != VN_OP_ROPE)
			return 0;
		const vn_rope_type t = node->c.rope.rope.type;
		/* These types scale by a factor, and by another one in partly rotated heads. */
		return t == VN_ROPE_YARN || t == VN_ROPE_LONGROPE ? 0 : 1;
	}
	return p ? 0 : 1;
}

/* When the model norms between projection and rotation, the length before the rotation is known
 * only from the norm's output. */
static bool is_normed(const vn_identity_walk *w, const char *norm)
{
	char full[VN_NAME_MAX];
	snprintf(full, sizeof full, "layer%d.%s", w->layer, norm);
	return w->plan && vn_plan_find(w->plan, full) >= 0;
}

/* Sums of squares of rows from row `from` on, of both tensors: several rows that fit into
 * a piece, or one. */
static void squares_of_rows(const vn_parts *s, int64_t from, int64_t rows, int64_t width, double *a, double *b)
{
	double       *sum[2] = { a, b };
	double        x[VN_PIECE];
	const int64_t at_once = width < VN_PIECE ? width : VN_PIECE;
	for (int which = 0; which < 2; which++) {
		memset(sum[which], 0, (size_t)rows * sizeof *a);
		for (int64_t k = 0; k < width; k += VN_PIECE) {
			const size_t m = vn_piece_size(width - k);
			vn_parts_piece(s, which, from * width + k, (size_t)rows * m, x);
			for (int64_t i = 0; i < rows; i++)
				sum[which][i] += vn_total_squares(x + i * at_once, m);
		}
	}
}

static void check_rotation(vn_identity_walk *w, const char *after, const char *norm, const char *projected)
{
	vn_parts s = { 0 };
	if (factor_of(w, after) > 0 && vn_parts_load(w, &s, w->layer, after) &&
	    (vn_parts_load(w, &s, w->layer, norm) || (!is_normed(w, norm) && vn_parts_load(w, &s, w->layer, projected))) &&
	    same_shape(&s) && s.e[0]->shape.rank == 3) {
		const vn_shape *shape = &s.e[0]->shape;
		const int64_t   width = shape->dim[2], rows = shape->dim[0] * shape->dim[1];
		const double    digits = vn_dtype_digits(coarsest_of(&s));
		int64_t         count = 0, first = -1;
		double          most = 0;
		w->found->checked++;
		const int64_t at_once = width < VN_PIECE ? VN_PIECE / width : 1;
		double        a[VN_PIECE], b[VN_PIECE]; /* of at_once rows */
		for (int64_t i = 0; i < rows; i++) {
			if (i % at_once == 0)
				squares_of_rows(&s, i, rows - i < at_once ? rows - i : at_once, width, a, b);
			const double r = sqrt(a[i % at_once]), q = sqrt(b[i % at_once]);
			/* Tolerance for rounding of single columns, and of the sines and cosines. */
			const double off = fabs(r - q);
			if (!isfinite(r) || off <= fmax(ldexp(q, 2 - (int)digits), 1e-6 * q))
				continue;
			count++;
			most = fmax(most, off / q);
			first = first < 0 ? i : first;
		}
		char by[40] = ""; /* no error is a fraction of a length that is 0 or not finite */
		if (isfinite(most) && most > 0)
			snprintf(by, sizeof by, ", by up to %.3g of the length", most);
		report_if_broken(w, count,
		                 "layer%d.%s is not a rotation of %s: %" PRId64 " of %" PRId64
		                 " heads differ in length%s; first token %" PRId64 ", head %" PRId64,
		                 w->layer, after, vn_name_in_layer(s.e[1]->name), count, rows, by, first / shape->dim[1],
		                 first % shape->dim[1]);
	}
	vn_parts_done(w, &s);
}

/* Sinks take a share of the probabilities, and have no value. */
static bool has_sinks(const vn_identity_walk *w)
{
	char name[VN_NAME_MAX];

	snprintf(name, sizeof name, "layer%d.attn_context", w->layer);
	const int      v = w->plan ? vn_plan_find(w->plan, name) : -1;
	const vn_node *n = v < 0 ? NULL : &w->plan->node[w->plan->value[v].node];
	return n && n->op == VN_OP_ATTENTION && n->w[VN_ATTN_SINKS] >= 0;
}

static void check_probs(vn_identity_walk *w)
{
	const bool less = has_sinks(w);
	vn_parts   s = { 0 };
	if (vn_parts_load(w, &s, w->layer, "attn_probs") && s.e[0]->shape.rank == 3 && w->at &&
	    s.e[0]->shape.dim[1] == w->at->rows) {
		const vn_shape *shape = &s.e[0]->shape;
		const int64_t   H = shape->dim[0], T = shape->dim[1], S = shape->dim[2];
		int64_t         sums = 0, later = 0, range = 0;
		/* half an ulp of each probability, but of those far below 1 few are large */
		vn_policy       softmax = { vn_parts_format(&s, 0), VN_F32, VN_PRODUCTS_PLAIN, { 0 } };
		softmax.role[VN_ROLE_SOFTMAX] = w->known ? w->policy.role[VN_ROLE_SOFTMAX] : VN_ROLE_AS_STORED;
		const double allowed = fmax(ldexp(2.0, -vn_policy_digits(softmax)), 1e-5);
		w->found->checked++;
		for (int64_t row = 0; row < H * T; row++) {
			const int64_t position = w->at->position + w->at->first_row + row % T;
			double        total = 0, p[VN_PIECE];
			bool          out = false, ahead = false;
			for (int64_t k = 0; k < S; k += VN_PIECE) {
				const size_t  m = vn_piece_size(S - k);
				const int64_t seen = position + 1 - k; /* of this piece */
				const size_t  from = seen <= 0 ? 0 : seen < (int64_t)m ? (size_t)seen : m;
				vn_parts_piece(&s, 0, row * S + k, m, p);
				total += vn_total(p, m);
				out = out || vn_show_count_between(p, 0, 1 + allowed, m) != m;
				ahead = ahead || vn_show_count_between(p + from, 0, 0, m - from) != m - from;
			}
			range += out;
			later += ahead;
			sums += !out && !(less ? total <= 1 + allowed : fabs(total - 1) <= allowed);
		}
		report_if_broken(w, range, "layer%d.attn_probs are not probabilities in %" PRId64 " of %" PRId64 " rows",
		                 w->layer, range, H * T);
		report_if_broken(w, later,
		                 "layer%d.attn_probs give later keys a share in %" PRId64 " of %" PRId64
		                 " rows: no causal mask, or axes in another order",
		                 w->layer, later, H * T);
		report_if_broken(w, sums, "layer%d.attn_probs do not add up to 1 in %" PRId64 " of %" PRId64 " rows", w->layer,
		                 sums, H * T);
	}
	vn_parts_done(w, &s);
}

/* Digits of the values as attention reads them, which may be fewer than those recorded; 0: they
 * share scales. */
static int digits_of_values(const vn_identity_walk *w)
{
	vn_policy read = { VN_F32, VN_F32, VN_PRODUCTS_PLAIN, { 0 } };

	if (!w->known)
		return vn_policy_digits(read);
	read.role[VN_ROLE_PRODUCTS] = w->policy.role[VN_ROLE_PRODUCTS];
	read.role[VN_ROLE_CACHE] = w->policy.role[VN_ROLE_CACHE];
	if (read.role[VN_ROLE_CACHE] >= VN_ROLE_Q8_0 || read.role[VN_ROLE_PRODUCTS] >= VN_ROLE_Q8_0)
		return 0;
	return w->policy.products >= VN_PRODUCTS_GGML_KV16 ? vn_dtype_digits(VN_F16) : vn_policy_digits(read);
}

/* The first token of a sequence attends to itself alone. */
static void first_row(vn_identity_walk *w)
{
	const int digits = digits_of_values(w);
	vn_parts  s = { 0 };
	if (digits && !has_sinks(w) && w->at && w->at->position == 0 && w->at->first_row == 0 && w->at->rows > 0 &&
	    vn_parts_load(w, &s, w->layer, "attn_context") && s.e[0]->shape.dim[0] == w->at->rows &&
	    vn_parts_load(w, &s, w->layer, "v_proj") && s.e[0]->shape.rank == 3 && s.e[1]->shape.rank == 3 &&
	    s.e[0]->shape.dim[2] == s.e[1]->shape.dim[2] && s.e[1]->shape.dim[1] > 0 &&
	    s.e[0]->shape.dim[1] % s.e[1]->shape.dim[1] == 0) {
		const int64_t H = s.e[0]->shape.dim[1], K = s.e[0]->shape.dim[2], group = H / s.e[1]->shape.dim[1];
		int64_t       count = 0;
		w->found->checked++;
		for (int64_t h = 0; h < H; h++) {
			bool same = true;
			for (int64_t k = 0; k < K; k++) {
				const double x = vn_parts_value(&s, 0, h * K + k), v = vn_parts_value(&s, 1, h / group * K + k);
				same = same && fabs(x - v) <= vn_dtype_ulp(vn_parts_format(&s, 0), v) +
				                                  vn_dtype_ulp(vn_parts_format(&s, 1), v) + ldexp(fabs(v), -digits);
			}
			count += !same;
		}
		report_if_broken(w, count,
		                 "layer%d.attn_context of the first token differs from its v_proj in %" PRId64 " of %" PRId64
		                 " heads: wrong head map, mask or v",
		                 w->layer, count, H);
	}
	vn_parts_done(w, &s);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void check_range(vn_identity_walk *w, const char *point, double low, double high, const char *words)
{
	vn_parts s = { 0 };
	if (vn_parts_load(w, &s, w->layer, point)) {
		const int64_t n = vn_shape_count(&s.e[0]->shape);
		int64_t       count = 0;
		w->found->checked++;
		for (int64_t i = 0; i < n; i += VN_PIECE) {
			double       x[VN_PIECE];
			const size_t m = vn_piece_size(n - i);
			vn_parts_piece(&s, 0, i, m, x);
			count += (int64_t)(m - vn_show_count_between(x, low, high, m));
		}
		report_if_broken(w, count, "layer%d.%s is not %s in %" PRId64 " of %" PRId64 " elements", w->layer, point,
		                 words, count, n);
	}
	vn_parts_done(w, &s);
}

/* Families with learned positions add them in embed. */
static bool embeds_tokens_alone(const vn_recording *r)
{
	const vn_plan *p = vn_recording_plan(r);
	for (int i = 0; p && i < p->n_values; i++)
		if (strcmp(p->value[i].name, "pos_embed") == 0)
			return false;
	return p != NULL;
}

VN_ORDER_BY(by_id, int64_t, VN_ORDER(*x, *y))

/* Number of rows that differ from the preceding row of the same id. Uses a sorted list, because a
 * prompt may have a hundred thousand tokens. */
static int64_t other_rows(vn_identity_walk *w, const vn_parts *s, int64_t row, const int32_t *id, int64_t n)
{
	const size_t   size = (size_t)row * vn_dtype_size(s->e[0]->dtype);
	unsigned char *before = vn_alloc(2, size), *now = before + size;
	int64_t        count = 0, *key = vn_alloc((size_t)n, sizeof *key);
	for (int64_t t = 0; t < n; t++)
		key[t] = (int64_t)id[t] * ((int64_t)1 << 32) + t;
	qsort(key, (size_t)n, sizeof *key, by_id);
	/* Rows far apart in the file: each read would map the pages around it. */
	for (int64_t i = 1, held = -1; !w->st && i < n; i++) {
		const int64_t u = (int64_t)(uint32_t)key[i - 1], t = (int64_t)(uint32_t)key[i];
		if (id[u] != id[t])
			continue;
		if ((held != u && (w->st = vn_recording_read(w->r, s->entry[0], u * row, row, before, w->err))) ||
		    (w->st = vn_recording_read(w->r, s->entry[0], t * row, row, now, w->err)))
			break;
		count += memcmp(before, now, size) != 0;
		memcpy(before, now, size);
		held = t;
	}
	VN_FREE(before, key);
	return count;
}

static void check_rows(vn_identity_walk *w)
{
	const int32_t *ids;
	const int64_t  n = vn_recording_tokens(w->r, &ids, NULL);
	vn_parts       s = { 0 };
	if (w->at && embeds_tokens_alone(w->r) && vn_parts_load(w, &s, -1, "embed") && s.e[0]->shape.rank == 2) {
		const int64_t T = s.e[0]->shape.dim[0], D = s.e[0]->shape.dim[1], from = w->at->position + w->at->first_row;
		const int64_t have = T < n - from ? T : n - from; /* of ids */
		w->found->checked++;
		const int64_t count = have > 1 ? other_rows(w, &s, D, ids + from, have) : 0;
		report_if_broken(w, count,
		                 "embed has different rows for equal token ids in %" PRId64 " of %" PRId64
		                 " rows: wrong tokens, or wrong order",
		                 count, T);
	}
	vn_parts_done(w, &s);
}

vn_status vn_identity_again(vn_recording *r, int entry, int64_t *differing, int64_t *first, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	const int       other = e->again ? vn_recording_find(r, e->step, e->again) : -1;
	const int64_t   n = vn_shape_count(&e->shape);

	vn_numbers_differ d = { .count = -1 };
	vn_status         st = VN_OK;

	if (other >= 0 && n && vn_shape_equal(&vn_recording_entry(r, other)->shape, &e->shape))
		st = vn_numbers_compare(r, other, r, entry, &d, err);
	*differing = d.count;
	*first = d.first;
	return st;
}

/* The first entry of a step; entries are sorted by step. */
static int first_of_step(vn_recording *r, int step)
{
	int from = 0, to = vn_recording_count(r);
	while (from < to) {
		const int middle = from + (to - from) / 2;
		if (vn_recording_entry(r, middle)->step < step)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Checks the second recordings of this step, in every layer, because they are few. */
static void check_again(vn_identity_walk *w)
{
	for (int i = first_of_step(w->r, w->step); i < vn_recording_count(w->r) && !w->st; i++) {
		const vn_entry *e = vn_recording_entry(w->r, i);
		int64_t         count, first;
		if (e->step != w->step)
			break;
		if ((w->st = vn_identity_again(w->r, i, &count, &first, w->err)) || count < 0)
			continue;
		w->found->checked++;
		const int64_t n = vn_shape_count(&e->shape), row = e->shape.rank ? n / e->shape.dim[0] : 1;
		report_if_broken(w, count,
		                 "%s should hold %s, but %" PRId64 " of %" PRId64 " numbers differ, the first in row %" PRId64
		                 ": it was overwritten between the two",
		                 e->name, e->again, count, n, first / row);
	}
}

static void check_layer(vn_identity_walk *w)
{
	check_chain(w);
	vn_residual_sum s;
	for (int i = 0; vn_residual_sum_at(w->plan, w->layer, i, &s); i++)
		check_sum(w, vn_name_in_layer(s.after), vn_name_in_layer(s.before[0]), vn_name_in_layer(s.added));
	check_rotation(w, "q_rope", "q_norm", "q_proj");
	check_rotation(w, "k_rope", "k_norm", "k_proj");
	check_probs(w);
	first_row(w);
	check_range(w, "gdn_beta", 0, 1, "between 0 and 1");
	check_range(w, "gdn_g", -INFINITY, 0, "at most 0");
}

void vn_identities_check(vn_identity_walk *w, bool wanted)
{
	if (wanted && w->layer >= 0)
		check_layer(w);
	else if (wanted)
		check_rows(w);
	if (w->layer < 0 && !w->st)
		check_again(w);
}
