/* rearrange.c: see rearrange.h. */
#include "compare/explain/rearrange.h"
#include "compare/explain/catalogue.h"
#include "compare/explain/score.h"
#include "compare/explain/search.h"

#include "libref/base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_MAX = 4 };

static double *doubles(const vn_tensor *t)
{
	const size_t n = (size_t)vn_shape_count(&t->shape);
	double      *x = malloc((n + 1) * sizeof *x);
	if (x)
		vn_to_f64(x, t->data, t->dtype, n);
	return x;
}

typedef struct arranged {
	vn_explain_trial *t;
	int64_t           n;
	double           *own, *fine, *cand; /* the operation's result, the same more precisely, the candidate */
	double           *a, *b;             /* room: the first two arranged */
	const vn_tensor  *like;
} arranged;

/* Judges r->a and r->b as the stored result: r->a is rounded to the candidate's format, its more
 * precise twin r->b is not. */
static vn_status judge_as(arranged *r, bool order, vn_hypothesis *h, vn_error *err)
{
	const vn_explain_trial *t = r->t;
	const vn_dtype          as = t->c->opened.policy.storage;
	const vn_plan          *plan = t->site->plan;
	const int               v = t->site->target;

	h->node = plan->value[v].node;
	h->change.kind = VN_BY_RESULT;
	if (as != VN_F64 && !vn_value_wide(plan, v))
		for (int64_t i = 0; i < r->n; i++) {
			float x = (float)r->a[i];
			vn_round_f32(&x, as, 1);
			r->a[i] = (double)x;
		}
	const vn_tensor a = { VN_F64, r->like->shape, r->a }, b = { VN_F64, r->like->shape, r->b };
	return order ? vn_try_arranged(r->t, &a, &b, h, err) : vn_try_numbers(r->t, &a, &b, h, err);
}

static vn_status judge(arranged *r, vn_hypothesis *h, vn_error *err)
{
	return judge_as(r, false, h, err);
}

/* Judges the operation's own numbers in another order. */
static vn_status judge_order(arranged *r, vn_hypothesis *h, vn_error *err)
{
	return judge_as(r, true, h, err);
}

/* ---- one number ------------------------------------------------------------------------------------- */

/* Does the checkpoint consist of heads, or of what was computed from them? Elsewhere, a factor
 * that matches a head size is a coincidence. */
static bool about_heads(const vn_explain_trial *t)
{
	const vn_plan *p = t->site->plan;
	const vn_point at = p->value[t->site->target].point;
	const char    *axes = t->site->axes;

	return vn_axes_find(axes, "head") >= 0 || vn_axes_find(axes, "kv_head") >= 0 || at == VN_POINT_ATTN_OUT ||
	       at == VN_POINT_C_ATTN;
}

/* The nearest factor made of this model's sizes, or power of two, if x is near enough. *name:
 * its index in vn_factor_names; 0: none. */
static double near_named(const vn_explain_trial *t, double x, int *name)
{
	const vn_plan *p = t->site->plan;
	double         K = 0, D = 0, group = 0;

	for (int i = 0; about_heads(t) && i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION) {
			K = p->node[i].c.attention.head_dim;
			group = (double)p->node[i].c.attention.heads / p->node[i].c.attention.kv_heads;
			break;
		}
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_EMBED)
			D = p->value[p->node[i].out[0]].size[1];
	/* clang-format off */
	const struct { double x; vn_factor_name name; } known[] = {
		{ 2, VN_PLAIN_FACTOR }, { 0.5, VN_PLAIN_FACTOR }, { 4, VN_PLAIN_FACTOR }, { 0.25, VN_PLAIN_FACTOR },
		  { 8, VN_PLAIN_FACTOR }, { 0.125, VN_PLAIN_FACTOR },
		{ -1, VN_PLAIN_FACTOR }, { K, VN_HEAD_WIDTH }, { 1 / K, VN_OVER_HEAD_WIDTH }, { sqrt(K), VN_ROOT_HEAD_WIDTH },
		  { 1 / sqrt(K), VN_OVER_ROOT_HEAD_WIDTH },
		{ D, VN_MODEL_WIDTH }, { 1 / D, VN_OVER_MODEL_WIDTH }, { sqrt(D), VN_ROOT_MODEL_WIDTH },
		  { 1 / sqrt(D), VN_OVER_ROOT_MODEL_WIDTH },
		{ sqrt(D / K), VN_ROOT_MODEL_OVER_HEAD }, { sqrt(K / D), VN_ROOT_HEAD_OVER_MODEL }, { group, VN_QUERY_HEADS },
		  { 1 / group, VN_OVER_QUERY_HEADS },
		{ 127.0 / 128, VN_127_OVER_128 }, { 128.0 / 127, VN_128_OVER_127 },
		  { 1.0 / (p->layers + 1), VN_OVER_LAYERS_AND_ONE },
		{ 1.4142135623730951, VN_ROOT_2 }, { 0.7071067811865476, VN_OVER_ROOT_2 },
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (isfinite(known[i].x) && known[i].x != 1 && fabs(x / known[i].x - 1) < 2e-3) {
			*name = (int)known[i].name;
			return known[i].x;
		}
	*name = VN_NO_NAME;
	return x;
}

