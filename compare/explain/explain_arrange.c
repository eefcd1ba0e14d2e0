/* explain_arrange.c: what the operation gives, in another arrangement: times a factor, plus a
 * number, rows or heads or axes in another order, or another checkpoint in its place. */
#include "compare/explain/explain_inside.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHIFT_MAX = 4, HEADS_MAX = 256 };

static double *doubles(const vn_tensor *t)
{
	const size_t n = (size_t)vn_shape_count(&t->shape);
	double *x = malloc((n + 1) * sizeof *x);
	if (x)
		vn_to_f64(x, t->data, t->dtype, n);
	return x;
}

typedef struct arranged {
	vn_trial *t;
	int64_t   n;
	double   *own, *fine, *cand; /* what the operation gives, that more precisely, what is there */
	double   *a, *b;             /* room: the first two arranged */
	const vn_tensor *like;
} arranged;

vn_status vn_try_as_stored(vn_trial *t, double *own, const double *fine, vn_hypothesis *h, vn_error *err)
{
	const vn_shape *s = &vn_probe_candidate(t->probe)->shape;
	const vn_dtype  as = t->c->policy.storage;
	const vn_plan  *plan = vn_probe_plan(t->probe);
	const int       v = vn_plan_root(plan, vn_plan_find(plan, t->c->point[t->x->point].name));

	h->node = plan->value[v].node;
	if (as != VN_F64 && !vn_value_wide(plan, v))
		for (int64_t i = 0; i < vn_shape_count(s); i++) {
			float x = (float)own[i];
			vn_round_f32(&x, as, 1);
			own[i] = (double)x;
		}
	const vn_tensor a = { VN_F64, *s, own }, b = { VN_F64, *s, fine };
	return vn_try_numbers(t, &a, &b, h, err);
}

static vn_status judge(arranged *r, vn_hypothesis *h, vn_error *err)
{
	return vn_try_as_stored(r->t, r->a, r->b, h, err);
}

/* ---- one number ------------------------------------------------------------------------------------- */

/* Is the checkpoint made of heads, or of what they gave? Sizes of heads are no reason for a factor anywhere else. */
static bool about_heads(const vn_trial *t)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const vn_point at = p->value[vn_probe_target(t->probe)].point;
	const char    *axes = vn_probe_axes(t->probe);

	return vn_axes_find(axes, "head") >= 0 || vn_axes_find(axes, "kv_head") >= 0 || at == VN_POINT_ATTN_OUT || at == VN_POINT_C_ATTN;
}

/* Factors that have a name, of the sizes of this model. */
static const char *named(const vn_trial *t, double x, double *exact, char text[80])
{
	const vn_plan *p = vn_probe_plan(t->probe);
	double K = 0, D = 0, group = 0;

	for (int i = 0; about_heads(t) && i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_ATTENTION) {
			K = p->node[i].c.attention.head_dim;
			group = (double)p->node[i].c.attention.heads / p->node[i].c.attention.kv_heads;
			break;
		}
	for (int i = 0; i < p->n_nodes; i++)
		if (p->node[i].op == VN_OP_EMBED)
			D = p->value[p->node[i].out[0]].size[1];
	const struct { double x; const char *name; } known[] = {
		{ 2, "" }, { 0.5, "" }, { 4, "" }, { 0.25, "" }, { 8, "" }, { 0.125, "" }, { -1, "" },
		{ K, "the width of a head" }, { 1 / K, "one over the width of a head" }, { sqrt(K), "the root of the width of a head" },
		{ 1 / sqrt(K), "one over the root of the width of a head" }, { D, "the model's width" }, { 1 / D, "one over the model's width" },
		{ sqrt(D), "the root of the model's width" }, { 1 / sqrt(D), "one over the root of the model's width" },
		{ sqrt(D / K), "the root of the model's width over a head's" }, { sqrt(K / D), "the root of a head's width over the model's" },
		{ group, "the query heads of a key head" }, { 1 / group, "one over the query heads of a key head" },
		{ 127.0 / 128, "127/128" }, { 128.0 / 127, "128/127" }, { 1.0 / (p->layers + 1), "one over the layers and one" },
		{ 1.4142135623730951, "the root of 2" }, { 0.7071067811865476, "one over the root of 2" },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (isfinite(known[i].x) && known[i].x != 1 && fabs(x / known[i].x - 1) < 2e-3) {
			*exact = known[i].x;
			snprintf(text, 80, "%s", known[i].name);
			return text;
		}
	return NULL;
}

/* A factor that is a mistake of its own where it stands: a temperature of the logits, ranks that were added too often or averaged. f: what it
 * is exactly. */
static bool meant(const vn_trial *t, double by, double *f, vn_hypothesis *h)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const vn_point at = p->value[vn_plan_root(p, vn_plan_find(p, t->c->point[t->x->point].name))].point;
	const double   over = 1 / by, plain = vn_three_digits(over), ranks = round(by > 1 ? by : over);

	if (at == VN_POINT_LOGITS && by > 0) {
		const double tau = fabs(over / plain - 1) < 2e-4 ? plain : over;
		*f = 1 / tau;
		snprintf(h->id, sizeof h->id, "M9");
		vn_hypothesis_say(h, "logits at a temperature of %.6g", tau);
		return true;
	}
	if ((at != VN_POINT_ATTN_OUT && at != VN_POINT_DOWN_PROJ) || !(ranks >= 2 && ranks <= 1024) || !(fabs((by > 1 ? by : over) / ranks - 1) < 2e-3))
		return false;
	*f = by > 1 ? ranks : 1 / ranks;
	snprintf(h->id, sizeof h->id, "P16");
	vn_hypothesis_say(h, by > 1 ? "the sum of ranks is taken %.0f times" : "the average of %.0f ranks, not their sum", ranks);
	return true;
}

