/* identities.c: see identities.h. */
#include "capture/identities.h"

#include "libref/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_INPUTS = 3, PIECE = 2048 };

typedef struct walk {
	vn_recording  *r;
	vn_identities *found;
	vn_error      *err;
	vn_status      st;
	int            step, layer;
	const vn_step *at;
} walk;

/* Tensors of one identity, under their names. */
typedef struct set {
	int             n, entry[MOST_INPUTS];
	const vn_entry *e[MOST_INPUTS];
	const unsigned char *data[MOST_INPUTS];
} set;

static bool load(walk *w, set *s, int layer, const char *point)
{
	char name[VN_NAME_MAX];
	if (layer < 0)
		snprintf(name, sizeof name, "%s", point);
	else
		snprintf(name, sizeof name, "layer%d.%s", layer, point);
	const int i = w->st ? -1 : vn_recording_find(w->r, w->step, name);
	const void *data = NULL;
	if (i < 0 || vn_shape_count(&vn_recording_entry(w->r, i)->shape) == 0 || (w->st = vn_recording_data(w->r, i, &data, w->err)))
		return false;
	s->entry[s->n] = i;
	s->e[s->n] = vn_recording_entry(w->r, i);
	s->data[s->n++] = data;
	return true;
}

static void release(walk *w, set *s)
{
	for (int i = 0; i < s->n; i++)
		vn_recording_release(w->r, s->entry[i]);
	vn_recording_forget(w->r);
	s->n = 0;
}

static double value(const set *s, int which, int64_t i)
{
	double x;
	vn_to_f64(&x, s->data[which] + (size_t)i * vn_dtype_size(s->e[which]->dtype), s->e[which]->dtype, 1);
	return x;
}

static void piece(const set *s, int which, int64_t from, size_t n, double *x)
{
	vn_to_f64(x, s->data[which] + (size_t)from * vn_dtype_size(s->e[which]->dtype), s->e[which]->dtype, n);
}

__attribute__((format(printf, 4, 5)))
static void broken(walk *w, int64_t count, int64_t of, const char *format, ...)
{
	vn_identity *more = realloc(w->found->broken, (size_t)(w->found->n + 1) * sizeof *more);
	va_list args;
	if (!more) {
		w->st = vn_fail(w->err, VN_ERR_NOMEM, "no memory for what does not hold");
		return;
	}
	w->found->broken = more;
	vn_identity *k = &more[w->found->n++];
	*k = (vn_identity) { .step = w->step, .layer = w->layer, .broken = count, .of = of };
	va_start(args, format);
	vsnprintf(k->words, sizeof k->words, format, args);
	va_end(args);
	vn_text_clean(k->words);
}

static bool same_shape(const set *s)
{
	for (int i = 1; i < s->n; i++)
		if (!vn_shape_equal(&s->e[0]->shape, &s->e[i]->shape))
			return false;
	return true;
}

/* ---- the residual stream ----------------------------------------------------------------- */

/* Each of the three may have been rounded when it was stored, and the sum as well. */
static void sum(walk *w, const char *whole, const char *a, const char *b)
{
	set     s = { 0 };
	double  x[MOST_INPUTS][PIECE], most = 0;
	int64_t count = 0, at = -1;
	if (load(w, &s, w->layer, whole) && load(w, &s, w->layer, a) && load(w, &s, w->layer, b) && same_shape(&s)) {
		const int64_t n = vn_shape_count(&s.e[0]->shape);
		w->found->checked++;
		for (int64_t i = 0; i < n; i += PIECE) {
			const size_t m = (size_t)(n - i < PIECE ? n - i : PIECE);
			for (int k = 0; k < MOST_INPUTS; k++)
				piece(&s, k, i, m, x[k]);
			for (size_t j = 0; j < m; j++) {
				const double off = fabs(x[0][j] - (x[1][j] + x[2][j]));
				double allowed = 0;
				for (int k = 0; k < MOST_INPUTS; k++)
					allowed += vn_dtype_ulp(s.e[k]->dtype, x[k][j]);
				if (!isfinite(x[0][j]) || off <= allowed)
					continue;
				count++;
				if (!(off <= most)) {
					most = off;
					at = i + (int64_t)j;
				}
			}
		}
		if (count)
			broken(w, count, n, "layer%d.%s is not %s + %s: %" PRId64 " of %" PRId64 " elements are off by more than rounding, most %.3g "
			       "at element %" PRId64, w->layer, whole, a, b, count, n, most, at);
	}
	release(w, &s);
}

static void chain(walk *w)
{
	set s = { 0 };
	if (w->layer > 0 && load(w, &s, w->layer, "input") && load(w, &s, w->layer - 1, "output") && same_shape(&s)
	    && s.e[0]->dtype == s.e[1]->dtype && s.data[0] != s.data[1]) {
		const int64_t n = vn_shape_count(&s.e[0]->shape);
		int64_t count = 0;
		w->found->checked++;
		for (int64_t i = 0; i < n; i++) {
			const double a = value(&s, 0, i), b = value(&s, 1, i);
			count += !(a == b || (isnan(a) && isnan(b)));
		}
		if (count)
			broken(w, count, n, "layer%d.input is not layer%d.output: %" PRId64 " of %" PRId64 " elements differ", w->layer, w->layer - 1,
			       count, n);
	}
	release(w, &s);
}