/* Is the factor a mistake of its own at this point: a temperature of the logits, ranks added too
 * often or averaged? f: its exact value. */
static bool meant(const vn_explain_trial *t, double by, double *f, vn_hypothesis *h)
{
	const vn_plan *p = t->site->plan;
	const vn_point at = p->value[t->site->target].point;
	const double   over = 1 / by, plain = vn_in_digits(over, 3), ranks = round(by > 1 ? by : over);

	if (at == VN_POINT_LOGITS && by > 0) {
		const double tau = fabs(over / plain - 1) < 2e-4 ? plain : over;
		*f = 1 / tau;
		h->finding = VN_TEMPERATURE;
		return true;
	}
	if ((at != VN_POINT_ATTN_OUT && at != VN_POINT_DOWN_PROJ) || !(ranks >= 2 && ranks <= 1024) ||
	    !(fabs((by > 1 ? by : over) / ranks - 1) < 2e-3))
		return false;
	*f = by > 1 ? ranks : 1 / ranks;
	h->finding = by > 1 ? VN_SUM_TIMES : VN_AVERAGE;
	return true;
}

/* Everything times f. */
static vn_status scaled(arranged *r, double f, vn_hypothesis *h, vn_error *err)
{
	h->change.result.number = f;
	for (int64_t i = 0; i < r->n; i++) {
		r->a[i] = f * r->own[i];
		r->b[i] = f * r->fine[i];
	}
	return judge(r, h, err);
}

static vn_status factor(arranged *r, vn_error *err)
{
	vn_hypothesis own = { 0 };
	double        xy = 0, xx = 0, exact;
	int           name;
	vn_status     st = VN_OK;

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->own[i]) && isfinite(r->cand[i])) {
			xy += r->own[i] * r->cand[i];
			xx += r->own[i] * r->own[i];
		}
	if (!(xx > 0))
		return VN_OK;
	const double by = xy / xx;
	if (meant(r->t, by, &exact, &own) && ((st = scaled(r, exact, &own, err)) || vn_fits(r->t, &own)))
		return st;
	exact = near_named(r->t, by, &name);
	for (int exactly = name != VN_NO_NAME; !st && exactly >= 0; exactly--) {
		vn_hypothesis h = { .finding = VN_FACTOR,
			                .change.result = { .n = 1, .list = { exactly ? name : VN_NO_NAME } } };
		if (!(st = scaled(r, exactly ? exact : by, &h, err)) && exactly && vn_fits(r->t, &h))
			break; /* a person wrote that number; it was not fitted */
	}
	return st;
}

static vn_status offset(arranged *r, vn_error *err)
{
	vn_hypothesis h = { .finding = VN_ADDEND };
	double        sum = 0;
	int64_t       n = 0;

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->own[i]) && isfinite(r->cand[i])) {
			sum += r->cand[i] - r->own[i];
			n++;
		}
	if (!n || sum == 0)
		return VN_OK;
	for (int64_t i = 0; i < r->n; i++) {
		r->a[i] = r->own[i] + sum / (double)n;
		r->b[i] = r->fine[i] + sum / (double)n;
	}
	h.change.result.number = sum / (double)n;
	return judge(r, &h, err);
}

