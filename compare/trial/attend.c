/* attend.c: see attend.h. */
#include "compare/trial/attend.h"

#include "capture/view/batched.h"
#include "libref/base/alloc.h"
#include "libref/base/arrange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what it reads --------------------------------------------------------------------------- */

/* The width of queries, keys or values. */
static int width_of(const vn_attend_case *a, int input)
{
	return input == VN_ATTN_V ? vn_attention_value_dim(&a->n->c) : a->n->c.attention.head_dim;
}

static bool read_input(const vn_case *t, const vn_attend_case *a, int input, double **x)
{
	const int     heads = input == VN_ATTN_Q ? a->n->c.attention.heads : a->n->c.attention.kv_heads;
	const int64_t padding = input == VN_ATTN_Q ? 0 : a->padding, row = heads * width_of(a, input);
	vn_tensor     in;

	if (!vn_case_input(t, input, VN_FINE_WIDTH, &in))
		return false;
	*x = vn_alloc((size_t)((a->S + padding) * row), sizeof **x);
	vn_tensor_numbers(&in, 0, a->S * row, *x);
	return true;
}

/* Reads the keys or values of padding that this call may see. *n is 0 if none were recorded. */
static bool read_padding(const vn_case *t, const vn_attend_case *a, int input, double **x, int64_t *n)
{
	const vn_plan *p = t->site->plan;
	const char    *name = p->value[vn_plan_root(p, a->n->in[input])].name;
	const vn_step *s = vn_case_step(t);
	const int      entry = s ? vn_recording_find(t->opened->cand, s->number, name) : -1;

	*x = NULL;
	*n = 0;
	/* A window counts cache columns, including padding. Those of packed prompts follow each other
	 * in the first call. */
	if (entry < 0 || (a->n->c.attention.window && (s->position || !vn_batched_is_packed(t->opened->cand))) ||
	    vn_shape_count(&vn_recording_entry(t->opened->cand, entry)->shape) !=
	        s->rows * a->n->c.attention.kv_heads * width_of(a, input))
		return true;
	return vn_case_made(t, vn_batched_padding(t->opened->cand, name, s->number, x, n, vn_case_error(t)));
}

static bool read_inputs(vn_attend_case *a, const vn_case *t)
{
	static const int of[] = { VN_ATTN_K, VN_ATTN_V };
	const int64_t    G = a->n->c.attention.kv_heads;
	double          *pad[2] = { NULL }, **to[2] = { &a->k, &a->v };
	int64_t          n[2] = { 0 };
	bool             all = read_input(t, a, VN_ATTN_Q, &a->q);

	for (int i = 0; all && i < 2; i++)
		all = read_padding(t, a, of[i], &pad[i], &n[i]);
	a->padding = n[0] == n[1] ? n[0] : 0;
	for (int i = 0; all && i < 2; i++)
		if ((all = read_input(t, a, of[i], to[i])) && a->padding) {
			const int64_t row = G * width_of(a, of[i]);
			memcpy(*to[i] + a->S * row, pad[i], (size_t)(a->padding * row) * sizeof **to[i]);
		}
	VN_FREE(pad[0], pad[1]);
	const size_t keys = (size_t)(a->S + a->padding);
	a->s = vn_alloc(3 * keys, sizeof *a->s);
	a->other = a->s + keys;
	a->p = a->other + keys;
	a->flipped = vn_alloc_zero(keys + 1, 1);
	return all;
}

int vn_attend_output(const vn_node *n, int value)
{
	static const int outputs[] = { VN_ATTN_CONTEXT, VN_ATTN_SCORES, VN_ATTN_PROBS };

	for (int i = 0; i < 3 && n->op == VN_OP_ATTENTION; i++)
		if (n->out[outputs[i]] == value)
			return outputs[i];
	return -1;
}

double vn_attend_score(const vn_node *n, double dot)
{
	const double s = dot * n->c.attention.scale, cap = n->c.attention.cap;

	return cap != 0 ? cap * tanh(s / cap) : s;
}

double *vn_attend_sinks(const vn_case *t, const vn_node *n)
{
	const int H = n->c.attention.heads, w = n->w[VN_ATTN_SINKS];
	double   *x = vn_alloc((size_t)H, sizeof *x);

	for (int h = 0; h < H; h++)
		x[h] = w < 0 ? -(double)INFINITY : vn_tensor_number(&t->site->weights[w], h);
	return x;
}

