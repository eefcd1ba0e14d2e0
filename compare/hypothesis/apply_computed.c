/* apply_computed.c: see apply_computed.h. */
#include "compare/hypothesis/apply_computed.h"
#include "compare/hypothesis/attend.h"
#include "compare/hypothesis/edit_matrix.h"
#include "compare/hypothesis/trial.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- attention ------------------------------------------------------------------------------- */

/* Attention is computed here, in double, from everything that it read. */
vn_status vn_apply_attend(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_attend_edit *edit = &h->change.attend;
	bool                  makes;
	vn_attend_trial       a;
	vn_status             st = vn_attend_open(&a, t, h->node, &makes, err);

	if (st || !makes)
		return st;
	const int64_t width = vn_attend_width(&a), H = a.n->c.attention.heads,
				  T = vn_shape_count(&t->site->cand.shape) / (width * H);
	double *y = malloc((size_t)(width * H) * sizeof *y + 1), *is = malloc((size_t)(width * H) * sizeof *is + 1);
	if (!y || !is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for attention");
	else if (vn_attend_applies(&a, edit) && !(st = vn_attend_prepare(&a, edit, err)) &&
	         !(st = vn_made_room(t, made, err))) {
		double *all = (double *)made->fine.data;
		for (int64_t row = 0; row < T; row++) {
			for (int head = 0; head < (int)H; head++)
				vn_tensor_numbers(&t->site->cand, vn_attend_at(&a, T, row, head), width, is + head * width);
			vn_attend_row(&a, edit, t->site->first + row, is, y);
			for (int head = 0; head < (int)H; head++)
				memcpy(all + vn_attend_at(&a, T, row, head), y + head * width, (size_t)width * sizeof *y);
		}
		vn_made_round(t, made);
	}
	free(y);
	free(is);
	vn_attend_close(&a);
	return st;
}

/* ---- a rotation ------------------------------------------------------------------------------ */

/* The position by which the token at position `at` is rotated. */
static double map_position(const vn_position_map *m, int64_t at)
{
	const double p = m->times * (double)at + m->plus;

	return at < m->first || (at > m->last && !m->open) ? (double)at : m->whole ? floor(p) : p;
}

/* The angle of pair i at position `at`, which may be a fraction, for a frequency of 1. */
static double angle_at(const vn_rope_experiment *e, int64_t i, double at)
{
	const double low = floor(at), p = (double)vn_rope_angle(e, 1.0f, i, 0, (int64_t)low);

	return at == low ? p : p + (at - low) * ((double)vn_rope_angle(e, 1.0f, i, 0, (int64_t)low + 1) - p);
}

/* The sine and cosine of pair i at that position. */
static void table_at(const vn_rope_experiment *experiment, const vn_rotate_edit *e, float frequency, float factor,
                     int64_t i, double at, double *c, double *s)
{
	const double p = vn_in_format(angle_at(experiment, i, at), e->positions);
	const float  f = (float)vn_in_format((double)frequency, e->frequencies);
	const double angle = vn_in_format((double)((float)p * f), e->angles);
	const double cosine = vn_in_format(cos(angle) * (double)factor, e->table),
				 sine = vn_in_format(sin(angle) * (double)factor, e->table);

	*c = e->exchanged ? sine : cosine;
	*s = e->exchanged ? cosine : sine;
}

bool vn_rotate_rows(const vn_plan *p, const vn_node *n, const vn_rotate_edit *edit, const int32_t *ids,
                    const int64_t *begins, const double *x, int64_t first, int64_t T, int64_t S, int64_t H, int64_t K,
                    double *y)
{
	const vn_rope            *r = &n->c.rope.rope;
	const vn_rope_experiment *experiment = vn_node_rope_experiment(n);
	const int64_t             half = r->rotary_dim / 2;
	float                    *f = malloc((size_t)half * sizeof *f + 1), factor = 1;

	if (!f)
		return false;
	vn_rope_frequencies(r, p->list, S, f, &factor);
	memcpy(y, x, (size_t)(T * H * K) * sizeof *y);
	for (int64_t t = 0; t < T; t++) {
		const int64_t from = edit->call ? vn_trial_call_of(begins, edit->call, first + t) : -1;
		const double  at = edit->by_ids  ? (double)ids[t]
		                   : edit->moved ? map_position(&edit->map, first + t)
		                                 : (double)(first + t - (from > 0 ? from : 0));
		for (int64_t i = 0; i < half; i++) {
			double  c, s;
			int64_t j, k;
			table_at(experiment, edit, f[i], factor, i, at, &c, &s);
			vn_rope_pair(r, experiment, K, i, &j, &k);
			for (int64_t h = 0; h < H; h++) {
				const double *xh = x + (t * H + h) * K;
				double       *yh = y + (t * H + h) * K;
				yh[j] = xh[j] * c - xh[k] * s;
				yh[k] = xh[k] * c + xh[j] * s;
			}
		}
	}
	free(f);
	return true;
}

/* Does the edit change any row of the checkpoint? */
static bool moves_some(const vn_explain_trial *t, const vn_rotate_edit *e, bool later)
{
	return e->moved ? e->map.first < t->site->first + t->site->cand.shape.dim[0] &&
	                      (e->map.open || e->map.last >= t->site->first)
	                : e->call != VN_OWN_CALLS || later;
}

vn_status vn_apply_rotation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[h->node];
	const vn_shape s = t->site->cand.shape;
	const int32_t *ids;
	vn_tensor      in;
	vn_status      st;

	if (n->op != VN_OP_ROPE || n->out[0] != t->site->target || s.rank != 3)
		return VN_OK;
	if (vn_recording_tokens(t->c->opened.cand, &ids, NULL) < t->site->first + s.dim[0])
		return VN_OK;
	bool     later;
	int64_t *begins = vn_trial_own_calls(t, &later);
	st = begins ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %lld tokens", (long long)t->site->tokens);
	if (st || !moves_some(t, &h->change.rotate, later) ||
	    (st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &in, err)) || (st = vn_made_room(t, made, err))) {
		free(begins);
		return st;
	}
	const int64_t row = s.dim[1] * s.dim[2];
	double       *x = vn_trial_doubles_of(&in, t->site->first * row, s.dim[0] * row);
	if (!x || !vn_rotate_rows(p, n, &h->change.rotate, ids + t->site->first, begins, x, t->site->first, s.dim[0],
	                          t->site->tokens, s.dim[1], s.dim[2], (double *)made->fine.data))
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a rotation");
	else
		vn_made_round(t, made);
	free(x);
	free(begins);
	return st;
}