/* All numbers above a limit, below one, or of more than one size are cut to it. At least two must be. */
static vn_status clamped(arranged *r, vn_error *err)
{
	double low = (double)INFINITY, high = -(double)INFINITY, own_low = low, own_high = high;
	int    at_low = 0, at_high = 0;

	for (int64_t i = 0; i < r->n; i++) {
		if (!isfinite(r->own[i]) || !isfinite(r->cand[i]))
			return VN_OK;
		low = fmin(low, r->cand[i]);
		high = fmax(high, r->cand[i]);
		own_low = fmin(own_low, r->own[i]);
		own_high = fmax(own_high, r->own[i]);
	}
	for (int64_t i = 0; i < r->n; i++) {
		at_low += r->cand[i] == low;
		at_high += r->cand[i] == high;
	}
	const bool above = high < own_high && at_high > 1, below = low > own_low && at_low > 1;
	if ((!above && !below) || (above && below && low != -high))
		return VN_OK;
	for (int64_t i = 0; i < r->n; i++) {
		r->a[i] = fmin(fmax(r->own[i], below ? low : r->own[i]), above ? high : r->own[i]);
		r->b[i] = fmin(fmax(r->fine[i], below ? low : r->fine[i]), above ? high : r->fine[i]);
	}
	vn_hypothesis h = { .finding = VN_CLAMPED,
		                .change.result = {
							.number = above ? high : low, .n = 1, .list = { above && below ? 2 : below } } };
	return judge(r, &h, err);
}

static vn_status one_value(arranged *r, vn_error *err)
{
	vn_hypothesis h = { .finding = r->cand[0] == 0 ? VN_ZERO : VN_ONE_VALUE, .change.result.number = r->cand[0] };

	for (int64_t i = 0; i < r->n; i++) {
		if (!(r->cand[i] == r->cand[0]))
			return VN_OK;
		r->a[i] = r->b[i] = r->cand[0];
	}
	return judge(r, &h, err);
}

/* ---- a cap: logits c tanh(x / c) ----------------------------------------------------------------------- */

enum { ASKED = 1 << 16 }; /* logits that the cap is read off, about */
enum { GRID = 64, FINER = 5, DIGITS = 4 };
#define WIDEST 100.0 /* times the largest logit; a wider cap changes nothing */
#define LEFT   0.1   /* of the error: the most that the best cap may leave */

typedef struct curve {
	const double *own, *cand; /* (n): as they should be, as they are */
	int64_t       n;
} curve;

/* Squares of what the cap leaves. */
static double error_of(const void *of, double c)
{
	const curve *x = of;
	double       sum = 0;

	for (int64_t i = 0; i < x->n; i += 1 + x->n / ASKED) {
		const double d = c * tanh(x->own[i] / c) - x->cand[i];
		sum += d * d;
	}
	return sum;
}

/* The cap that leaves least. 0: none leaves little. */
static double best_cap(const curve *x)
{
	double whole = 0, top = 0;

	for (int64_t i = 0; i < x->n; i += 1 + x->n / ASKED)
		whole += (x->own[i] - x->cand[i]) * (x->own[i] - x->cand[i]);
	for (int64_t i = 0; i < x->n; i++)
		top = fabs(x->cand[i]) > top ? fabs(x->cand[i]) : top;
	if (!(top > 0))
		return 0;
	const vn_least least = vn_search_grid(error_of, x, top, WIDEST * top, GRID, FINER, GRID);
	return least.error < LEFT * whole ? least.x : 0;
}

static vn_status capped(arranged *r, vn_error *err)
{
	const vn_plan *p = r->t->site->plan;
	const curve    x = { r->own, r->cand, r->n };
	const double   c = p->value[r->t->site->target].point == VN_POINT_LOGITS && !r->t->x->unmodified.local.bad
	                       ? best_cap(&x)
	                       : 0;
	vn_status      st = VN_OK;

	for (int digits = 1; !st && c > 0 && digits <= DIGITS && !vn_answered(r->t); digits++) { /* a person wrote it */
		const double  said = vn_in_digits(c, digits);
		vn_hypothesis h = { .finding = VN_CAP, .change.result.number = said };
		for (int64_t i = 0; i < r->n; i++) {
			r->a[i] = said * tanh(r->own[i] / said);
			r->b[i] = said * tanh(r->fine[i] / said);
		}
		st = judge(r, &h, err);
	}
	return st;
}