/* ---- attention ------------------------------------------------------------------------------ */

/* What a rotation multiplies lengths by; 0: not known here. */
static double factor_of(const walk *w, const char *name)
{
	const vn_plan *p = vn_recording_plan(w->r);
	char full[VN_NAME_MAX];
	snprintf(full, sizeof full, "layer%d.%s", w->layer, name);
	for (int i = 0; p && i < p->n_values; i++) {
		const vn_value *v = &p->value[i];
		if (strcmp(v->name, full) != 0)
			continue;
		const vn_node *node = &p->node[v->node];
		if (node->op != VN_OP_ROPE)
			return 0;
		const vn_rope_type t = node->c.rope.rope.type;
		/* The others turn by another factor, and by another one in partly rotated heads. */
		return t == VN_ROPE_YARN || t == VN_ROPE_LONGROPE ? 0 : 1;
	}
	return p ? 0 : 1;
}

static void rotation(walk *w, const char *after, const char *norm, const char *projected)
{
	set s = { 0 };
	if (factor_of(w, after) > 0 && load(w, &s, w->layer, after) && (load(w, &s, w->layer, norm) || load(w, &s, w->layer, projected))
	    && same_shape(&s) && s.e[0]->shape.rank == 3) {
		const vn_shape *shape = &s.e[0]->shape;
		const int64_t width = shape->dim[2], rows = shape->dim[0] * shape->dim[1];
		const double  digits = fmin(vn_dtype_digits(s.e[0]->dtype), vn_dtype_digits(s.e[1]->dtype));
		int64_t count = 0, first = -1;
		double  most = 0;
		w->found->checked++;
		for (int64_t i = 0; i < rows; i++) {
			double a = 0, b = 0;
			for (int64_t k = 0; k < width; k++) {
				const double x = value(&s, 0, i * width + k), y = value(&s, 1, i * width + k);
				a += x * x;
				b += y * y;
			}
			/* Roundings of single columns, and of the sines and cosines. */
			const double off = fabs(sqrt(a) - sqrt(b));
			if (!isfinite(a) || off <= fmax(ldexp(sqrt(b), 2 - (int)digits), 1e-6 * sqrt(b)))
				continue;
			count++;
			most = fmax(most, off / sqrt(b));
			first = first < 0 ? i : first;
		}
		if (count)
			broken(w, count, rows, "layer%d.%s is no rotation of %s: %" PRId64 " of %" PRId64 " heads have another length, by up to %.3g of it; "
			       "first token %" PRId64 ", head %" PRId64, w->layer, after, strchr(s.e[1]->name, '.') + 1, count, rows, most,
			       first / shape->dim[1], first % shape->dim[1]);
	}
	release(w, &s);
}

static void probs(walk *w)
{
	set s = { 0 };
	if (load(w, &s, w->layer, "attn_probs") && s.e[0]->shape.rank == 3 && w->at) {
		const vn_shape *shape = &s.e[0]->shape;
		const int64_t H = shape->dim[0], T = shape->dim[1], S = shape->dim[2];
		int64_t sums = 0, later = 0, range = 0;
		const double allowed = fmax(ldexp(2.0, -vn_dtype_digits(s.e[0]->dtype)), 1e-5);
		w->found->checked++;
		for (int64_t row = 0; row < H * T; row++) {
			const int64_t position = w->at->position + w->at->first_row + row % T;
			double total = 0;
			bool   out = false, ahead = false;
			for (int64_t k = 0; k < S; k++) {
				const double p = value(&s, 0, row * S + k);
				total += p;
				out = out || !(p >= 0 && p <= 1 + allowed);
				ahead = ahead || (k > position && p != 0);
			}
			range += out;
			later += ahead;
			sums += !out && !(fabs(total - 1) <= allowed);
		}
		if (range)
			broken(w, range, H * T, "layer%d.attn_probs are not probabilities in %" PRId64 " of %" PRId64 " rows", w->layer, range, H * T);
		if (later)
			broken(w, later, H * T, "layer%d.attn_probs give later keys a share in %" PRId64 " of %" PRId64 " rows: no causal mask, or axes in "
			       "another order", w->layer, later, H * T);
		if (sums)
			broken(w, sums, H * T, "layer%d.attn_probs do not add up to 1 in %" PRId64 " of %" PRId64 " rows", w->layer, sums, H * T);
	}
	release(w, &s);
}

