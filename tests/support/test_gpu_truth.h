/* test_gpu_truth.h: the expected result of every operation, by loops in double over the inputs that
 * the device itself stored. It calls no engine's arithmetic. */
#pragma once

#include "tests/support/test_gpu_help.h"

static const float *weight_of(const model *m, int w)
{
	return m->weight[w].data;
}

/* x in a format whose smallest normal is 2^least and whose numbers have so many digits behind the
 * first. */
static double in_steps(double x, int least, int digits, double (*round)(double))
{
	int exponent;

	frexp(x, &exponent);
	const double step = ldexp(1.0, (exponent - 1 > least ? exponent - 1 : least) - digits);
	return round(x / step) * step;
}

static double activation(vn_act act, double x)
{
	switch (act) {
	case VN_GELU: return 0.5 * x * erfc(-x / sqrt(2.0));
	case VN_GELU_TANH: return 0.5 * x * (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
	case VN_SIGMOID: return 1.0 / (1.0 + exp(-x));
	case VN_RELU: return x > 0.0 ? x : 0.0;
	case VN_QUICK_GELU: return x / (1.0 + exp(-1.702 * x));
	case VN_IDENTITY: return x;
	case VN_TWO_SIGMOID: return 2.0 / (1.0 + exp(-x));
	case VN_SOFT_CAP: return 30.0 * tanh(x / 30.0);
	case VN_AS_F16:
	case VN_AS_F16_SATURATED: /* no test makes infinities of what a half can hold */
		return in_steps(x, -14, 10, nearbyint);
	case VN_AS_F16_FLUSHED:
		return fabs(in_steps(x, -14, 10, nearbyint)) < 0x1p-14 ? 0.0 : in_steps(x, -14, 10, nearbyint);
	case VN_AS_F16_CUT: return in_steps(x, -14, 10, trunc);
	case VN_AS_BF16_CUT: return in_steps(x, -126, 7, trunc);
	default: return x / (1.0 + exp(-x));
	}
}

/* The factor by which an activation enlarges an error of its exponential's argument. */
static double steepness(vn_act act, double x)
{
	if (act == VN_QUICK_GELU)
		return 1.702 * fabs(x);
	return act == VN_GELU_TANH ? 1.6 * (fabs(x) + 0.045 * pow(fabs(x), 3)) : 0.0;
}

/* s[j] of query row i (of the whole sequence) and head h; returns the largest
 * sum of magnitudes that went into one. */
static double scores_of(const vn_node *n, const kept *q, const kept *k, int64_t i, int64_t h, int64_t S, double *s)
{
	double        most = 0.0;
	const int64_t H = n->c.attention.heads, G = n->c.attention.kv_heads, K = n->c.attention.head_dim;
	for (int64_t j = 0; j < S; j++) {
		double size = s[j] = 0.0;
		for (int64_t d = 0; d < K; d++) {
			const double p = (double)q->x[(i * H + h) * K + d] * (double)k->x[(j * G + h / (H / G)) * K + d];
			s[j] += p;
			size += fabs(p);
		}
		s[j] *= n->c.attention.scale;
		most = fmax(most, size * n->c.attention.scale);
	}
	return most;
}

static void probs_of(const model *m, const vn_node *n, int64_t i, int64_t h, int64_t S, double *s)
{
	const int64_t W = n->c.attention.window;
	const double  sink = n->w[VN_ATTN_SINKS] < 0 ? -INFINITY : (double)weight_of(m, n->w[VN_ATTN_SINKS])[h];
	double        top = sink, sum = 0.0;
	for (int64_t j = 0; j < S; j++) {
		if (j > i || (W && j <= i - W) || (j < n->c.attention.first && j != i))
			s[j] = -INFINITY;
		top = s[j] > top ? s[j] : top;
	}
	for (int64_t j = 0; j < S; j++)
		sum += s[j] = exp(s[j] - top);
	sum += exp(sink - top);
	for (int64_t j = 0; j < S; j++)
		s[j] /= sum;
}

/* ---- experts ------------------------------------------------------------------------ */

/* The column that `s` others of a row are before. */
static int64_t column_at(const float *x, int64_t E, int64_t s)
{
	for (int64_t e = 0; e < E; e++) {
		int64_t before = 0;
		for (int64_t i = 0; i < E; i++) {
			const bool larger = isnan(x[i]) ? !isnan(x[e]) : x[i] > x[e];
			before += larger || (i < e && (x[i] == x[e] || (isnan(x[i]) && isnan(x[e]))));
		}
		if (before == s)
			return e;
	}
	return -1;
}

/* What top_k compares of a row x (E), into s (E): of two groups, the one with the larger sum of its
 * `best` numbers is before. */
static void scored_of(const model *m, const vn_node *n, const float *x, float *s)
{
	const int64_t E = n->c.top_k.columns, groups = n->c.top_k.groups, of = groups ? E / groups : E;
	float         sums[64] = { 0 };
	bool          used[64] = { false };

	for (int64_t e = 0; e < E; e++)
		s[e] = n->c.top_k.sigmoid ? (float)(1.0 / (1.0 + exp(-(double)x[e]))) : x[e];
	for (int64_t e = 0; e < E && n->w[VN_ROUTER_BIAS] >= 0; e++)
		s[e] += weight_of(m, n->w[VN_ROUTER_BIAS])[e];
	for (int64_t g = 0; g < groups; g++)
		for (int i = 0; i < n->c.top_k.best; i++)
			sums[g] += s[g * of + column_at(s + g * of, of, i)];
	for (int i = 0; i < n->c.top_k.groups_used; i++)
		used[column_at(sums, groups, i)] = true;
	for (int64_t e = 0; e < E && groups; e++)
		s[e] = used[e / of] ? s[e] : -INFINITY;
}

/* The softmax of the chosen columns, or their sigmoids, normalised or not. */
static void weights_of(const float *x, const float *ids, const vn_consts *c, int64_t k, double *y, double *size)
{
	const int64_t E = c->route.columns;
	const bool    normalised = c->route.normalised;
	double        top = -INFINITY, sum = 0.0;

	for (int64_t e = 0; e < E; e++)
		top = fmax(top, (double)x[e]);
	for (int64_t s = 0; s < k; s++) {
		const double u = (double)x[(int64_t)ids[s]];
		sum += y[s] = c->route.sigmoid ? 1.0 / (1.0 + exp(-u)) : exp(u - top);
	}
	for (int64_t e = 0; e < E && !normalised; e++)
		sum = (e ? sum : 0.0) + exp((double)x[e] - top);
	if (!normalised && c->route.sigmoid)
		sum = 1.0;
	for (int64_t s = 0; s < k; s++)
		size[s] = y[s] = y[s] / sum * (c->route.scale > 0 ? c->route.scale : 1.0);
}

/* A number that is known to `off`, as an engine may have stored it; *off: the same of what it
 * stored. */
static double stored_in(vn_policy policy, double x, double *off)
{
	if (policy.storage != VN_F16)
		return x;
	const double low = in_steps(x - *off, -14, 10, nearbyint), high = in_steps(x + *off, -14, 10, nearbyint);
	*off = high - low;
	return in_steps(x, -14, 10, nearbyint);
}

/* Row `row` of w times x (N), whose numbers are known to off (N). unit: the error of a sum relative
 * to the sum of magnitudes. */
static double dot_of(const float *w, int64_t row, const double *x, const double *off, int64_t N, double unit,
                     double *error)
{
	double sum = 0.0;

	*error = 0.0;
	for (int64_t d = 0; d < N; d++) {
		const double p = (double)w[row * N + d] * x[d];
		sum += p;
		*error += unit * fabs(p) + fabs((double)w[row * N + d]) * (off ? off[d] : 0.0);
	}
	return sum;
}

/* Adds the bias of expert e's weight of a kind, if there is one. */
static double with_bias(const model *m, const vn_node *n, int kind, int64_t e, int64_t row, double sum, double *error)
{
	const int    w = n->w[VN_EXPERT_KINDS + kind];
	const double bias = w < 0 ? 0.0 : (double)weight_of(m, w + (int)e)[row];

	*error += 1.5e-6 * fabs(bias);
	return sum + bias;
}

/* What expert e makes of x (D): y and its error (D). */
static void expert_of(const model *m, const vn_node *n, int64_t e, const double *x, vn_policy policy, double *y,
                      double *error)
{
	const vn_shape *s = &m->plan->weight[n->w[VN_EXPERT_GATE]].shape;
	const int64_t   F = s->dim[0], D = s->dim[1];
	const bool      half = policy.sums == VN_F16;
	const double    of_D = half ? 4.9e-4 * (2.0 + sqrt((double)D)) : 1.5e-6,
				 of_F = half ? 4.9e-4 * (2.0 + sqrt((double)F)) : 1.5e-6;
	double *a = malloc((size_t)F * sizeof *a), *off = malloc((size_t)F * sizeof *off);

	for (int64_t f = 0; f < F; f++) {
		double of_gate, of_up;
		double gate = dot_of(weight_of(m, n->w[VN_EXPERT_GATE] + (int)e), f, x, NULL, D, of_D, &of_gate);
		double up = dot_of(weight_of(m, n->w[VN_EXPERT_UP] + (int)e), f, x, NULL, D, of_D, &of_up);
		gate = with_bias(m, n, VN_EXPERT_GATE, e, f, gate, &of_gate);
		up = with_bias(m, n, VN_EXPERT_UP, e, f, up, &of_up);
		const double most = n->c.experts.limit > 0 ? n->c.experts.limit : INFINITY;
		const double g = fmin(stored_in(policy, gate, &of_gate), most);
		const double u = fmax(fmin(stored_in(policy, up, &of_up), most), -most) + n->c.experts.shift;
		const double act = activation(n->c.experts.act, g);
		/* no activation is steeper than 1.2 */
		off[f] = 1.2 * of_gate * (fabs(u) + of_up) + fabs(act) * of_up + 1.5e-6 * fabs(act * u);
		a[f] = stored_in(policy, act * u, &off[f]);
	}
	for (int64_t d = 0; d < D; d++) {
		y[d] = dot_of(weight_of(m, n->w[VN_EXPERT_DOWN] + (int)e), d, a, off, F, of_F, &error[d]);
		y[d] = with_bias(m, n, VN_EXPERT_DOWN, e, d, y[d], &error[d]);
	}
	free(off);
	free(a);
}

/* Row `row` of what experts make: y and its error. Of an id that is no expert's, 0. */
static void experts_truth(const model *m, const keep *k, const vn_node *n, vn_policy policy, int64_t row, double *y,
                          double *error)
{
	const int64_t D = vn_value_row(&m->plan->value[n->in[VN_EXPERTS_X]]),
				  slots = vn_value_row(&m->plan->value[n->in[VN_EXPERTS_IDS]]);
	double *x = malloc((size_t)D * sizeof *x);

	for (int64_t d = 0; d < D; d++)
		x[d] = (double)k->v[n->in[VN_EXPERTS_X]].x[row * D + d];
	for (int64_t s = 0; s < slots; s++) {
		const float id = k->v[n->in[VN_EXPERTS_IDS]].x[row * slots + s];
		if (id >= 0 && id < (float)n->c.experts.experts)
			expert_of(m, n, (int64_t)id, x, policy, y + s * D, error + s * D);
		else
			for (int64_t d = 0; d < D; d++)
				y[s * D + d] = error[s * D + d] = 0.0;
	}
	free(x);
}

/* Row `row` (of the whole sequence of S tokens; for scores and probabilities of
 * head `head`) of a value: y, and size: the sum of the magnitudes that went
 * into each element, which is what rounding errors are relative to. */
static void truth(const model *m, const keep *k, int value, const int32_t *ids, int64_t S, int64_t head, int64_t row,
                  double *y, double *size)
{
	const vn_value *v = &m->plan->value[value];
	const vn_node  *n = &m->plan->node[v->node];
	const int64_t   width = vn_value_row(v);
	const kept     *a = n->n_in > 0 ? &k->v[n->in[0]] : NULL, *b = n->n_in > 1 ? &k->v[n->in[1]] : NULL;

	if (n->op == VN_OP_EMBED) {
		for (int64_t d = 0; d < width; d++)
			size[d] = fabs(y[d] = (double)weight_of(m, n->w[0])[ids[row] * width + d]);
	} else if (n->op == VN_OP_POSITIONS) {
		for (int64_t d = 0; d < width; d++)
			size[d] = fabs(y[d] = (double)weight_of(m, n->w[0])[row * width + d]);
	} else if (n->op == VN_OP_SLICE) {
		const int64_t in = vn_value_row(&m->plan->value[n->in[0]]);
		for (int64_t e = 0; e < width; e++)
			size[e] = fabs(y[e] = (double)a->x[row * in + e / n->c.slice.width * n->c.slice.stride + n->c.slice.from +
			                                   e % n->c.slice.width]);
	} else if (n->op == VN_OP_JOIN) {
		const int64_t A = n->c.join.width, K = v->size[v->rank - 1], share = n->c.join.heads / n->c.join.shared;
		for (int64_t e = 0; e < width; e++) {
			const int64_t h = row * n->c.join.heads + e / K, d = e % K;
			size[e] = fabs(y[e] = (double)(d < A ? a->x[h * A + d] : b->x[h / share * (K - A) + d - A]));
		}
	} else if (n->op == VN_OP_DELAY) {
		for (int64_t e = 0; e < width; e++)
			size[e] = fabs(y[e] = row ? (double)a->x[(row - 1) * width + e] : 0.0);
	} else if (n->op == VN_OP_LAYER_NORM) {
		const int64_t N = v->size[v->rank - 1];
		for (int64_t g = 0; g < width; g += N) {
			const float *x = a->x + row * width + g;
			double       mean = 0.0, var = 0.0, most = 0.0;
			for (int64_t d = 0; d < N; d++) {
				mean += (double)x[d] / (double)N;
				most = fmax(most, fabs((double)x[d]));
			}
			for (int64_t d = 0; d < N; d++)
				var += pow((double)x[d] - mean, 2) / (double)N;
			for (int64_t d = 0; d < N; d++) {
				const double w = (double)weight_of(m, n->w[0])[d],
							 plus = n->w[1] < 0 ? 0.0 : (double)weight_of(m, n->w[1])[d];
				const double root = sqrt(var + n->c.norm.eps);
				y[g + d] = w * ((double)x[d] - mean) / root + plus;
				size[g + d] = fabs(w) * most / root + fabs(plus);
			}
		}
	} else if (n->op == VN_OP_RMS_NORM) {
		const int64_t N = vn_shape_count(&m->plan->weight[n->w[0]].shape); /* a head, or all of a token */
		for (int64_t g = 0; g < width; g += N) {
			double ss = 0.0;
			for (int64_t d = 0; d < N; d++)
				ss += pow((double)a->x[row * width + g + d], 2);
			for (int64_t d = 0; d < N; d++)
				size[g + d] = fabs(y[g + d] = (double)weight_of(m, n->w[0])[d] * (double)a->x[row * width + g + d] /
				                              sqrt(ss / (double)N + n->c.norm.eps));
		}
	} else if (n->op == VN_OP_LINEAR) {
		const int64_t N = vn_value_row(&m->plan->value[n->in[0]]), over = n->c.linear.transposed;
		for (int64_t o = 0; o < width; o++) {
			const double bias = n->n_w > 1 && n->w[1] >= 0 ? (double)weight_of(m, n->w[1])[o] : 0.0;
			y[o] = bias;
			size[o] = fabs(bias);
			for (int64_t d = 0; d < N; d++) {
				const double p = (double)a->x[row * N + d] *
				                 (double)weight_of(m, n->w[0])[over ? d * width + o : o * N + d];
				y[o] += p;
				size[o] += fabs(p);
			}
		}
	} else if (n->op == VN_OP_ROPE) {
		const int64_t K = v->size[2], R = n->c.rope.rope.rotary_dim, first = n->c.rope.rope.first;
		const int     pairs = n->c.rope.rope.pairs;
		float         freq[256], factor;
		vn_rope_frequencies(&n->c.rope.rope, m->plan->list, S, freq, &factor);
		for (int64_t e = 0; e < width; e++) {
			const float  *x = a->x + row * width + e / K * K + first;
			const int64_t d = e % K - first, i = pairs == VN_PAIR_NEIGHBOURS ? d / 2 : d % (R / 2);
			const bool    low = pairs == VN_PAIR_NEIGHBOURS ? d % 2 == 0 : d < R / 2;
			if (d < 0 || d >= R) {
				size[e] = fabs(y[e] = (double)x[d]);
				continue;
			}
			const double angle = (double)(freq[i] * (float)row);
			const double lo = (double)x[pairs ? 2 * i : i], hi = (double)x[pairs ? 2 * i + 1 : i + R / 2];
			const double c = cos(angle) * (double)factor, s = sin(angle) * (double)factor;
			y[e] = low ? lo * c - hi * s : hi * c + lo * s;
			size[e] = fabs(lo) + fabs(hi);
		}
	} else if (n->op == VN_OP_ATTENTION) {
		double       *s = malloc((size_t)S * sizeof *s);
		const int64_t H = n->c.attention.heads, G = n->c.attention.kv_heads, U = vn_attention_value_dim(&n->c);
		if (v->slot != VN_ATTN_CONTEXT) {
			const double most = scores_of(n, a, b, row, head, S, y);
			if (v->slot == VN_ATTN_PROBS)
				probs_of(m, n, row, head, S, y);
			for (int64_t j = 0; j < S; j++)
				size[j] = v->slot == VN_ATTN_PROBS ? y[j] * (2.0 + most) : most;
		} else {
			for (int64_t h = 0; h < H; h++) {
				const double most = scores_of(n, a, b, row, h, S, s);
				probs_of(m, n, row, h, S, s);
				for (int64_t d = 0; d < U; d++) {
					y[h * U + d] = size[h * U + d] = 0.0;
					for (int64_t j = 0; j < S; j++) {
						const double p = s[j] * (double)k->v[n->in[VN_ATTN_V]].x[(j * G + h / (H / G)) * U + d];
						y[h * U + d] += p;
						size[h * U + d] += (2.0 + most) * fabs(p); /* exp passes a score's own error on */
					}
				}
			}
		}
		free(s);
	} else if (n->op == VN_OP_TOP_K) {
		const int64_t E = n->c.top_k.columns;
		float        *scored = malloc((size_t)E * sizeof *scored);
		scored_of(m, n, a->x + row * E, scored);
		for (int64_t s = 0; s < width; s++) {
			y[s] = (double)column_at(scored, E, s);
			size[s] = 0.0;
		}
		free(scored);
	} else if (n->op == VN_OP_ROUTE) {
		weights_of(a->x + row * n->c.route.columns, b->x + row * width, &n->c, width, y, size);
	} else if (n->op == VN_OP_COMBINE) {
		const int64_t slots = n->c.combine.slots;
		for (int64_t d = 0; d < width; d++) {
			y[d] = size[d] = 0.0;
			for (int64_t s = row * slots; s < (row + 1) * slots; s++) {
				y[d] += (double)b->x[s] * (double)a->x[s * width + d];
				size[d] += fabs((double)b->x[s] * (double)a->x[s * width + d]);
			}
		}
	} else {
		for (int64_t e = 0; e < width; e++) {
			const double p = (double)a->x[row * width + e], q = b ? (double)b->x[row * width + e] : 0.0;
			const double f = n->op == VN_OP_ADD ? 0.0 : activation(n->c.act.act, p);
			y[e] = n->op == VN_OP_ACT ? f : n->op == VN_OP_GATED ? f * q : p + q;
			size[e] = n->op == VN_OP_ADD ? fabs(y[e]) + fabs(p) : fabs(y[e]) * (1.0 + steepness(n->c.act.act, p));
		}
	}
}

/* Checks that a cache of S tokens holds its node's inputs, row by row and to the bit. */
static int64_t wrong_cache(const model *m, const keep *k, int value, int64_t S)
{
	const vn_value *v = &m->plan->value[value];
	const vn_node  *n = &m->plan->node[v->node];
	const bool      delay = n->op == VN_OP_DELAY; /* keeps the last row */
	const kept     *in = &k->v[n->in[delay ? 0 : m->plan->state[v->state].input]];
	const size_t    count = (size_t)((delay ? 1 : S) * vn_value_row(v));

	if (delay && k->v[value].n >= count && in->n >= count &&
	    memcmp(k->v[value].x + k->v[value].n - count, in->x + in->n - count, count * sizeof(float)) == 0)
		return 0;
	if (!delay && k->v[value].n == count && in->n == count && memcmp(k->v[value].x, in->x, count * sizeof(float)) == 0)
		return 0;
	printf("\n  %s of %lld tokens is not what was written to it\n", v->name, (long long)S);
	return 1;
}

/* Elements of the last `tokens` rows of a value that are off the truth by more
 * than the format and the order of sums explain. The first is printed. */
static int64_t wrong(const model *m, const keep *k, int value, vn_policy policy, const int32_t *ids, int64_t past,
                     int64_t tokens)
{
	const vn_value *v = &m->plan->value[value];
	if (v->state >= 0)
		return wrong_cache(m, k, value, past + tokens);
	const bool    keyed = v->size[v->rank - 1] == VN_S, wide = vn_value_wide(m->plan, value);
	const int64_t S = past + tokens, heads = keyed ? v->size[0] : 1, width = keyed ? S : vn_value_row(v);
	const vn_op   op = m->plan->node[v->node].op;
	double       *y = malloc((size_t)width * sizeof *y), *size = malloc((size_t)width * sizeof *size);
	int64_t       bad = 0;
	/* A float sum of N terms in order is off by about sqrt(N)/2 units of its size, a half one
	 * likewise. */
	double        unit = 1.5e-6;

	if (op == VN_OP_LINEAR && policy.sums == VN_F16)
		unit = 4.9e-4 * (2.0 + sqrt((double)vn_value_row(&m->plan->value[m->plan->node[v->node].in[0]])));
	for (int64_t h = 0; h < heads; h++)
		for (int64_t t = 0; t < tokens; t++) {
			const float *got = keyed ? k->v[value].x + (h * tokens + t) * S : k->v[value].x + (past + t) * width;
			if (op == VN_OP_EXPERTS)
				experts_truth(m, k, &m->plan->node[v->node], policy, past + t, y, size);
			else
				truth(m, k, value, ids, S, h, past + t, y, size);
			for (int64_t e = 0; e < width; e++) {
				const double room = (policy.storage == VN_F16 && !wide ? 0.5001 * vn_dtype_ulp(VN_F16, y[e]) : 0.0) +
				                    (op == VN_OP_EXPERTS ? 1.0 : unit) * size[e] + 1e-12;
				if (fabs((double)got[e] - y[e]) <= room)
					continue;
				if (bad++ == 0)
					printf("\n  %s %s past %lld tokens %lld: head %lld row %lld element %lld is %.9g, should be %.9g "
					       "(room %.3g)\n",
					       vn_policy_name(policy), v->name, (long long)past, (long long)tokens, (long long)h,
					       (long long)t, (long long)e, (double)got[e], y[e], room);
			}
		}
	free(size);
	free(y);
	return bad;
}

/* Every value of a run of `tokens` behind `past`, each from the inputs that the device stored, on
 * every device. */
static inline void check_run(const vn_plan *plan, vn_policy policy, int64_t past, int64_t tokens)
{
	for (int d = 0; d < n_devices_; d++) {
		vn_plan *copy;
		model    m;
		keep     k;
		if (policy.sums == VN_F16 && !sums_in_half(d))
			continue;
		CU_ASSERT_EQUAL_FATAL(vn_plan_clone(plan, &copy, NULL), VN_OK);
		model_start(&m, copy, policy.storage);
		keep_start(&k, m.plan);
		bool    *want = want_all(m.plan, true);
		int32_t *ids = some_ids(past + tokens, m.plan->vocab);
		vn_taps  taps = { .want = want, .rows = VN_ROWS_ALL, .sink = keep_sink(&k) };
		vn_gpu  *g = engine(&m, (vn_gpu_options) { .policy = policy, .device = devices_[d].index, .validate = true });
		if (g && (past == 0 || forward(g, ids, past, &taps) == VN_OK)) {
			keep_next(&k, m.plan);
			if (forward(g, ids + past, tokens, &taps) == VN_OK) {
				for (int v = 0; v < m.plan->n_values; v++)
					if (m.plan->value[v].alias_of < 0) {
						CU_ASSERT_EQUAL(wrong(&m, &k, v, policy, ids, past, tokens), 0);
						CU_ASSERT_EQUAL(k.v[v].begun, k.v[v].ended);
					}
				CU_ASSERT_EQUAL(vn_gpu_ops.position(g), past + tokens);
			}
		}
		vn_gpu_ops.destroy(g);
		free(ids);
		free(want);
		keep_stop(&k);
		model_stop(&m);
	}
}
