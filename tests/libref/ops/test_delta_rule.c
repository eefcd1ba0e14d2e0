/* test_delta_rule.c: the operations of Gated DeltaNet in both widths, against numbers of a
 * float64 program and against other formulas in double: the rule against its chunked form, which
 * solves a triangular system and shares no line with the recurrence.
 *
 * They are called through vn_eval, as the engines call them, so the tests cover states and the
 * rounding to the storage format, which wide outputs skip. */
#include "libref/exec/eval.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const vn_policy policies[] = { { VN_F32, VN_F32, 0, { 0 } },
	                                  { VN_F64, VN_F64, 0, { 0 } },
	                                  { VN_F16, VN_F32, 0, { 0 } } };

enum { N_POLICIES = 3 };

static uint32_t seed = 1;

/* A half in (-1, 1): every format holds it. */
static double draw(void)
{
	seed = seed * 1664525u + 1013904223u;
	return (double)vn_f16_to_f32(vn_f32_to_f16((float)(seed >> 8) / 8388608.0f - 1.0f));
}

static double *draws(int64_t n)
{
	double *x = malloc((size_t)(n + 1) * sizeof *x);

	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	for (int64_t i = 0; i < n; i++)
		x[i] = draw();
	return x;
}

static double *zeros(int64_t n)
{
	double *x = calloc((size_t)(n + 1), sizeof *x);

	CU_ASSERT_PTR_NOT_NULL_FATAL(x);
	return x;
}

/* The numbers as the policy's engine stores them. */
static void *widened(const double *x, int64_t n, vn_policy p)
{
	const vn_dtype w = vn_eval_for(p)->width;
	void          *y = malloc((size_t)(n + 1) * vn_dtype_size(w));

	CU_ASSERT_PTR_NOT_NULL_FATAL(y);
	vn_from_f64(y, w, x, (size_t)n);
	return y;
}

static vn_tensor weight(const double *x, int rank, int64_t a, int64_t b, int64_t c)
{
	return (vn_tensor) { VN_F64, { rank, { a, b, c } }, x };
}

/* One node: y (tokens, row), its inputs and state as doubles. NaN marks numbers that were not
 * written. */
static void eval(const vn_node *n, vn_policy p, bool wide, int threads, int64_t tokens, int64_t row, int64_t dim,
                 const double *const *in, const int64_t *in_row, const vn_tensor *w, double *state, int64_t n_state,
                 double *y)
{
	const vn_eval *e = vn_eval_for(p);
	const size_t   size = vn_dtype_size(e->width), count = (size_t)(tokens * row);
	vn_args        a = { .policy = p, .wide = wide, .threads = threads, .tokens = tokens };
	char          *out = malloc((count + 1) * size);

	CU_ASSERT_PTR_NOT_NULL_FATAL(out);
	memset(out, 0xff, (count + 1) * size);
	for (int i = 0; i < n->n_in; i++)
		a.in[i] = widened(in[i], tokens * in_row[i], p);
	for (int i = 0; i < n->n_w; i++)
		a.w[i] = &w[i];
	if (state)
		a.state[0] = widened(state, n_state, p);
	CU_ASSERT_EQUAL(e->node(n, &a, row, dim, out, NULL), VN_OK);
	for (size_t i = 0; i < size; i++)
		CU_ASSERT_EQUAL((unsigned char)out[count * size + i], 0xff); /* nothing behind it */
	vn_to_f64(y, out, e->width, count);
	if (state)
		vn_to_f64(state, a.state[0], e->width, (size_t)n_state);
	for (int i = 0; i < n->n_in; i++)
		vn_tensor_free(&(vn_tensor) { .data = a.in[i] });
	free(a.state[0]);
	free(out);
}

/* The largest error in units of the allowed one: one rounding to the storage format, and `terms`
 * roundings of the arithmetic on numbers of the size `size`. */
static double worst(const double *got, const double *want, int64_t n, vn_policy p, bool wide, double terms, double size)
{
	const vn_dtype stored = vn_policy_dtype(p, wide);
	double         most = 0.0;

	for (int64_t i = 0; i < n; i++) {
		const double room = 0.5001 * vn_dtype_ulp(stored, want[i]) + 0x1p-53 * terms * size;
		const double d = fabs(got[i] - want[i]) / room;
		most = d <= most ? most : d; /* a NaN stays */
	}
	return most;
}

