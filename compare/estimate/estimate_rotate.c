/* estimate_rotate.c: see estimate.h. */
#include "compare/estimate/estimate.h"
#include "compare/trial/score.h"
#include "compare/trial/search.h"

#include "libref/base/alloc.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

static bool can_be_made(const vn_case *t)
{
	const vn_plan *p = t->site->plan;

	return p->node[vn_case_node(t)].op == VN_OP_ROPE && t->site->cand.shape.rank == 3 && !t->part &&
	       t->consumed != VN_CONSUMED_OTHERS && !t->x->unmodified.residual.bad;
}

void vn_estimate_rotate_by_ids(vn_case *t)
{
	const int      node = vn_case_node(t);
	const vn_step *s = vn_case_step(t), *all;
	/* For a single token, rotation by its id equals rotation at some offset; other steps tell
	 * which. */
	const bool     enough = t->site->cand.shape.dim[0] > 1 || vn_recording_steps(t->opened->cand, &all) > 2;

	for (int later = 0; enough && can_be_made(t) && later < (s && s->position > 0 ? 2 : 1); later++) {
		vn_trial h = VN_TRIAL(ROTATED_BY_IDS, node, .kind = VN_BY_ROTATION, .later = later, .rotate.by_ids = true);
		vn_try(t, &h);
	}
}

void vn_estimate_rotate(vn_case *t)
{
	const int node = vn_case_node(t);

	if (!can_be_made(t))
		return;
	const vn_step *step;
	int64_t        off, last;
	/* A recording that states one call may come from several calls: the second one begins at the
	 * first row in error. */
	vn_case_rows_off(t, NULL, &off, &last);
	const bool one = vn_recording_steps(t->opened->cand, &step) == 1 && !t->site->first;
	const int  call = t->site->begins_later ? VN_OWN_CALLS : one && off > 1 ? (int)off : 0;
	/* clang-format off */
	const struct { vn_finding finding; vn_other_rotation edit; } edits[] = {
		{ VN_FINDING_CALLS_FROM_ZERO, { .call = call } },
		{ VN_FINDING_CALLS_TWICE, { .call = call, .twice = 1 } },
		{ VN_FINDING_SINE_FOR_COSINE, { .exchanged = true } },
#define ANGLES(...) { VN_FINDING_ANGLES_ROUNDED, { __VA_ARGS__ } }
#define ROUNDED(format) \
		ANGLES(.frequencies = format), ANGLES(.positions = format), ANGLES(.table = format), ANGLES(.angles = format), \
		ANGLES(.positions = format, .frequencies = format), \
		ANGLES(.positions = format, .frequencies = format, .angles = format), \
		ANGLES(.positions = format, .frequencies = format, .angles = format, .table = format)
		ROUNDED(VN_FORMAT_BF16), ROUNDED(VN_FORMAT_F16),
#undef ANGLES
#undef ROUNDED
	};
	/* clang-format on */

	for (size_t i = call ? 0 : 2; i < sizeof edits / sizeof *edits; i++) {
		vn_trial h = { .finding = edits[i].finding,
			           .node = node,
			           .applied = { .kind = VN_BY_ROTATION, .rotate = edits[i].edit } };
		vn_try(t, &h);
	}
}

/* ---- single tokens --------------------------------------------------------------------------- */

/* A pair of columns is a complex number; with z the sum over heads of output * conj(input), a token
 * is rotated by the position p for which the sum over pairs of Re(z e^(-i p f)) is greatest. p may
 * be a fraction. Some of the tokens in error are measured, and a map from their positions to the
 * measured ones is tried in full. */

enum { PAIRS_MAX = 1024, TESTED = 16 };
enum {
	STEPS = 4,
	FINER = 16,
	ROUNDS = 4
};                         /* positions are tried 4 times a radian, then in steps of a sixteenth of that */
#define NEAR_POSITION 0.05 /* a position this near to the expected one counts as equal */

typedef struct rotated {
	const vn_rope            *rope;
	const vn_rope_experiment *experiment;
	vn_tensor                 x; /* (S,H,K) */
	double                   *y; /* (T,H,K) */
	int64_t                   first, S;
	float                     f[PAIRS_MAX];
} rotated;