/* ---- order --------------------------------------------------------------------------------------------- */

/* Row i becomes row from(i); -1: zeros. There are `outer` blocks of `rows` rows. */
static void gather(arranged *r, int64_t outer, int64_t rows, const int *from)
{
	const int64_t row = r->n / outer / rows;
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < rows; i++) {
			const int64_t to = (o * rows + i) * row;
			for (int k = 0; k < 2; k++) {
				double       *y = k ? r->b : r->a;
				const double *x = k ? r->fine : r->own;
				if (from[i] < 0)
					memset(y + to, 0, (size_t)row * sizeof *y);
				else
					memcpy(y + to, x + (o * rows + from[i]) * row, (size_t)row * sizeof *y);
			}
		}
}

/* For each row of the candidate along an axis, the row of the unmodified result that is nearest
 * to it. */
static void nearest(const arranged *r, int64_t outer, int64_t rows, int *from)
{
	const int64_t row = r->n / outer / rows;
	for (int64_t i = 0; i < rows; i++) {
		from[i] = (int)i; /* numbers that are none are near nothing */
		double least = (double)INFINITY;
		for (int64_t j = 0; j < rows; j++) {
			double dd = 0;
			for (int64_t o = 0; o < outer && dd < least; o++)
				for (int64_t k = 0; k < row; k++) {
					const double d = r->cand[(o * rows + i) * row + k] - r->own[(o * rows + j) * row + k];
					dd += d * d;
				}
			if (dd < least) {
				least = dd;
				from[i] = (int)j;
			}
		}
	}
}

static vn_status heads(arranged *r, const char *axes, vn_error *err)
{
	vn_hypothesis h = { .finding = VN_HEADS_REORDERED };
	int          *from = h.change.result.list, axis = 0;
	int64_t       outer = 1;
	bool          moved = false;

	for (size_t n; axis < r->like->shape.rank; axis++) {
		const char *word = vn_axes_word(axes, axis, &n);
		if (n >= 4 && strncmp(word + n - 4, "head", 4) == 0)
			break;
		outer *= r->like->shape.dim[axis];
	}
	if (axis >= r->like->shape.rank || r->like->shape.dim[axis] < 2 || r->like->shape.dim[axis] > VN_LIST_MOST)
		return VN_OK;
	const int64_t H = r->like->shape.dim[axis];
	nearest(r, outer, H, from);
	for (int64_t i = 0; i < H; i++)
		moved = moved || from[i] != i;
	if (!moved)
		return VN_OK;
	h.change.result.n = (int)H;
	gather(r, outer, H, from);
	return judge_order(r, &h, err);
}

/* Rows moved by some places. The rows that come in from outside are zero, or repeat the first or
 * last row. */
static vn_status moved_rows(arranged *r, const char *axes, vn_error *err)
{
	const int64_t T = r->like->shape.dim[0];
	int          *from = malloc((size_t)T * sizeof *from);
	vn_status     st = from ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for rows");

	for (int by = -SHIFT_MAX; !st && T > 2 * SHIFT_MAX && strncmp(axes, "token", 5) == 0 && by <= SHIFT_MAX; by++)
		for (int wrap = 0; !st && by && wrap < 3; wrap++) {
			vn_hypothesis h = { .finding = VN_TOKENS_MOVED, .change.result.number = by };
			for (int64_t i = 0; i < T; i++) {
				const int64_t at = i + by;
				from[i] = (int)(at >= 0 && at < T ? at
				                : wrap == 0       ? -1
				                : wrap == 1       ? (at + T) % T
				                : at < 0          ? 0
				                                  : T - 1);
			}
			gather(r, 1, T, from);
			st = judge_order(r, &h, err);
		}
	if (!st && T > 2 && strncmp(axes, "token", 5) == 0) {
		vn_hypothesis h = { .finding = VN_TOKENS_REVERSED };
		for (int64_t i = 0; i < T; i++)
			from[i] = (int)(T - 1 - i);
		gather(r, 1, T, from);
		st = judge_order(r, &h, err);
	}
	free(from);
	return st;
}