bool vn_attend_open(vn_attend_case *a, const vn_case *t, int node)
{
	const vn_step *s = vn_case_step(t), *all;

	*a = (vn_attend_case) { .n = &t->site->plan->node[node],
		                    .S = t->site->tokens,
		                    .storage = t->opened->policy.storage,
		                    .begins = t->site->begins,
		                    .later = t->site->begins_later,
		                    .one = s && s->position > 0 && s->tokens == 1,
		                    .prompt = vn_recording_steps(t->opened->cand, &all) > 1 ? all[1].position : 0 };
	a->output = vn_attend_output(a->n, t->site->target);
	a->sink = a->output >= 0 ? vn_attend_sinks(t, a->n) : NULL;
	return a->output >= 0 && read_inputs(a, t);
}

void vn_attend_close(vn_attend_case *a)
{
	VN_FREE(a->q, a->k, a->v, a->sink, a->s, a->flipped);
	for (int i = 0; i < 3; i++)
		free(a->rounded[i]);
	*a = (vn_attend_case) { 0 };
}

/* ---- as the edit rounds it ------------------------------------------------------------------- */

static bool is_heads_first(const vn_applied_attention *edit, int input)
{
	return edit->kind == VN_ATTEND_HEADS_FIRST && (int)edit->number >> input & 1;
}

void vn_attend_prepare(vn_attend_case *a, const vn_applied_attention *edit)
{
	const double *own[] = { a->q, a->k, a->v };
	const int64_t heads[] = { a->n->c.attention.heads, a->n->c.attention.kv_heads, a->n->c.attention.kv_heads };

	memcpy(a->read, own, sizeof own);
	for (int i = 0; i < 3; i++) {
		if (!edit->inputs && !edit->cache && !is_heads_first(edit, i))
			continue;
		const int     K = width_of(a, i);
		const int64_t rows = (a->S + (i ? a->padding : 0)) * heads[i];
		double       *x = a->rounded[i] ? a->rounded[i] : vn_alloc((size_t)(rows * K), sizeof *x);
		a->read[i] = a->rounded[i] = x;
		if (is_heads_first(edit, i)) {
			const bool       back = (int)edit->number & 8;
			const vn_arrange m = { VN_ARRANGE_TRANSPOSED, .a = back ? heads[i] : a->S, .b = back ? a->S : heads[i] };
			vn_arrange_bytes(x, own[i], &m, 1, (size_t)(a->S * heads[i]), (size_t)K * sizeof *x);
			continue;
		}
		for (int64_t r = 0; r < rows; r++, x += K) {
			memcpy(x, own[i] + r * K, (size_t)K * sizeof *x);
			if (i && edit->cache && edit->scaled)
				vn_in_format_scaled(x, K, edit->cache);
			for (int d = 0; edit->cache && (a->storage == VN_F16 || a->storage == VN_BF16) && d < K; d++) {
				float f = (float)x[d];
				vn_round_f32(&f, a->storage, 1);
				x[d] = (double)f;
			}
			for (int d = 0; d < K; d++)
				x[d] = vn_in_format(i && !edit->scaled ? vn_in_format(x[d], edit->cache) : x[d], edit->inputs);
		}
	}
}

/* ---- what it makes --------------------------------------------------------------------------- */

bool vn_attend_applies(const vn_attend_case *a, const vn_applied_attention *edit)
{
	const vn_attend_kind k = edit->kind;
	const bool           of_one = k == VN_ATTEND_ONE_OWN || k == VN_ATTEND_ONE_FIRST || k == VN_ATTEND_ONE_PROMPT,
			   of_softmax = of_one || k == VN_ATTEND_CALLS_UNSEEN || k == VN_ATTEND_FIRST_KEY || k == VN_ATTEND_LARGEST;

	const bool first_call = !a->prompt || a->S <= a->prompt;
	/* Scores are recorded as they are before the mask and the softmax. */
	return (k != VN_ATTEND_PADDING || a->padding) && (k != VN_ATTEND_SINK || a->n->w[VN_ATTN_SINKS] < 0) &&
	       (k != VN_ATTEND_HEADS_FIRST || (!a->later && first_call)) &&
	       (edit->call != VN_OWN_CALLS || a->later || (k == VN_ATTEND_CALLS_UNSEEN && a->one)) && (!of_one || a->one) &&
	       (!of_softmax || a->output != VN_ATTN_SCORES);
}