/* ---- the rule ------------------------------------------------------------------------------ */

typedef struct problem {
	int64_t T, nk, nv, dk, dv;
	double  scale;
	double *q, *k, *v, *g, *beta, *s; /* s: before, (nv,dk,dv) */
} problem;

/* Keys of length one, decays from almost none to almost all, a state that is not zero. */
static problem problem_create(int64_t T, int64_t nk, int64_t nv, int64_t dk, int64_t dv)
{
	problem p = { T,
		          nk,
		          nv,
		          dk,
		          dv,
		          1.0 / sqrt((double)dk),
		          draws(T * nk * dk),
		          draws(T * nk * dk),
		          draws(T * nv * dv),
		          draws(T * nv),
		          draws(T * nv),
		          draws(nv * dk * dv) };

	for (int64_t r = 0; r < T * nk; r++) {
		double qq = 0, kk = 0;
		for (int64_t i = 0; i < dk; i++) {
			qq += p.q[r * dk + i] * p.q[r * dk + i];
			kk += p.k[r * dk + i] * p.k[r * dk + i];
		}
		for (int64_t i = 0; i < dk; i++) {
			p.q[r * dk + i] = (double)(float)(p.q[r * dk + i] / sqrt(qq));
			p.k[r * dk + i] = (double)(float)(p.k[r * dk + i] / sqrt(kk));
		}
	}
	for (int64_t i = 0; i < T * nv; i++) {
		p.g[i] = -(double)(float)pow(8.0, 2.0 * p.g[i] - 1.0);
		p.beta[i] = 0.5 + 0.5 * p.beta[i];
	}
	return p;
}

static void problem_destroy(problem *p)
{
	free(p->q), free(p->k), free(p->v), free(p->g), free(p->beta), free(p->s);
}