/* The numbers with their axes in another order, under the same shape. */
static void permute(const vn_shape *s, const int *order, const double *x, double *y)
{
	int64_t stride[VN_MAX_RANK], dim[VN_MAX_RANK], index[VN_MAX_RANK] = { 0 }, n = vn_shape_count(s), step = 1;

	for (int i = s->rank - 1; i >= 0; i--) {
		stride[i] = step;
		step *= s->dim[i];
	}
	for (int i = 0; i < s->rank; i++)
		dim[i] = s->dim[order[i]];
	for (int64_t k = 0; k < n; k++) {
		int64_t at = 0;
		for (int i = 0; i < s->rank; i++)
			at += index[i] * stride[order[i]];
		y[k] = x[at];
		for (int i = s->rank - 1; i >= 0 && ++index[i] == dim[i]; i--)
			index[i] = 0;
	}
}

static vn_status turned_axes(arranged *r, vn_error *err)
{
	/* If the run continued with these numbers, the recording is not at fault. */
	const vn_plan   *plan = r->t->site->plan;
	const bool       joined = plan->node[plan->value[r->t->site->target].node].op == VN_OP_ATTENTION;
	static const int orders[][4] = { { 1, 0, 2, 3 }, { 0, 2, 1, 3 }, { 2, 1, 0, 3 }, { 1, 2, 0, 3 }, { 2, 0, 1, 3 } };
	const vn_shape  *s = &r->like->shape;
	vn_status        st = VN_OK;

	for (size_t i = 0; !st && i < (s->rank == 2 ? 1u : sizeof orders / sizeof *orders); i++) {
		const bool inside = joined && orders[i][0] == 0 && orders[i][1] == 2,
				   outside = joined && i == 0 && s->rank == 3;
		vn_hypothesis h = { .finding = r->t->went != VN_WENT_ON ? VN_AXES_RECORDED
			                           : inside                 ? VN_AXES_OF_HEADS
			                           : outside                ? VN_AXES_BEFORE_TOKENS
			                                                    : VN_AXES,
			                .capture = r->t->went == VN_NOT_WENT_ON,
			                .change.result.n = s->rank };
		if (s->rank < 2 || s->rank > 3)
			return VN_OK;
		permute(s, orders[i], r->own, r->a);
		permute(s, orders[i], r->fine, r->b);
		memcpy(h.change.result.list, orders[i], (size_t)s->rank * sizeof *orders[i]);
		st = judge_order(r, &h, err);
	}
	return st;
}

/* ---- another checkpoint ------------------------------------------------------------------------------------ */

/* Is value v computed from `of`, or does it show the same memory, as a state does? */
static bool made_of(const vn_plan *p, int v, int of)
{
	const vn_node *n = &p->node[p->value[v].node];
	if (v == of)
		return true;
	if (p->value[v].node < p->value[of].node)
		return false;
	for (int i = 0; i < n->n_in; i++)
		if (made_of(p, vn_plan_root(p, n->in[i]), of))
			return true;
	return false;
}

/* Equal bits with another checkpoint point to the capture if the run continued with other
 * numbers. If that is unknown, a checkpoint that copies this one proves nothing: a cache, or a
 * rotation by zero. */
static bool may_be_taken_for(const arranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name), me = vn_plan_find(p, r->t->c->result.point[r->t->x->point].name);
	const int      root = v < 0 ? -1 : vn_plan_root(p, v), mine = vn_plan_root(p, me);

	if (r->t->went == VN_WENT_ON || root == mine)
		return false;
	/* computed from it in the same layer; later layers mix in other numbers */
	return root < 0 || r->t->went == VN_NOT_WENT_ON
	           ? root < 0 || p->value[root].state < 0
	           : p->value[root].layer != p->value[mine].layer || !made_of(p, root, mine);
}

/* Was it computed after this checkpoint? Then it overwrote this buffer, and is not a stale
 * value. */