/* The keys that the query at position i sees: *first to *last. */
static void seen_keys(const vn_attend_case *a, const vn_applied_attention *edit, int64_t i, int64_t *first,
                      int64_t *last)
{
	const vn_consts *c = &a->n->c;
	const int64_t    from = vn_call_begin(a->begins, edit->call, i);

	*last = from >= 0 && edit->kind == VN_ATTEND_CALLS_FROM_ZERO ? i - from : i;
	*first = vn_attention_first_key(c, *last);
	if (edit->kind == VN_ATTEND_FIRST_KEY)
		*first = *last = c->attention.first < i ? c->attention.first : i;
	if (edit->kind == VN_ATTEND_ONE_OWN)
		*first = *last;
	if (edit->kind == VN_ATTEND_ONE_FIRST)
		*last = *first;
	if (edit->kind == VN_ATTEND_ONE_PROMPT) {
		*last = a->prompt - 1;
		*first = vn_attention_first_key(c, a->prompt); /* beside the query's own key */
	}
	if (edit->kind == VN_ATTEND_CALLS_ALONE && *first < from)
		*first = from;
	while (from >= 0 && edit->kind == VN_ATTEND_CALLS_FUTURE && *last + 1 < a->S &&
	       vn_call_begin(a->begins, edit->call, *last + 1) == from)
		++*last;
}

/* How many rows of padding, the last ones, the query at position i sees. */
static int64_t seen_padding(const vn_attend_case *a, int64_t i)
{
	const int64_t window = a->n->c.attention.window, n = window ? window - 1 - i : a->padding;

	return n < 0 ? 0 : n < a->padding ? n : a->padding;
}

/* How far a float32 number of an engine may be from ours. A score: relative to the sum of
 * |products|. A probability: relative to itself. */
#define SCORE_SLACK ldexp(1, -22)
#define PROB_SLACK  ldexp(1, -20)

/* The score of key j for the query i of head h. *slack: how far an engine's score may be from
 * it. */
static double score_key(const vn_attend_case *a, const vn_applied_attention *edit, int64_t i, int h, int64_t j,
                        double *slack)
{
	const int     K = a->n->c.attention.head_dim, H = a->n->c.attention.heads, G = a->n->c.attention.kv_heads;
	const double *q = a->read[0] + (i * H + h) * K, *k = a->read[1] + (j * G + h / (H / G)) * K;
	double        dot = 0, size = 0;

	for (int d = 0; d < K; d++) {
		dot += q[d] * k[d];
		size += fabs(q[d] * k[d]);
	}
	const double scale = a->n->c.attention.scale;
	*slack = SCORE_SLACK * size * fabs(scale);
	return edit->kind == VN_ATTEND_CAP ? edit->number * tanh(dot * scale / edit->number) : vn_attend_score(a->n, dot);
}

/* A head's query and the keys it sees: n from `first` on, then padding. loose: how far an engine's
 * probabilities may be from ours. */
typedef struct head_query {
	const vn_attend_case       *a;
	const vn_applied_attention *edit;
	int                         h;
	int64_t                     first, n, padding;
	double                      loose;
} head_query;

/* The j-th key that a query sees: first the n keys from `first` on, then padding: the last
 * `padding` rows of it. */
static int64_t key_index(const head_query *x, int64_t j)
{
	return j < x->n ? x->first + j : x->a->S + x->a->padding - x->padding + j - x->n;
}

/* x in a format. If an engine may have rounded it to either of two numbers, takes the one nearer to
 * *is. */
static double settle_rounding(double x, double slack, vn_rounding_format format, const double *is)
{
	const double low = vn_in_format(x - slack, format), high = vn_in_format(x + slack, format);

	return !is || !format || low == high ? vn_in_format(x, format) : fabs(low - *is) < fabs(high - *is) ? low : high;
}

/* x in a format, rounded to nearest. *may: an engine may have rounded it to a second number;
 * flipped: takes that one. */
static double round_either_way(double x, double slack, vn_rounding_format format, bool flipped, bool *may)
{
	const double y = vn_in_format(x, format), low = vn_in_format(x - slack, format),
				 high = vn_in_format(x + slack, format);

	*may = format && low != high;
	return !flipped || !*may ? y : y == low ? high : low;
}

/* Was the key cached by an earlier call, and is it one of those that the edit hides? */
static bool is_hidden(const vn_attend_case *a, const vn_applied_attention *edit, int64_t i, int64_t key)
{
	const int64_t from = a->one ? i : vn_call_begin(a->begins, edit->call, i), first = (int64_t)edit->number;

	return edit->kind == VN_ATTEND_CALLS_UNSEEN && key >= first && key < first + edit->unseen &&
	       first + edit->unseen <= from;
}