/* Everything times f. */
static vn_status scaled(arranged *r, double f, vn_hypothesis *h, vn_error *err)
{
	h->made.number = f;
	for (int64_t i = 0; i < r->n; i++) {
		r->a[i] = f * r->own[i];
		r->b[i] = f * r->fine[i];
	}
	return judge(r, h, err);
}

static vn_status factor(arranged *r, vn_error *err)
{
	double xy = 0, xx = 0, exact;
	char   name[80];

	for (int64_t i = 0; i < r->n; i++)
		if (isfinite(r->own[i]) && isfinite(r->cand[i])) {
			xy += r->own[i] * r->cand[i];
			xx += r->own[i] * r->own[i];
		}
	if (!(xx > 0))
		return VN_OK;
	const double by = xy / xx;
	vn_hypothesis own = { 0 };
	vn_status    st = meant(r->t, by, &exact, &own) ? scaled(r, exact, &own, err) : VN_OK;
	if (st || (*own.id && vn_trial_fits(r->t, &own)))
		return st;
	for (int exactly = 1; !st && exactly >= 0; exactly--) {
		vn_hypothesis h = { 0 };
		const char   *what = exactly ? named(r->t, by, &exact, name) : NULL;
		const double  f = what ? exact : by;
		if (exactly && !what)
			continue;
		vn_hypothesis_say(&h, "everything is multiplied by %.6g%s%s", f, what && *what ? ", " : "", what ? what : "");
		if (!(st = scaled(r, f, &h, err)) && what && vn_trial_fits(r->t, &h))
			break; /* a person wrote that, not what was fitted to it */
	}
	return st;
}

static vn_status offset(arranged *r, vn_error *err)
{
	vn_hypothesis h = { 0 };
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
	h.made.number = sum / (double)n;
	vn_hypothesis_say(&h, "%.6g is added to everything", h.made.number);
	return judge(r, &h, err);
}

static vn_status one_value(arranged *r, vn_error *err)
{
	vn_hypothesis h = { 0 };

	for (int64_t i = 0; i < r->n; i++) {
		if (!(r->cand[i] == r->cand[0]))
			return VN_OK;
		r->a[i] = r->b[i] = r->cand[0];
	}
	vn_hypothesis_say(&h, r->cand[0] == 0 ? "all of it is 0: never written" : "all of it is %.6g", r->cand[0]);
	return judge(r, &h, err);
}

/* ---- order --------------------------------------------------------------------------------------------- */

/* Row i is what row from(i) should be, -1: zeros; `outer` blocks of `rows` rows. */
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