/* The first token of a sequence sees itself alone. */
static void first_row(walk *w)
{
	set s = { 0 };
	if (w->at && w->at->position == 0 && w->at->first_row == 0 && w->at->rows > 0 && load(w, &s, w->layer, "attn_context")
	    && load(w, &s, w->layer, "v_proj") && s.e[0]->shape.rank == 3 && s.e[1]->shape.rank == 3
	    && s.e[0]->shape.dim[2] == s.e[1]->shape.dim[2] && s.e[1]->shape.dim[1] > 0 && s.e[0]->shape.dim[1] % s.e[1]->shape.dim[1] == 0) {
		const int64_t H = s.e[0]->shape.dim[1], K = s.e[0]->shape.dim[2], group = H / s.e[1]->shape.dim[1];
		int64_t count = 0;
		w->found->checked++;
		for (int64_t h = 0; h < H; h++) {
			bool same = true;
			for (int64_t k = 0; k < K; k++) {
				const double x = value(&s, 0, h * K + k), v = value(&s, 1, h / group * K + k);
				same = same && fabs(x - v) <= vn_dtype_ulp(s.e[0]->dtype, v) + vn_dtype_ulp(s.e[1]->dtype, v);
			}
			count += !same;
		}
		if (count)
			broken(w, count, H, "layer%d.attn_context of the first token is not its v_proj in %" PRId64 " of %" PRId64 " heads: another head map, "
			       "a mask, or another v", w->layer, count, H);
	}
	release(w, &s);
}

/* ---- the rest --------------------------------------------------------------------------------- */

static void range(walk *w, const char *point, double low, double high, const char *words)
{
	set s = { 0 };
	if (load(w, &s, w->layer, point)) {
		const int64_t n = vn_shape_count(&s.e[0]->shape);
		int64_t count = 0;
		w->found->checked++;
		for (int64_t i = 0; i < n; i++) {
			const double x = value(&s, 0, i);
			count += !(x >= low && x <= high);
		}
		if (count)
			broken(w, count, n, "layer%d.%s is not %s in %" PRId64 " of %" PRId64 " elements", w->layer, point, words, count, n);
	}
	release(w, &s);
}

/* Positions are in embed where the family learns them. */
static bool embeds_tokens_alone(const vn_recording *r)
{
	const vn_plan *p = vn_recording_plan(r);
	for (int i = 0; p && i < p->n_values; i++)
		if (strcmp(p->value[i].name, "pos_embed") == 0)
			return false;
	return p != NULL;
}

static void rows(walk *w)
{
	const int32_t *ids;
	const int64_t  n = vn_recording_tokens(w->r, &ids, NULL);
	set s = { 0 };
	if (w->at && embeds_tokens_alone(w->r) && load(w, &s, -1, "embed") && s.e[0]->shape.rank == 2) {
		const int64_t T = s.e[0]->shape.dim[0], D = s.e[0]->shape.dim[1], from = w->at->position + w->at->first_row;
		const size_t  row = (size_t)D * vn_dtype_size(s.e[0]->dtype);
		int64_t count = 0;
		w->found->checked++;
		for (int64_t t = 1; t < T && from + t < n; t++)
			for (int64_t u = t - 1; u >= 0; u--)
				if (ids[from + u] == ids[from + t]) {
					count += memcmp(s.data[0] + (size_t)u * row, s.data[0] + (size_t)t * row, row) != 0;
					break;
				}
		if (count)
			broken(w, count, T, "embed has other rows for one token id in %" PRId64 " of %" PRId64 " rows: other tokens, or another order", count, T);
	}
	release(w, &s);
}

static void layer(walk *w)
{
	chain(w);
	sum(w, "attn_residual", "input", "attn_out");
	sum(w, "output", "attn_residual", "down_proj");
	rotation(w, "q_rope", "q_norm", "q_proj");
	rotation(w, "k_rope", "k_norm", "k_proj");
	probs(w);
	first_row(w);
	range(w, "gdn_beta", 0, 1, "between 0 and 1");
	range(w, "gdn_g", -INFINITY, 0, "at most 0");
}

vn_status vn_identities_of(vn_recording *r, vn_identity_wanted *wanted, void *context, vn_identities *found, vn_error *err)
{
	const vn_step *step;
	const int      steps = vn_recording_steps(r, &step);
	walk           w = { .r = r, .found = found, .err = err };
	int            layers = 0;

	*found = (vn_identities) { 0 };
	for (int i = 0; i < vn_recording_count(r); i++) {
		const int n = vn_recording_entry(r, i)->layer + 1;
		layers = n > layers ? n : layers;
	}
	/* A number from a stranger; a layer has a tensor at least. */
	layers = layers < vn_recording_count(r) ? layers : vn_recording_count(r);
	for (int k = 0; k < steps && !w.st; k++) {
		w.at = &step[k];
		w.step = step[k].number;
		w.layer = -1;
		if (!wanted || wanted(context, w.step, -1))
			rows(&w);
		for (w.layer = 0; w.layer < layers && !w.st; w.layer++)
			if (!wanted || wanted(context, w.step, w.layer))
				layer(&w);
	}
	return w.st;
}

void vn_identities_free(vn_identities *found)
{
	free(found->broken);
	*found = (vn_identities) { 0 };
}