/* Writes the scores into a->s, and into a->other as an engine may have rounded them instead. */
static void score_all(head_query *x, int64_t i)
{
	const vn_rounding_format format = x->edit->scores;
	double                   slack;
	bool                     may;

	x->loose = PROB_SLACK;
	for (int64_t j = 0; j < x->n + x->padding; j++) {
		const double s = score_key(x->a, x->edit, i, x->h, key_index(x, j), &slack);
		x->a->s[j] = round_either_way(s, slack, format, false, &may);
		x->a->other[j] = round_either_way(s, slack, format, true, &may);
		if (is_hidden(x->a, x->edit, i, key_index(x, j)))
			x->a->s[j] = x->a->other[j] = -(double)INFINITY;
		x->loose = format ? x->loose : fmax(x->loose, 2 * slack);
	}
}

/* Writes the probabilities of the scores a->s into a->p. Returns true if exponential `asked` (x->n
 * + x->padding: the sum) may be rounded in two ways. */
static bool softmax_scores(const head_query *x, int64_t asked)
{
	const vn_applied_attention *e = x->edit;
	const double               *s = x->a->s;
	double                     *p = x->a->p, sum = 0;
	const double                sink = e->kind == VN_ATTEND_SINK ? e->number : x->a->sink[x->h];
	double                      top = e->kind == VN_ATTEND_FROM_ZERO ? fmax(sink, 0) : sink;
	const int64_t               n = x->n + x->padding;
	bool                        may, yes = false;

	for (int64_t j = 0; j < n; j++)
		top = fmax(top, s[j]);
	for (int64_t j = 0; j < n; j++) {
		const double by = vn_in_format(s[j] - top, e->exps ? e->scores : VN_FORMAT_NONE), z = exp(by);
		p[j] = round_either_way(z, x->loose * z, e->exps, x->a->flipped[j], &may);
		sum += e->kind == VN_ATTEND_FROM_ZERO ? z : p[j];
		yes = yes || (may && j == asked);
	}
	sum += exp(sink - top) + (e->kind == VN_ATTEND_SUM_PLUS ? e->number : 0);
	sum = round_either_way(sum, x->loose * sum, e->sum, x->a->flipped[n], &may);
	for (int64_t j = 0; j < n; j++)
		p[j] /= sum;
	return yes || (may && asked == n);
}

/* Writes the probabilities to y as they are stored. Returns their squared distance from *is. */
static double store_probs(const head_query *x, const double *is, double *y)
{
	for (int64_t j = 0; j < x->n; j++)
		y[x->first + j] = settle_rounding(x->a->p[j], x->loose * x->a->p[j], x->edit->probs,
		                                  is ? &is[x->first + j] : NULL);
	return is ? vn_square_distance(y + x->first, is + x->first, x->n) : 0;
}

/* Writes the sum of values to y, each times its probability in the formats of the edit. Returns its
 * squared distance from *is. */
static double add_values(const head_query *x, const double *is, double *y)
{
	const vn_attend_case *a = x->a;
	const int             K = width_of(a, VN_ATTN_V), H = a->n->c.attention.heads, G = a->n->c.attention.kv_heads;
	double                error;

	for (int d = 0; d < K; d++)
		y[d] = 0;
	for (int64_t j = 0; j < x->n + x->padding; j++) {
		const double *v = a->read[2] + (key_index(x, j) * G + x->h / (H / G)) * K,
					 p = vn_in_format(vn_in_format(a->p[j], x->edit->probs), x->edit->inputs);
		for (int d = 0; d < K; d++)
			y[d] += p * v[d];
	}
	error = is ? vn_square_distance(y, is, K) : 0;
	for (int64_t j = 0; is && (x->edit->probs || x->edit->inputs) && j < x->n + x->padding; j++) {
		const vn_rounding_format format = x->edit->probs ? x->edit->probs : x->edit->inputs;
		const double *v = a->read[2] + (key_index(x, j) * G + x->h / (H / G)) * K, p = vn_in_format(a->p[j], format),
					 low = vn_in_format(a->p[j] * (1 - x->loose), format),
					 by = (p == low ? vn_in_format(a->p[j] * (1 + x->loose), format) : low) - p;
		double with = 0;
		for (int d = 0; by != 0 && d < K; d++)
			with += (y[d] + by * v[d] - is[d]) * (y[d] + by * v[d] - is[d]);
		for (int d = 0; by != 0 && with < error && d < K; d++)
			y[d] += by * v[d];
		error = by != 0 ? fmin(error, with) : error;
	}
	return error;
}

static double make_output(const head_query *x, const double *is, double *y)
{
	return x->a->output == VN_ATTN_PROBS ? store_probs(x, is, y) : add_values(x, is, y);
}