/* The row i of the sound one, of those of an axis, that the candidate's row is nearest to. */
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
	int     from[HEADS_MAX], axis = 0;
	int64_t outer = 1;
	bool    moved = false;
	char    list[160] = "";

	for (size_t n; axis < r->like->shape.rank; axis++) {
		const char *word = vn_axes_word(axes, axis, &n);
		if (n >= 4 && strncmp(word + n - 4, "head", 4) == 0)
			break;
		outer *= r->like->shape.dim[axis];
	}
	if (axis >= r->like->shape.rank || r->like->shape.dim[axis] < 2 || r->like->shape.dim[axis] > HEADS_MAX)
		return VN_OK;
	const int64_t H = r->like->shape.dim[axis];
	nearest(r, outer, H, from);
	for (int64_t h = 0; h < H; h++) {
		const size_t used = strlen(list);
		moved = moved || from[h] != h;
		snprintf(list + used, sizeof list - used, "%s%d", h ? " " : "", from[h]);
	}
	if (!moved)
		return VN_OK;
	vn_hypothesis h = { 0 };
	gather(r, outer, H, from);
	vn_hypothesis_say(&h, "heads in another order: %s", list);
	return judge(r, &h, err);
}

/* Rows moved by some: those that come in from nowhere are zero, or the first or last one again. */
static vn_status moved_rows(arranged *r, const char *axes, vn_error *err)
{
	const int64_t T = r->like->shape.dim[0];
	int          *from = malloc((size_t)T * sizeof *from);
	vn_status     st = from ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for rows");

	for (int by = -SHIFT_MAX; !st && T > 2 * SHIFT_MAX && strncmp(axes, "token", 5) == 0 && by <= SHIFT_MAX; by++)
		for (int wrap = 0; !st && by && wrap < 3; wrap++) {
			vn_hypothesis h = { .id = "P14" };
			for (int64_t i = 0; i < T; i++) {
				const int64_t at = i + by;
				from[i] = (int)(at >= 0 && at < T ? at : wrap == 0 ? -1 : wrap == 1 ? (at + T) % T : at < 0 ? 0 : T - 1);
			}
			gather(r, 1, T, from);
			vn_hypothesis_say(&h, "token t has what token t %+d should have", by);
			st = judge(r, &h, err);
		}
	if (!st && T > 2 && strncmp(axes, "token", 5) == 0) {
		vn_hypothesis h = { .id = "P14", .words = "tokens in reverse order" };
		for (int64_t i = 0; i < T; i++)
			from[i] = (int)(T - 1 - i);
		gather(r, 1, T, from);
		st = judge(r, &h, err);
	}
	free(from);
	return st;
}

/* The bytes of the axes in another order under the same shape. */
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

static vn_status turned_axes(arranged *r, const char *axes, vn_error *err)
{
	/* The bytes of an operation that the run went on with are no mistake of the recording. */
	const vn_plan *plan = vn_probe_plan(r->t->probe);
	const bool     joined = plan->node[plan->value[vn_probe_target(r->t->probe)].node].op == VN_OP_ATTENTION;
	static const int orders[][4] = { { 1, 0, 2, 3 }, { 0, 2, 1, 3 }, { 2, 1, 0, 3 }, { 1, 2, 0, 3 }, { 2, 0, 1, 3 } };
	const vn_shape *s = &r->like->shape;
	vn_status st = VN_OK;

	for (size_t i = 0; !st && i < (s->rank == 2 ? 1u : sizeof orders / sizeof *orders); i++) {
		vn_hypothesis h = { .capture = r->t->went == VN_NOT_WENT_ON };
		const bool inside = joined && orders[i][0] == 0 && orders[i][1] == 2;
		char order[80] = "";
		if (s->rank < 2 || s->rank > 3)
			return VN_OK;
		snprintf(h.id, sizeof h.id, "%s", r->t->went != VN_WENT_ON ? "P11" : inside ? "A8" : "");
		permute(s, orders[i], r->own, r->a);
		permute(s, orders[i], r->fine, r->b);
		for (int k = 0; k < s->rank; k++) {
			size_t n;
			const char *word = vn_axes_word(axes, orders[i][k], &n);
			const size_t used = strlen(order);
			snprintf(order + used, sizeof order - used, "%s%.*s", k ? " " : "", (int)n, word);
		}
		vn_hypothesis_say(&h, "its bytes are those of (%s)%s", order, r->t->went == VN_WENT_ON && inside ? ": heads joined innermost, column k H + h" : "");
		st = judge(r, &h, err);
	}
	return st;
}