/* ---- an activation --------------------------------------------------------------------------- */

static double sigmoid(double x)
{
	return 1 / (1 + exp(-x));
}

static double softplus(double x)
{
	return x > 30 ? x : log1p(exp(x));
}

/* clang-format off */
enum {
	SIGMOID, TANH, SOFTPLUS, MISH, ELU, SELU, LEAKY_RELU, RELU6, SQUARED_RELU, HARD_SIGMOID, HARD_SWISH, SOFTSIGN, EXP,
	N_ACTIVATIONS
};

static const char *const names[N_ACTIVATIONS] = {
	[SIGMOID] = "sigmoid", [TANH] = "tanh", [SOFTPLUS] = "softplus", [MISH] = "mish", [ELU] = "elu", [SELU] = "selu",
	[LEAKY_RELU] = "leaky relu (0.01)", [RELU6] = "relu6", [SQUARED_RELU] = "squared relu",
	[HARD_SIGMOID] = "hard sigmoid", [HARD_SWISH] = "hard swish", [SOFTSIGN] = "softsign", [EXP] = "exp",
};
/* clang-format on */

static double activate(int which, double x)
{
	switch (which) {
	case SIGMOID: return sigmoid(x);
	case TANH: return tanh(x);
	case SOFTPLUS: return softplus(x);
	case MISH: return x * tanh(softplus(x));
	case ELU: return x > 0 ? x : expm1(x);
	case SELU: return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * expm1(x));
	case LEAKY_RELU: return x > 0 ? x : 0.01 * x;
	case RELU6: return fmin(fmax(x, 0), 6);
	case SQUARED_RELU: return x > 0 ? x * x : 0;
	case HARD_SIGMOID: return fmin(fmax(x / 6 + 0.5, 0), 1);
	case HARD_SWISH: return x * fmin(fmax(x / 6 + 0.5, 0), 1);
	case SOFTSIGN: return x / (1 + fabs(x));
	case EXP: return exp(x);
	default: assert(0);
	}
	return (double)NAN;
}

int vn_n_activations(void)
{
	return N_ACTIVATIONS;
}

const char *vn_activation_name(int which)
{
	return names[which];
}

bool vn_activation_is_known(const vn_explain_trial *t)
{
	const vn_plan *p = t->site->plan;
	const vn_node *n = &p->node[vn_trial_node(t)];

	/* Other activations and gates exist only as faults: a cap or a format. */
	return (n->op == VN_OP_GATED || n->op == VN_OP_ACT) && n->c.act.act <= VN_QUICK_GELU &&
	       (n->op == VN_OP_ACT || n->x.act.form == VN_GATE_USUAL) && n->out[0] == t->site->target;
}