static double dot(const double *a, const double *b, int64_t n)
{
	double sum = 0.0;
	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

enum { CHUNK = 64 };

/* One chunk of one head, tokens [t0, t0 + C), as transformers computes it: s is S0, then S1. */
static void chunk(const problem *p, int64_t h, int64_t t0, int64_t C, double *s, double *o)
{
	const int64_t nk = p->nk, nv = p->nv, dk = p->dk, dv = p->dv, hk = h / (nv / nk);
	double        c[CHUNK], *u = malloc((size_t)(C * dv) * 8), *w = malloc((size_t)(C * dk) * 8);
#define Q(i) (p->q + ((t0 + (i)) * nk + hk) * dk)
#define K(i) (p->k + ((t0 + (i)) * nk + hk) * dk)

	CU_ASSERT_FATAL(u && w);
	for (int64_t i = 0; i < C; i++)
		c[i] = p->g[(t0 + i) * nv + h] + (i ? c[i - 1] : 0.0);
	/* A is unit lower triangular: forward substitution gives U and W row by row. */
	for (int64_t i = 0; i < C; i++) {
		const double beta = p->beta[(t0 + i) * nv + h];
		for (int64_t e = 0; e < dv; e++)
			u[i * dv + e] = beta * p->v[((t0 + i) * nv + h) * dv + e];
		for (int64_t e = 0; e < dk; e++)
			w[i * dk + e] = beta * exp(c[i]) * K(i)[e];
		for (int64_t j = 0; j < i; j++) {
			const double a = beta * dot(K(i), K(j), dk) * exp(c[i] - c[j]);
			for (int64_t e = 0; e < dv; e++)
				u[i * dv + e] -= a * u[j * dv + e];
			for (int64_t e = 0; e < dk; e++)
				w[i * dk + e] -= a * w[j * dk + e];
		}
	}
	for (int64_t i = 0; i < C; i++) /* Vn, in the place of U */
		for (int64_t e = 0; e < dv; e++)
			for (int64_t d = 0; d < dk; d++)
				u[i * dv + e] -= w[i * dk + d] * s[d * dv + e];
	for (int64_t i = 0; i < C; i++)
		for (int64_t e = 0; e < dv; e++) {
			double sum = 0.0;
			for (int64_t d = 0; d < dk; d++)
				sum += exp(c[i]) * Q(i)[d] * s[d * dv + e];
			for (int64_t j = 0; j <= i; j++)
				sum += dot(Q(i), K(j), dk) * exp(c[i] - c[j]) * u[j * dv + e];
			o[((t0 + i) * nv + h) * dv + e] = p->scale * sum;
		}
	for (int64_t d = 0; d < dk; d++)
		for (int64_t e = 0; e < dv; e++) {
			s[d * dv + e] *= exp(c[C - 1]);
			for (int64_t j = 0; j < C; j++)
				s[d * dv + e] += exp(c[C - 1] - c[j]) * K(j)[d] * u[j * dv + e];
		}
	free(u), free(w);
#undef Q
#undef K
}

static void chunked(const problem *p, double *o, double *s)
{
	memcpy(s, p->s, (size_t)(p->nv * p->dk * p->dv) * 8);
	for (int64_t h = 0; h < p->nv; h++)
		for (int64_t t = 0; t < p->T; t += CHUNK)
			chunk(p, h, t, p->T - t < CHUNK ? p->T - t : CHUNK, s + h * p->dk * p->dv, o);
}

static const struct {
	int64_t T, nk, nv, dk, dv;
} shapes[] = {
	{ 1, 1, 1, 1, 1 },  { 2, 1, 3, 2, 5 },     { 17, 2, 2, 8, 8 },     { 63, 2, 6, 3, 7 },    { 64, 1, 2, 16, 8 },
	{ 65, 3, 3, 5, 4 }, { 129, 2, 6, 12, 33 }, { 200, 1, 1, 128, 64 }, { 300, 2, 4, 7, 100 },
};

enum { SHAPES = sizeof shapes / sizeof *shapes };

static problem shaped(int i)
{
	return problem_create(shapes[i].T, shapes[i].nk, shapes[i].nv, shapes[i].dk, shapes[i].dv);
}

/* The operation on tokens [from, to), by the recurrence or as other engines do: in chunks, with
 * sums drawn from the seed chunks - 1; state in and out. */
static void run_as(const problem *p, int chunks, vn_policy po, int64_t from, int64_t to, double *state, double *o,
                   int threads)
{
	const int64_t nk = p->nk, nv = p->nv, dk = p->dk, dv = p->dv;
	const vn_node n = { .op = VN_OP_DELTA_RULE,
		                .n_in = 5,
		                .c.delta = { .scale = p->scale,
		                             .key_heads = (int)nk,
		                             .value_heads = (int)nv,
		                             .key_dim = (int)dk,
		                             .value_dim = (int)dv },
		                .x.delta = { .chunked = chunks > 0, .drawn = chunks > 0 ? chunks - 1 : 0 } };
	const double *in[] = { p->q + from * nk * dk, p->k + from * nk * dk, p->v + from * nv * dv, p->g + from * nv,
		                   p->beta + from * nv };

	eval(&n, po, false, threads, to - from, nv * dv, dv, in, (int64_t[]) { nk * dk, nk * dk, nv * dv, nv, nv }, NULL,
	     state, nv * dk * dv, o + from * nv * dv);
}

static void run(const problem *p, vn_policy po, int64_t from, int64_t to, double *state, double *o, int threads)
{
	run_as(p, 0, po, from, to, state, o, threads);
}

/* The chunked form computes in float32 under every policy: its error must be that of float32's
 * roundings, not less. */
static void the_chunks_of_other_engines_are_as_near_as_float32(void)
{
	for (int i = 0; i < SHAPES; i++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			problem       p = shaped(i);
			const int64_t no = p.T * p.nv * p.dv, ns = p.nv * p.dk * p.dv;
			double       *o = zeros(no), *s = zeros(ns), *got = zeros(no), *state = zeros(ns);
			double        error = 0, size = 0, off = 0, all = 0;

			chunked(&p, o, s);
			memcpy(state, p.s, (size_t)ns * 8);
			run_as(&p, 1, policies[pi], 0, p.T, state, got, 2);
			for (int64_t k = 0; k < no; k++)
				error += (got[k] - o[k]) * (got[k] - o[k]), size += o[k] * o[k];
			for (int64_t k = 0; k < ns; k++)
				off += (state[k] - s[k]) * (state[k] - s[k]), all += s[k] * s[k];
			CU_ASSERT(sqrt(error / size) < (policies[pi].storage == VN_F16 ? 1e-3 : 1e-5) && sqrt(off / all) < 1e-5);
			CU_ASSERT(policies[pi].storage != VN_F64 || i < 2 || sqrt(error / size) > 1e-9);
			problem_destroy(&p);
			free(o), free(s), free(got), free(state);
		}
}

/* The last digit of a sum of decays is not in the inputs. */
static void a_seed_draws_the_roundings_of_the_sums(void)
{
	problem       p = shaped(6);
	const int64_t no = p.T * p.nv * p.dv, ns = p.nv * p.dk * p.dv;
	double       *got[4], *o = zeros(no), *s = zeros(ns), error = 0, size = 0;

	chunked(&p, o, s);
	for (int i = 0; i < 4; i++) {
		got[i] = zeros(no);
		memcpy(s, p.s, (size_t)ns * 8);
		run_as(&p, 1 + i % 3, policies[1], 0, p.T, s, got[i], 2);
	}
	for (int64_t k = 0; k < no; k++)
		error += (got[1][k] - o[k]) * (got[1][k] - o[k]), size += o[k] * o[k];
	CU_ASSERT(sqrt(error / size) < 1e-5);
	CU_ASSERT(memcmp(got[0], got[3], (size_t)no * 8) == 0);
	CU_ASSERT(memcmp(got[0], got[1], (size_t)no * 8) != 0 && memcmp(got[1], got[2], (size_t)no * 8) != 0);
	problem_destroy(&p);
	for (int i = 0; i < 4; i++)
		free(got[i]);
	free(o), free(s);
}

static void the_recurrence_and_its_chunked_form_agree(void)
{
	for (int i = 0; i < SHAPES; i++) {
		problem       p = shaped(i);
		const int64_t no = p.T * p.nv * p.dv, ns = p.nv * p.dk * p.dv;
		double       *o = zeros(no), *s = zeros(ns), *got = zeros(no), *state = zeros(ns);

		chunked(&p, o, s);
		for (int pi = 0; pi < N_POLICIES; pi++) {
			memcpy(state, p.s, (size_t)ns * 8);
			run(&p, policies[pi], 0, p.T, state, got, 2);
			CU_ASSERT(worst(got, o, no, policies[pi], false, 64, 1) <= 1.0);
			CU_ASSERT(worst(state, s, ns, policies[pi], true, 64, 1) <= 1.0);
		}
		problem_destroy(&p);
		free(o), free(s), free(got), free(state);
	}
}

static void any_number_of_threads_gives_the_same_bits(void)
{
	for (int i = 0; i < SHAPES; i++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			problem       p = shaped(i);
			const int64_t no = p.T * p.nv * p.dv, ns = p.nv * p.dk * p.dv;
			double       *a = zeros(no), *b = zeros(no), *s = zeros(ns), *z = zeros(ns);

			memcpy(s, p.s, (size_t)ns * 8), memcpy(z, p.s, (size_t)ns * 8);
			run(&p, policies[pi], 0, p.T, s, a, 1);
			run(&p, policies[pi], 0, p.T, z, b, 5);
			CU_ASSERT(memcmp(a, b, (size_t)no * 8) == 0 && memcmp(s, z, (size_t)ns * 8) == 0);
			problem_destroy(&p);
			free(a), free(b), free(s), free(z);
		}
}

/* The state is rounded after every call, to float32 under f16 too. */
static void a_run_in_parts_goes_on_from_the_state(void)
{
	for (int i = 1; i < SHAPES; i++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			problem       p = shaped(i);
			const int64_t no = p.T * p.nv * p.dv, ns = p.nv * p.dk * p.dv, half = (p.T + 1) / 2;
			double       *o = zeros(no), *s = zeros(ns), *got = zeros(no), *state = zeros(ns);
			const double  rounding = policies[pi].storage == VN_F64 ? 64 : 0x1p29 * 8;

			chunked(&p, o, s);
			memcpy(state, p.s, (size_t)ns * 8);
			run(&p, policies[pi], 0, half, state, got, 2);
			for (int64_t t = half; t < p.T; t++)
				run(&p, policies[pi], t, t + 1, state, got, 2);
			CU_ASSERT(worst(got, o, no, policies[pi], false, rounding, 1) <= 1.0);
			CU_ASSERT(worst(state, s, ns, policies[pi], true, rounding, 1) <= 1.0);
			problem_destroy(&p);
			free(o), free(s), free(got), free(state);
		}
}

/* The rule of models.md 2.7 in float64: dk = dv = 2, three tokens. */
static void the_rule_has_the_numbers_of_the_specification(void)
{
	double        q[] = { 1, 0, .6, .8, 0, 1 }, k[] = { .6, .8, 1, 0, .8, -.6 }, v[] = { 1, 2, -1, .5, .25, -2 };
	double        g[] = { -.5, -.1, -1 }, beta[] = { .5, .9, .25 }, s[4] = { 0 };
	const double  o[] = { .212132034, .424264069, -.165579626, .623434903, .031913448, .399227051 };
	const double  end[] = { -.203750694, -.212209245, .045132431, .564592310 };
	const problem p = { 3, 1, 1, 2, 2, sqrt(0.5), q, k, v, g, beta, s };
	double        got[6];

	run(&p, policies[1], 0, 3, s, got, 1);
	for (int i = 0; i < 6; i++)
		CU_ASSERT(fabs(got[i] - o[i]) <= 6e-10);
	for (int i = 0; i < 4; i++)
		CU_ASSERT(fabs(s[i] - end[i]) <= 6e-10);
}

static void a_bad_value_stays_in_its_column_and_behind_its_token(void)
{
	problem       p = problem_create(9, 1, 2, 4, 40);
	const int64_t no = p.T * p.nv * p.dv, ns = p.nv * p.dk * p.dv;
	double       *a = zeros(no), *b = zeros(no), *s = zeros(ns), *z = zeros(ns);

	run(&p, policies[0], 0, p.T, s, a, 2);
	p.v[(4 * p.nv + 1) * p.dv + 35] = (double)NAN;
	run(&p, policies[0], 0, p.T, z, b, 2);
	for (int64_t t = 0; t < p.T; t++)
		for (int64_t h = 0; h < p.nv; h++)
			for (int64_t e = 0; e < p.dv; e++) {
				const int64_t at = (t * p.nv + h) * p.dv + e;
				CU_ASSERT(t >= 4 && h == 1 && e == 35 ? isnan(b[at]) : b[at] == a[at]);
			}
	problem_destroy(&p);
	free(a), free(b), free(s), free(z);
}

/* ---- convolution ----------------------------------------------------------------------------- */

static void convolve(vn_policy po, const double *x, const double *w, double *state, double *y, int64_t T, int64_t X,
                     int64_t J, int threads)
{
	const vn_node n = {
		.op = VN_OP_CAUSAL_CONV, .n_in = 1, .n_w = 1, .c.conv = { .channels = (int)X, .taps = (int)J }
	};
	const vn_tensor t = weight(w, 3, X, 1, J);

	eval(&n, po, false, threads, T, X, X, &x, &X, &t, state, (J - 1) * X, y);
}

static void convolution_is_its_formula_with_the_last_tap_on_the_newest_token(void)
{
	const struct {
		int64_t T, X, J;
	} row[] = { { 1, 1, 2 }, { 1, 5, 4 }, { 2, 3, 4 }, { 3, 600, 4 }, { 17, 7, 3 }, { 65, 1030, 2 }, { 40, 4, 5 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int64_t T = row[i].T, X = row[i].X, J = row[i].J, L = J - 1;
			double       *x = draws((L + T) * X), *w = draws(X * J), *want = zeros(T * X), *y = zeros(T * X),
				   *z = zeros(T * X);
			double *state = zeros(L * X), *own = zeros(L * X);

			for (int64_t t = 0; t < T; t++)
				for (int64_t c = 0; c < X; c++) {
					double sum = 0;
					for (int64_t j = 0; j < J; j++)
						sum += w[c * J + j] * x[(t + j) * X + c]; /* x begins L rows before token 0 */
					want[t * X + c] = sum / (1 + exp(-sum));
				}
			memcpy(state, x, (size_t)(L * X) * 8), memcpy(own, x, (size_t)(L * X) * 8);
			convolve(policies[pi], x + L * X, w, state, y, T, X, J, 3);
			CU_ASSERT(worst(y, want, T * X, policies[pi], false, 16, 1) <= 1.0);
			CU_ASSERT(memcmp(state, x + T * X, (size_t)(L * X) * 8) == 0);

			/* token by token: the same bits */
			for (int64_t t = 0; t < T; t++)
				convolve(policies[pi], x + (L + t) * X, w, own, z + t * X, 1, X, J, 1);
			CU_ASSERT(memcmp(y, z, (size_t)(T * X) * 8) == 0 && memcmp(state, own, (size_t)(L * X) * 8) == 0);
			free(x), free(w), free(want), free(y), free(z), free(state), free(own);
		}
}

/* ---- gates and norms ------------------------------------------------------------------------- */

static void decay(vn_policy po, const double *x, const double *A_log, const double *dt_bias, int64_t T, int64_t N,
                  double *y)
{
	const vn_node   n = { .op = VN_OP_LOG_DECAY, .n_in = 1, .n_w = 2 };
	const vn_tensor w[] = { weight(A_log, 1, N, 0, 0), weight(dt_bias, 1, N, 0, 0) };

	eval(&n, po, true, 2, T, N, N, &x, &N, w, NULL, 0, y);
}

/* The softplus of models.md 1.3 under A_log = 0, nine digits, and both ends. */
static void log_decay_has_the_numbers_of_the_specification(void)
{
	const double x[] = { -3, -1, -0.5, 0.5, 1, 3, -200, 19.5, 500 };
	const double softplus[] = { 0.048587352, 0.313261688, 0.474076984,  0.974076984, 1.313261688,
		                        3.048587352, 0,           19.500000003, 500 };
	const double zero = 0.0;
	double       y[9];

	for (int pi = 0; pi < N_POLICIES; pi++) {
		decay(policies[pi], x, &zero, &zero, 9, 1, y);
		for (int i = 0; i < 9; i++)
			CU_ASSERT(fabs(y[i] + softplus[i]) <= 6e-10 + (policies[pi].storage == VN_F64 ? 0 : 6e-8 * softplus[i]));
	}
}

/* From 20 on it is the number itself, as torch has it: 2e-9 less than the logarithm,
 * which float64 sees. */
static void log_decay_goes_over_to_the_number_itself_behind_twenty(void)
{
	const double x[] = { 20.0, 20.0000001, 30.0 }, zero = 0.0;
	double       y[3];

	decay(policies[1], x, &zero, &zero, 3, 1, y);
	CU_ASSERT(y[0] < -20.0 && y[1] == -x[1] && y[2] == -30.0);
}

static void log_decay_takes_each_head_its_own_numbers(void)
{
	const double x[] = { 0, 1, 2, 3, 4, 5 }, A[] = { 0, 1, -1 }, dt[] = { .5, 0, -.5 };
	double       y[6], want[6];

	for (int i = 0; i < 6; i++)
		want[i] = -exp(A[i % 3]) * log(1 + exp(x[i] + dt[i % 3]));
	for (int pi = 0; pi < N_POLICIES; pi++) {
		decay(policies[pi], x, A, dt, 2, 3, y);
		CU_ASSERT(worst(y, want, 6, policies[pi], true, 8, 12) <= 1.0);
	}
}

/* Small rows too, where eps counts. */
static void norms_of_heads_are_their_formulas(void)
{
	const struct {
		int64_t R, N;
		double  size;
	} row[] = { { 1, 1, 1 }, { 5, 3, 1 }, { 7, 128, 0x1p-10 }, { 64, 33, 0x1p-12 }, { 3, 256, 1024 } };

	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		for (int pi = 0; pi < N_POLICIES; pi++) {
			const int64_t   R = row[i].R, N = row[i].N;
			const vn_policy po = policies[pi];
			double         *x = draws(R * N), *z = draws(R * N), *g = draws(N), *y = zeros(R * N);
			double         *l2 = zeros(R * N), *gated = zeros(R * N), *one = zeros(R * N);
			const vn_tensor w = weight(g, 1, N, 0, 0);
			for (int64_t j = 0; j < R * N; j++)
				x[j] *= row[i].size;
			for (int64_t r = 0; r < R; r++) {
				const double ss = dot(x + r * N, x + r * N, N), rms = sqrt(ss / (double)N + 1e-6);
				for (int64_t n = 0; n < N; n++) {
					const int64_t at = r * N + n;
					z[at] *= 8;
					l2[at] = x[at] / sqrt(ss + 1e-6);
					gated[at] = g[n] * x[at] / rms * z[at] / (1 + exp(-z[at]));
					one[at] = (1 + g[n]) * x[at] / rms;
				}
			}
			const double *in[] = { x, z };
			eval(&(vn_node) { .op = VN_OP_L2_NORM, .n_in = 1, .c.norm.eps = 1e-6 }, po, true, 2, R, N, N, in, &N, NULL,
			     NULL, 0, y);
			CU_ASSERT(worst(y, l2, R * N, po, true, 16, 1) <= 1.0);
			eval(&(vn_node) { .op = VN_OP_GATED_NORM, .n_in = 2, .n_w = 1, .c.norm.eps = 1e-6 }, po, false, 2, R, N, N,
			     in, (int64_t[]) { N, N }, &w, NULL, 0, y);
			CU_ASSERT(worst(y, gated, R * N, po, false, 16, 64) <= 1.0);
			eval(&(vn_node) { .op = VN_OP_RMS_NORM, .n_in = 1, .n_w = 1, .c.norm = { .eps = 1e-6, .offset = 1.0 } }, po,
			     false, 2, R, N, N, in, &N, &w, NULL, 0, y);
			CU_ASSERT(worst(y, one, R * N, po, false, po.storage == VN_F64 ? 16 : 0x1p28, 16) <=
			          1.0); /* 1 + g is rounded, too */
			free(x), free(z), free(g), free(y), free(l2), free(gated), free(one);
		}
}

/* Files that store 1 + w mean the same model: the same bits in float32. */
static void a_norm_of_one_plus_w_is_the_norm_of_their_float_sum(void)
{
	enum { N = 300 };
	double             *x = draws(N), *g = draws(N), sum[N], a[N], b[N];
	const double *const in[] = { x };
	const int64_t       rows[] = { N };

	for (int n = 0; n < N; n++) {
		g[n] = (double)(float)(0.1 * g[n]); /* the sum has to round */
		sum[n] = (double)(1.0f + (float)g[n]);
	}
	const vn_tensor w = weight(g, 1, N, 0, 0), ws = weight(sum, 1, N, 0, 0);
	eval(&(vn_node) { .op = VN_OP_RMS_NORM, .n_in = 1, .n_w = 1, .c.norm = { .eps = 1e-6, .offset = 1.0 } },
	     policies[0], false, 1, 1, N, N, in, rows, &w, NULL, 0, a);
	eval(&(vn_node) { .op = VN_OP_RMS_NORM, .n_in = 1, .n_w = 1, .c.norm = { .eps = 1e-6 } }, policies[0], false, 1, 1,
	     N, N, in, rows, &ws, NULL, 0, b);
	CU_ASSERT(memcmp(a, b, sizeof a) == 0);
	free(x), free(g);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_seed_draws_the_roundings_of_the_sums),
		TEST(the_recurrence_and_its_chunked_form_agree),
		TEST(the_chunks_of_other_engines_are_as_near_as_float32),
		TEST(the_rule_has_the_numbers_of_the_specification),
		TEST(any_number_of_threads_gives_the_same_bits),
		TEST(a_run_in_parts_goes_on_from_the_state),
		TEST(a_bad_value_stays_in_its_column_and_behind_its_token),
		TEST(convolution_is_its_formula_with_the_last_tap_on_the_newest_token),
		TEST(log_decay_has_the_numbers_of_the_specification),
		TEST(log_decay_goes_over_to_the_number_itself_behind_twenty),
		TEST(log_decay_takes_each_head_its_own_numbers),
		TEST(norms_of_heads_are_their_formulas),
		TEST(a_norm_of_one_plus_w_is_the_norm_of_their_float_sum),
		CU_TEST_INFO_NULL,
	};
	return run_suite("delta rule", tests);
}