/* ---- another checkpoint ------------------------------------------------------------------------------------ */

/* Is value v made of `of`, or is it the same by its place: a state that shows it? */
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

/* Bits of another checkpoint tell of the capture where the run went on with other numbers. Where that is not known what
 * this one was copied into says nothing: a cache, or a rotation by nothing. */
static bool may_be_taken_for(const arranged *r, const vn_entry *e)
{
	const vn_plan *p = vn_probe_plan(r->t->probe);
	const int      v = vn_plan_find(p, e->name), me = vn_plan_find(p, r->t->c->point[r->t->x->point].name);
	const int      root = v < 0 ? -1 : vn_plan_root(p, v), mine = vn_plan_root(p, me);

	if (r->t->went == VN_WENT_ON || root == mine)
		return false;
	/* what is made of it in the same layer: further on other numbers have come in */
	return root < 0 || r->t->went == VN_NOT_WENT_ON ? root < 0 || p->value[root].state < 0
	     : p->value[root].layer != p->value[mine].layer || !made_of(p, root, mine);
}

/* Made behind this checkpoint: what overwrote it, not what was left from before. */
static bool comes_later(const arranged *r, const vn_entry *e)
{
	const vn_plan *p = vn_probe_plan(r->t->probe);
	const int      v = vn_plan_find(p, e->name);
	return v >= 0 && p->value[vn_plan_root(p, v)].node > p->value[vn_probe_target(r->t->probe)].node;
}

static vn_status another(arranged *r, vn_error *err)
{
	const vn_comparison *c = r->t->c;
	const vn_tensor     *cand = r->like;
	const vn_entry      *me = vn_recording_entry(c->cand, c->point[r->t->x->point].cand);
	vn_status st = VN_OK;

	for (int i = 0; !st && i < vn_recording_count(c->cand); i++) {
		const vn_entry *e = vn_recording_entry(c->cand, i);
		vn_hypothesis   h = { .capture = true };
		vn_tensor       t;
		if (e->step != me->step || e->dtype != me->dtype || e->same_as >= 0 || strcmp(e->name, me->name) == 0 || e == me
		    || vn_shape_count(&e->shape) != r->n || !may_be_taken_for(r, e))
			continue;
		if ((st = vn_entry_tensor(c->cand, i, &t, err)))
			break;
		if (memcmp(t.data, cand->data, (size_t)r->n * vn_dtype_size(t.dtype)) == 0) {
			memcpy(r->a, r->cand, (size_t)r->n * sizeof *r->a);
			memcpy(r->b, r->cand, (size_t)r->n * sizeof *r->b);
			snprintf(h.id, sizeof h.id, "%s", comes_later(r, e) ? "P7" : "P6");
			vn_hypothesis_say(&h, "another checkpoint is recorded, bit for bit");
			snprintf(h.holds, sizeof h.holds, "%s", e->name);
			vn_text_clean(h.holds, sizeof h.holds);
			st = judge(r, &h, err);
		}
		vn_recording_release(c->cand, i);
	}
	return st;
}

vn_status vn_try_arrangements(vn_trial *t, const vn_tensor *own, const vn_tensor *fine, vn_error *err)
{
	const vn_tensor *c = vn_probe_candidate(t->probe);
	const char      *axes = vn_probe_axes(t->probe);
	arranged r = { t, vn_shape_count(&c->shape), doubles(own), doubles(fine), doubles(c), doubles(own), doubles(own), c };
	vn_status st = r.own && r.fine && r.cand && r.a && r.b ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for arrangements");

	if (!st)
		st = one_value(&r, err);
	if (!st && !vn_trial_answered(t) && !(st = factor(&r, err)) && !(st = vn_fit_cap(t, r.own, r.fine, r.cand, r.n, err)) && !(st = offset(&r, err)) && !(st = heads(&r, axes, err)) &&
	    !(st = moved_rows(&r, axes, err)) && !(st = turned_axes(&r, axes, err)))
		st = another(&r, err);
	free(r.own);
	free(r.fine);
	free(r.cand);
	free(r.a);
	free(r.b);
	return st;
}