vn_status vn_activation_make(const vn_explain_trial *t, int which, int64_t n, int64_t stride, double *y, vn_error *err)
{
	const vn_tensor *cand = &t->site->cand;
	vn_tensor        gate, up = { 0 };
	vn_status        st;

	if (!vn_activation_is_known(t) || cand->shape.rank < 2)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "not an activation");
	const bool    gated = t->site->plan->node[vn_trial_node(t)].op == VN_OP_GATED;
	const int64_t first = t->site->first * (vn_shape_count(&cand->shape) / cand->shape.dim[0]);
	if ((st = vn_recompute_input(t->recompute, 0, VN_FINE_WIDTH, &gate, err)) ||
	    (gated && (st = vn_recompute_input(t->recompute, 1, VN_FINE_WIDTH, &up, err))))
		return st;
	for (int64_t i = 0; i < n; i++)
		y[i] = activate(which, vn_tensor_number(&gate, first + i * stride)) *
		       (gated ? vn_tensor_number(&up, first + i * stride) : 1);
	return VN_OK;
}

vn_status vn_apply_activation(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	const int64_t n = vn_shape_count(&t->site->cand.shape);
	vn_error      none = { "" };
	vn_status     st = vn_made_room(t, made, err);

	if (st)
		return st;
	if (!(st = vn_activation_make(t, h->change.activation, n, 1, (double *)made->fine.data, &none)))
		vn_made_round(t, made);
	else
		vn_made_finish(made);
	return vn_unless_unsupported(st, &none, err);
}

/* ---- a narrower format ----------------------------------------------------------------------- */

enum { OFF_BY_ONE_IN = 4 }; /* at most one number in 4 may differ by one last place */

/* The distance between numbers of the format near x. */
static double last_place(double x, vn_rounding_format format)
{
	int e;

	frexp(x, &e);
	return ldexp(1, format == VN_FORMAT_BF16 ? e - 8 : (e < -13 ? -13 : e) - 11);
}

/* How far two engines that sum in float32 may be apart before they round, in a sum that nearly
 * cancels: a few times the largest difference between the operation in float32 and in float64. The
 * numbers of an operation in 16 bits do not show that difference: there, a few roundings to float32
 * of the largest number. */
static double cancelled_error(const vn_explain_trial *t)
{
	enum { TIMES = 4 };
	const vn_dtype storage = t->c->opened.policy.storage;
	const int64_t  n = storage == VN_F64 ? 0 : vn_shape_count(&t->own.shape);
	double         most = 0;

	for (int64_t i = 0; i < n; i++) {
		const double x = vn_tensor_number(&t->own, i);
		most = fmax(most, storage == VN_F32 ? fabs(x - vn_tensor_number(&t->fine, i)) : ldexp(fabs(x), -24));
	}
	return isfinite(most) ? TIMES * most : 0;
}

/* *off as in vn_narrow_make. */
static void settle_ties(const double *is, vn_rounding_format format, int64_t n, double slack, double *y, int64_t *off)
{
	*off = 0;
	for (int64_t i = 0; i < n && *off >= 0; i++) {
		if (is[i] == y[i])
			continue;
		*off = fabs(is[i] - y[i]) <= last_place(fmax(fabs(is[i]), fabs(y[i])), format) + slack ? *off + 1 : -1;
	}
	*off = *off > n / OFF_BY_ONE_IN ? -1 : *off;
	for (int64_t i = 0; *off > 0 && i < n; i++)
		y[i] = is[i];
}

vn_status vn_narrow_make(const vn_explain_trial *t, const vn_narrow_edit *edit, double *y, int64_t *off, vn_error *err)
{
	const vn_tensor      *cand = &t->site->cand;
	const int64_t         n = vn_shape_count(&cand->shape);
	const vn_recompute_as as = edit->format == VN_FORMAT_BF16 ? VN_IN_BF16 : VN_IN_F16;
	vn_tensor             z = t->own;
	vn_status             st = VN_OK;

	if (edit->whole && (st = vn_recompute_run(t->recompute, t->site->plan, t->site->weights, as, &z, err)))
		return st;
	double *is = vn_trial_all_doubles_of(cand);
	if (!is)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %lld numbers", (long long)n);
	else {
		vn_tensor_numbers(&z, 0, n, y);
		for (int64_t i = 0; i < n; i++)
			y[i] = vn_in_format(y[i], edit->format);
		settle_ties(is, edit->format, n, cancelled_error(t), y, off);
	}
	free(is);
	if (edit->whole)
		vn_tensor_free(&z);
	return st;
}

vn_status vn_apply_narrow(const vn_explain_trial *t, const vn_hypothesis *h, vn_made *made, vn_error *err)
{
	vn_error  none = { "" };
	int64_t   off;
	vn_status st = vn_made_room(t, made, err);

	if (st)
		return st;
	if ((st = vn_narrow_make(t, &h->change.narrow, (double *)made->own.data, &off, &none)) == VN_OK)
		memcpy((double *)made->fine.data, made->own.data, (size_t)vn_shape_count(&made->own.shape) * sizeof(double));
	else
		vn_made_finish(made);
	return vn_unless_unsupported(st, &none, err);
}