static bool comes_later(const arranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name);
	return v >= 0 && p->value[vn_plan_root(p, v)].node > p->value[r->t->site->target].node;
}

/* NaN everywhere is common to any two results of one overflow, so it does not show a copy. */
static bool any_finite(const double *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (isfinite(x[i]))
			return true;
	return false;
}

/* The MLP is right on inputs with which the sum after it is wrong, and these are the layer's
 * inputs: the block is parallel. What was recorded as the residual is what the norm read. */
static bool is_parallel(const arranged *r, const vn_entry *e)
{
	const vn_plan *p = r->t->site->plan;
	const int      v = vn_plan_find(p, e->name), mine = r->t->site->target;

	if (v < 0 || p->value[mine].point != VN_POINT_ATTN_RESIDUAL || r->t->went != VN_NOT_WENT_ON ||
	    !vn_consumed_as_recorded(r->t))
		return false;
	const vn_node *sum = &p->node[p->value[mine].node];
	return vn_plan_root(p, v) == vn_plan_root(p, sum->in[0]);
}

static vn_status another(arranged *r, vn_error *err)
{
	const vn_comparison *c = r->t->c;
	const vn_tensor     *cand = r->like;
	const vn_entry      *me = vn_recording_entry(c->opened.cand, c->result.point[r->t->x->point].cand);
	vn_status            st = VN_OK;

	for (int i = 0; !st && any_finite(r->cand, r->n) && i < vn_recording_count(c->opened.cand); i++) {
		const vn_entry *e = vn_recording_entry(c->opened.cand, i);
		vn_hypothesis   h = { .capture = true };
		vn_tensor       t;
		if (e->step != me->step || e->dtype != me->dtype || e->same_as >= 0 || strcmp(e->name, me->name) == 0 ||
		    e == me || vn_shape_count(&e->shape) != r->n || !may_be_taken_for(r, e))
			continue;
		if ((st = vn_entry_tensor(c->opened.cand, i, &t, err)))
			break;
		if (memcmp(t.data, cand->data, (size_t)r->n * vn_dtype_size(t.dtype)) == 0) {
			memcpy(r->a, r->cand, (size_t)r->n * sizeof *r->a);
			memcpy(r->b, r->cand, (size_t)r->n * sizeof *r->b);
			h.finding = comes_later(r, e)   ? VN_RECORDED_LATER
			            : is_parallel(r, e) ? VN_PARALLEL_BLOCK
			                                : VN_RECORDED_BEFORE;
			h.capture = h.finding != VN_PARALLEL_BLOCK;
			vn_text_add(h.holds, sizeof h.holds, "%s", e->name);
			vn_text_clean(h.holds, sizeof h.holds);
			st = judge(r, &h, err);
		}
		vn_recording_release(c->opened.cand, i);
	}
	return st;
}

vn_status vn_rearrange(vn_explain_trial *t, vn_error *err)
{
	const vn_tensor *c = &t->site->cand;
	const char      *axes = t->site->axes;
	arranged         r = {
				t, vn_shape_count(&c->shape), doubles(&t->own), doubles(&t->fine), doubles(c), doubles(c), doubles(c), c
	};
	vn_status st = VN_OK;

	if (!r.own || !r.fine || !r.cand || !r.a || !r.b)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for arrangements");
	if (!st)
		st = one_value(&r, err);
	if (!st && !vn_answered(t) && !(st = clamped(&r, err)) && !(st = factor(&r, err)) && !(st = capped(&r, err)) &&
	    !(st = offset(&r, err)) && !(st = heads(&r, axes, err)) && !(st = moved_rows(&r, axes, err)) &&
	    !(st = turned_axes(&r, err)))
		st = another(&r, err);
	free(r.own);
	free(r.fine);
	free(r.cand);
	free(r.a);
	free(r.b);
	return st;
}

/* ---- rows that were not written --------------------------------------------------------------------- */

/* With fewer rows, equal bits do not show a tile: a single token may be 0 for other reasons. */
enum { ROWS_MIN = 4 };