/* How well a rotation by position p agrees: the larger, the better. */
static double agreement_at(const rotated *r, const double complex *z, double p)
{
	double sum = 0;

	for (int i = 0; i < r->rope->rotary_dim / 2; i++)
		sum += creal(z[i] * cexp(-I * p * (double)r->f[i]));
	return sum;
}

/* The position by which row t is rotated. NAN: row t is not a rotation of its input. */
static double position_of(const rotated *r, int64_t t)
{
	const int64_t  H = r->x.shape.dim[1], K = r->x.shape.dim[2];
	const int      half = r->rope->rotary_dim / 2;
	double complex z[PAIRS_MAX], at[PAIRS_MAX], by[PAIRS_MAX];
	const double   low = -2.0 * (double)r->S - 64, high = 4.0 * (double)r->S + 64;
	double         best = 0, most = -(double)INFINITY, size = 0;

	for (int i = 0; i < half; i++) {
		const vn_rope_columns c = vn_rope_pair(r->rope, r->experiment, K, i);
		z[i] = 0;
		for (int64_t h = 0; h < H; h++) {
			const int64_t        from = ((r->first + t) * H + h) * K, to = (t * H + h) * K;
			const double complex u = vn_tensor_number(&r->x, from + c.in[0]) +
			                         I * vn_tensor_number(&r->x, from + c.in[1]),
								 v = r->y[to + c.out[0]] + I * r->y[to + c.out[1]];
			z[i] += v * conj(u);
		}
		size += cabs(z[i]);
		at[i] = z[i] * cexp(-I * low * (double)r->f[i]);
		by[i] = cexp(-I * (double)r->f[i] / STEPS);
	}
	for (int64_t n = 0; (double)n / STEPS <= high - low; n++) {
		double sum = 0;
		for (int i = 0; i < half; i++) {
			sum += creal(at[i]);
			at[i] *= by[i];
		}
		if (sum > most) {
			most = sum;
			best = low + (double)n / STEPS;
		}
	}
	double step = 1.0 / STEPS;
	for (int round = 0; round < ROUNDS; round++) {
		const double middle = best;
		step /= FINER / 2;
		for (int n = -FINER; n <= FINER; n++) {
			const double sum = agreement_at(r, z, middle + n * step);
			best = sum > most ? middle + n * step : best;
			most = fmax(sum, most);
		}
	}
	return most > 0.98 * size ? best : (double)NAN;
}

/* Opens the rotation of the checkpoint, which close_rotated closes. NULL: there is none. */
static rotated *open_rotated(const vn_case *t, int node)
{
	const vn_plan *p = t->site->plan;
	float          af;
	vn_tensor      x;

	if (p->node[node].out[0] != t->site->target || !can_be_made(t) ||
	    p->node[node].c.rope.rope.rotary_dim / 2 > PAIRS_MAX || !vn_case_input(t, 0, VN_OWN_WIDTH, &x))
		return NULL;
	rotated *r = vn_alloc(1, sizeof *r);
	*r = (rotated) { .rope = &p->node[node].c.rope.rope,
		             .experiment = vn_node_rope_experiment(&p->node[node]),
		             .x = x,
		             .y = vn_case_all_doubles_of(&t->site->cand),
		             .first = t->site->first,
		             .S = t->site->tokens };
	vn_rope_frequencies(r->rope, p->list, r->S, r->f, &af);
	return r;
}

static void close_rotated(rotated *r)
{
	if (r)
		free(r->y);
	free(r);
}

/* ---- maps ------------------------------------------------------------------------------------ */

typedef struct tested_numbers {
	double at[TESTED], is[TESTED];
	int    n;
} tested_numbers;

static bool maps_all(const tested_numbers *a, const vn_position_map *m)
{
	bool all = true;

	for (int i = 0; i < a->n; i++) {
		const double p = m->times * a->at[i] + m->plus;
		all = all && fabs((m->whole ? floor(p) : p) - a->is[i]) < NEAR_POSITION;
	}
	return all;
}

static void try_map(vn_case *t, const tested_numbers *a, vn_position_map m, bool *done)
{
	vn_trial h = VN_TRIAL(POSITIONS_OF_SOME, vn_case_node(t), .kind = VN_BY_ROTATION,
	                      .rotate = { .moved = true, .map = m });

	if (*done || !maps_all(a, &m))
		return;
	vn_try(t, &h);
	*done = vn_case_fits(t, &h);
}