/* Puts all weight on the largest score. If rounding may have made several scores equal or exchanged
 * them, takes the one that fits *is best. */
static void attend_to_largest(const head_query *x, const double *is, double *y)
{
	const double *s = x->a->s;
	double       *p = x->a->p, top = -(double)INFINITY, least = (double)INFINITY;
	const int64_t n = x->n + x->padding;
	int64_t       best = 0;

	for (int64_t j = 0; j < n; j++)
		top = fmax(top, s[j]);
	const double near = top - fabs(top) * ldexp(1, 1 - vn_dtype_digits(x->a->storage));
	memset(p, 0, (size_t)n * sizeof *p);
	for (int64_t j = 0; j < n; j++) {
		if (!(is ? s[j] >= near : s[j] == top))
			continue;
		p[j] = 1;
		const double error = make_output(x, is, y);
		p[j] = 0;
		best = error < least ? j : best;
		least = fmin(error, least);
	}
	p[best] = 1;
	make_output(x, is, y);
}

static double finish_query(const head_query *x, const double *is, double *y)
{
	softmax_scores(x, -1);
	return make_output(x, is, y);
}

/* Rounds each score, each exponential and their sum that is near the middle to the side that
 * fits *is better. */
static void settle_scores(const head_query *x, const double *is, double *y)
{
	const int64_t n = x->n + x->padding;
	double       *s = x->a->s, *other = x->a->other, error;
	bool          stale = false;

	memset(x->a->flipped, 0, (size_t)n + 1);
	error = finish_query(x, is, y);

	for (int64_t j = 0; is && j < x->n + x->padding; j++) {
		const double was = s[j];
		if (other[j] == was)
			continue;
		s[j] = other[j];
		const double with = finish_query(x, is, y);
		stale = !(with < error);
		s[j] = stale ? was : s[j];
		error = fmin(error, with);
	}
	for (int64_t j = 0; is && (x->edit->exps || x->edit->sum) && j <= n; j++) {
		if (!softmax_scores(x, j))
			continue;
		x->a->flipped[j] = 1;
		const double with = finish_query(x, is, y);
		x->a->flipped[j] = with < error;
		error = fmin(error, with);
	}
	if (stale || x->edit->exps || x->edit->sum)
		finish_query(x, is, y);
}

/* If a query sees fewer keys than there are tokens, some recorders put the probabilities into the
 * last columns, as for a window. Moves y (S), the probabilities of the first call's keys, there if
 * the candidate's last column is not 0. */
static void put_last(const vn_attend_case *a, const double *is, double *y)
{
	const int64_t by = a->S - a->prompt;

	if (by <= 0 || !is || is[a->S - 1] == 0)
		return;
	memmove(y + by, y, (size_t)a->prompt * sizeof *y);
	memset(y, 0, (size_t)by * sizeof *y);
}

void vn_attend_row(const vn_attend_case *a, const vn_applied_attention *edit, int64_t i, const double *is, double *y)
{
	const int     H = a->n->c.attention.heads;
	const int64_t width = vn_attend_width(a);
	head_query    x = { .a = a, .edit = edit, .padding = edit->kind == VN_ATTEND_PADDING ? seen_padding(a, i) : 0 };
	int64_t       last;
	double        slack;

	seen_keys(a, edit, i, &x.first, &last);
	x.n = last + 1 - x.first;
	for (int64_t k = 0; k < H * width; k++)
		y[k] = 0;
	for (; x.h < H; x.h++, y += width, is = is ? is + width : NULL) {
		for (int64_t j = 0; a->output == VN_ATTN_SCORES && j < a->S; j++) {
			const double s = score_key(a, edit, i, x.h, j, &slack);
			y[j] = settle_rounding(s, slack, edit->scores, is ? &is[j] : NULL);
		}
		if (a->output != VN_ATTN_SCORES) {
			score_all(&x, i);
			if (edit->kind == VN_ATTEND_LARGEST)
				attend_to_largest(&x, is, y);
			else
				settle_scores(&x, is, y);
			if (edit->kind == VN_ATTEND_ONE_PROMPT && a->output == VN_ATTN_PROBS)
				put_last(a, is, y);
		}
	}
}

int64_t vn_attend_width(const vn_attend_case *a)
{
	return a->output == VN_ATTN_CONTEXT ? width_of(a, VN_ATTN_V) : a->S;
}

int64_t vn_attend_at(const vn_attend_case *a, int64_t T, int64_t row, int h)
{
	return (a->output == VN_ATTN_CONTEXT ? row * a->n->c.attention.heads + h : h * T + row) * vn_attend_width(a);
}