typedef struct tiles {
	vn_explain_trial *t;
	const vn_tensor  *cand;
	int64_t           T, N;                    /* (T,N) */
	double           *own, *fine, *is, *a, *b; /* expected, expected more precisely, found; room */
	bool             *off;                     /* (T): of more than rounding */
	bool             *held;                    /* (T): off, and another's */
} tiles;

static void find_off(tiles *x)
{
	const double limit = VN_PEAK_LIMIT * x->t->x->unmodified.local.floor_token;

	for (int64_t t = 0; t < x->T; t++) {
		double dd = 0, yy = 0;
		for (int64_t i = t * x->N; i < (t + 1) * x->N; i++) {
			dd += (x->is[i] - x->own[i]) * (x->is[i] - x->own[i]);
			yy += x->own[i] * x->own[i];
		}
		x->off[t] = !(dd <= limit * yy);
	}
}

/* Finds the rows in error that have the bits of `other`; NULL: that are zeros. Returns how many. */
static int64_t find_held(tiles *x, const char *other)
{
	const size_t row = (size_t)x->N * vn_dtype_size(x->cand->dtype);
	const char  *is = x->cand->data;
	int64_t      n = 0;

	for (int64_t t = 0; t < x->T; t++) {
		bool same = x->off[t] && (!other || (any_finite(x->is + t * x->N, x->N) &&
		                                     memcmp(is + (size_t)t * row, other + (size_t)t * row, row) == 0));
		for (int64_t i = t * x->N; same && !other && i < (t + 1) * x->N; i++)
			same = x->is[i] == 0;
		x->held[t] = same;
		n += same;
	}
	return n;
}

/* The first runs of what was found, as pairs of numbers, and one more number if there are further
 * runs. */
static void list_runs(const bool *held, int64_t of, vn_hypothesis *h)
{
	enum { FEW = 4 };
	int *list = h->change.result.list, *n = &h->change.result.n;

	for (int64_t t = 0; t < of; t++) {
		int64_t end = t;
		if (!held[t])
			continue;
		if (*n == 2 * FEW) {
			list[(*n)++] = -1;
			return;
		}
		while (end + 1 < of && held[end + 1])
			end++;
		list[(*n)++] = (int)t;
		list[(*n)++] = (int)end;
		t = end;
	}
}

/* Judges the operation's result with those rows unwritten. */
static vn_status judge_tiles(tiles *x, const char *name, vn_error *err)
{
	const vn_plan  *plan = x->t->site->plan;
	const vn_tensor a = { VN_F64, x->cand->shape, x->a }, b = { VN_F64, x->cand->shape, x->b };
	vn_hypothesis   h = { .finding = name ? VN_PARTLY_OTHER : VN_PARTLY_ZERO,
		                  .node = plan->value[x->t->site->target].node,
		                  .capture = x->t->went == VN_NOT_WENT_ON,
		                  .change.kind = VN_BY_RESULT };

	for (int64_t i = 0; i < x->T * x->N; i++) {
		x->a[i] = x->held[i / x->N] ? x->is[i] : x->own[i];
		x->b[i] = x->held[i / x->N] ? x->is[i] : x->fine[i];
	}
	list_runs(x->held, x->T, &h);
	if (name) {
		vn_text_add(h.holds, sizeof h.holds, "%s", name);
		vn_text_clean(h.holds, sizeof h.holds);
	}
	return vn_try_numbers(x->t, &a, &b, &h, err);
}

/* Channels that are 0 in every row, and should not be: judges the result without them. */
static vn_status try_channels(tiles *x, vn_error *err)
{
	const vn_plan  *plan = x->t->site->plan;
	const vn_tensor a = { VN_F64, x->cand->shape, x->a }, b = { VN_F64, x->cand->shape, x->b };
	vn_hypothesis   h = { .finding = VN_CHANNELS_ZERO,
		                  .node = plan->value[x->t->site->target].node,
		                  .capture = x->t->went == VN_NOT_WENT_ON,
		                  .change.kind = VN_BY_RESULT };
	bool           *gone = calloc((size_t)x->N + 1, sizeof *gone);
	int64_t         some = 0;
	vn_status       st = VN_OK;

	if (!gone)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld channels", (long long)x->N);
	for (int64_t c = 0; c < x->N; c++) {
		bool due = false;
		gone[c] = true;
		for (int64_t t = 0; t < x->T; t++) {
			gone[c] = gone[c] && x->is[t * x->N + c] == 0;
			due = due || x->own[t * x->N + c] != 0;
		}
		gone[c] = gone[c] && due;
		some += gone[c];
	}
	for (int64_t i = 0; i < x->T * x->N; i++) {
		x->a[i] = gone[i % x->N] ? 0 : x->own[i];
		x->b[i] = gone[i % x->N] ? 0 : x->fine[i];
	}
	list_runs(gone, x->N, &h);
	h.change.result.number = (double)x->N;
	if (some && some < x->N)
		st = vn_try_arranged(x->t, &a, &b, &h, err);
	free(gone);
	return st;
}