/* A factor that stretches from position 0 on, or from the first token of the run
 * or the one before. */
static void try_factors(vn_case *t, const tested_numbers *a, vn_position_map m, double factor, bool *done)
{
	const double     from[] = { 0, (double)m.first, (double)m.first - 1 };
	vn_round_numbers written = { .x = factor, .most = 3, .inverse = true };

	if (!(fabs(factor) > 1e-4))
		return;
	while (vn_next_round_number(&written, &m.times)) {
		for (int i = 0; i < 3; i++) {
			m.plus = from[i] * (1 - m.times);
			m.whole = false;
			try_map(t, a, m, done);
		}
		m.plus = 0;
		m.whole = true;
		try_map(t, a, m, done);
	}
}

/* The slope of the measured positions over the positions of the tokens. */
static double slope_of(const tested_numbers *a)
{
	double x = 0, y = 0, xy = 0, xx = 0;

	for (int i = 0; i < a->n; i++) {
		x += a->at[i] / a->n;
		y += a->is[i] / a->n;
	}
	for (int i = 0; i < a->n; i++) {
		xy += (a->at[i] - x) * (a->is[i] - y);
		xx += (a->at[i] - x) * (a->at[i] - x);
	}
	return xx > 0 ? xy / xx : 0;
}

static void try_maps(vn_case *t, const tested_numbers *a, vn_position_map m)
{
	bool done = false;

	m.times = 1;
	m.plus = round(a->is[0] - a->at[0]);
	if (m.plus != 0)
		try_map(t, a, m, &done);
	m.times = 0;
	m.plus = round(a->is[0]);
	if (a->n > 1)
		try_map(t, a, m, &done);
	try_factors(t, a, m, a->n > 1 ? slope_of(a) : a->is[0] / a->at[0], &done);
	m.times = 0;
	m.plus = vn_in_digits(a->is[0], 4);
	if (a->n == 1)
		try_map(t, a, m, &done);
}

void vn_estimate_rotated_tokens(vn_case *t)
{
	const int64_t  T = t->site->cand.shape.dim[0];
	const vn_step *step;
	rotated       *r = open_rotated(t, vn_case_node(t));
	int64_t        first = -1, last = -1;
	tested_numbers a = { .n = 0 };

	if (r && T > 1)
		vn_case_rows_off(t, NULL, &first, &last);
	const int64_t many = first < 0 ? 0 : last - first + 1;
	bool          good = many > 0;
	for (int64_t i = 0; good && i < many && i < TESTED; i++) {
		const int64_t row = first + (many <= TESTED ? i : (many - 1) * i / (TESTED - 1));
		a.at[a.n] = (double)(t->site->first + row);
		a.is[a.n] = position_of(r, row);
		good = !isnan(a.is[a.n++]);
	}
	if (good)
		try_maps(t, &a,
		         (vn_position_map) { .first = t->site->first + first,
		                             .last = t->site->first + last,
		                             .open = last == T - 1 && vn_recording_steps(t->opened->cand, &step) == 1 });
	close_rotated(r);
}

/* ---- a single token -------------------------------------------------------------------------- */

void vn_estimate_stretch_of_one(vn_case *t, const vn_trial *at)
{
	rotated *r = t->site->cand.shape.dim[0] == 1 && t->site->first > 0 ? open_rotated(t, at->node) : NULL;

	if (r) {
		const double     before = t->site->plan->node[at->node].x.rope.angle_factor;
		const double     is = position_of(r, 0), by = is / (double)t->site->first;
		bool             done = isnan(is) || !(fabs(by) > 1e-3) || fabs(by - 1) < 1e-4;
		double           factor;
		/* One position in the place of another is an offset as well, so only a number that a person
		 * wrote is a factor. */
		vn_round_numbers written = { .x = by, .most = 3, .inverse = true };
		while (!done && vn_next_round_number(&written, &factor))
			for (int later = 1; later >= 0; later--) {
				vn_trial h = VN_TRIAL(STRETCH, at->node, .later = later);
				if (!(fabs(factor * (double)t->site->first - is) < NEAR_POSITION))
					continue;
				vn_trial_constant_put(&h, "turn", (before != 0 ? before : 1) * factor);
				vn_try(t, &h);
				done = done || (vn_case_fits(t, &h));
			}
	}
	close_rotated(r);
}