/* Does it show this checkpoint's own numbers, as a cache does? Then equal bits say nothing. */
static bool is_a_view(const vn_explain_trial *t, const vn_entry *e)
{
	const vn_plan *p = t->site->plan;
	const int      v = vn_plan_find(p, e->name), mine = t->site->target, root = v < 0 ? -1 : vn_plan_root(p, v);

	return root >= 0 && (root == mine || (p->value[root].state >= 0 && p->value[root].layer == p->value[mine].layer &&
	                                      made_of(p, root, mine)));
}

static bool could_hold(const tiles *x, const vn_entry *e, const vn_entry *me)
{
	return !is_a_view(x->t, e) && e != me && e->step == me->step && e->dtype == me->dtype && e->same_as < 0 &&
	       strcmp(e->name, me->name) != 0 && e->shape.rank > 0 && e->shape.dim[0] == x->T &&
	       vn_shape_count(&e->shape) == x->T * x->N;
}

static vn_status try_tiles(tiles *x, vn_error *err)
{
	const vn_comparison *c = x->t->c;
	const vn_entry      *me = vn_recording_entry(c->opened.cand, c->result.point[x->t->x->point].cand);
	int64_t              held;
	vn_status            st = VN_OK;

	find_off(x);
	held = find_held(x, NULL);
	if (held >= ROWS_MIN && held < x->T)
		st = judge_tiles(x, NULL, err);
	if (!st && !vn_answered(x->t))
		st = try_channels(x, err);
	for (int i = 0; !st && i < vn_recording_count(c->opened.cand); i++) {
		vn_tensor t;
		if (!could_hold(x, vn_recording_entry(c->opened.cand, i), me))
			continue;
		if ((st = vn_entry_tensor(c->opened.cand, i, &t, err)))
			break;
		held = find_held(x, t.data);
		if (held >= ROWS_MIN && held < x->T)
			st = judge_tiles(x, vn_recording_entry(c->opened.cand, i)->name, err);
		vn_recording_release(c->opened.cand, i);
	}
	return st;
}

vn_status vn_rearrange_rows(vn_explain_trial *t, vn_error *err)
{
	const vn_tensor *c = &t->site->cand;
	const vn_entry  *e = vn_recording_entry(t->c->opened.cand, t->c->result.point[t->x->point].cand);
	const size_t     n = (size_t)vn_shape_count(&c->shape);
	vn_status        st = VN_OK;

	/* of sampled rows, the rows in between are unknown */
	if (c->shape.rank < 2 || strncmp(t->site->axes, "token", 5) != 0 || !vn_shape_equal(&c->shape, &e->shape) ||
	    c->shape.dim[0] <= ROWS_MIN)
		return VN_OK;
	tiles x = { t,
		        c,
		        c->shape.dim[0],
		        (int64_t)n / c->shape.dim[0],
		        doubles(&t->own),
		        doubles(&t->fine),
		        doubles(c),
		        doubles(c),
		        doubles(c),
		        malloc((size_t)c->shape.dim[0]),
		        malloc((size_t)c->shape.dim[0]) };
	if (x.own && x.fine && x.is && x.a && x.b && x.off && x.held)
		st = try_tiles(&x, err);
	else
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for rows");
	free(x.own);
	free(x.fine);
	free(x.is);
	free(x.a);
	free(x.b);
	free(x.off);
	free(x.held);
	return st;
}
