/* estimate_rope.c: see estimate.h.
 *
 * A pair of columns is a complex number; output / input is af e^(i p f), where p is the position
 * (specs/models.md 1.5). The sum over the heads of a token is z[p]. Its phase advances by f from
 * token to token, as long as f is below pi; longer and longer lags make f more precise. With a
 * single token, theta is the value that explains the phases of all its pairs.
 */
#include "compare/estimate/estimate.h"
#include "compare/trial/fit.h"
#include "compare/trial/score.h"
#include "compare/trial/search.h"

#include "libref/base/alloc.h"

#include <assert.h>
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TWO_PI   6.283185307179586
#define COHERENT 0.98 /* the smallest |z|, relative to the sizes of input and output, of the pairing that was used */
#define SLOWEST  1e-7 /* a lower frequency counts as 0 */
#define STILL    0.1  /* radians from first to last token; if less, all tokens are rotated alike */
enum { PAIRS_MAX = 1024, OFFSETS = 4096 };
enum { SEVERAL = 3 }; /* the most tokens from which the rotation per token is measured */

typedef struct rotation {
	vn_node         n; /* paired as measured */
	const vn_list  *lists;
	int             pairs;
	int64_t         tokens;
	double complex *z;                     /* (tokens) of one pair */
	double          f[PAIRS_MAX];          /* radians for each token */
	double          start[PAIRS_MAX];      /* radians of the first token */
	float           unmodified[PAIRS_MAX]; /* radians for each token, as expected */
	float           room[PAIRS_MAX];
	double          apart[PAIRS_MAX]; /* by how much a token's rotation differs from the unmodified one */
	int64_t         first;            /* index of that token in the rotation's input */
	int64_t         row;              /* and in the checkpoint */
	int64_t         from;             /* the token from which another theta is tried */
	double          coherence;        /* the smallest |z| / size of all pairs */
} rotation;

/* Measures the rotation of pair i from x to y, both (tokens, heads, K), y in double. */
static void one_pair(rotation *r, const vn_head_part *part, const vn_tensor *x, const double *y, int i)
{
	const int64_t  H = x->shape.dim[1], K = x->shape.dim[2];
	double         ex = 0, ey = 0, sum = 0;
	double complex all = 0, apart = 0;

	const vn_rope_columns c = vn_rope_pair(&r->n.c.rope.rope, &r->n.x.rope, K, i);
	for (int64_t p = 0; p < r->tokens; p++) {
		r->z[p] = 0;
		for (int64_t h = 0; h < H; h++) {
			const int64_t        at = ((r->first + p) * H + h) * K, to = ((r->row + p) * H + h) * K;
			const double complex u = vn_tensor_number(x, at + c.in[0]) + I * vn_tensor_number(x, at + c.in[1]),
								 v = y[to + c.out[0]] + I * y[to + c.out[1]];
			if (part && !part->in[h])
				continue;
			r->z[p] += v * conj(u);
			ex += creal(u * conj(u));
			ey += creal(v * conj(v));
		}
		sum += cabs(r->z[p]);
		apart += r->z[p] * cexp(-I * (double)r->unmodified[i] * (double)(r->first + p));
	}
	r->coherence = fmin(r->coherence, ex > 0 && ey > 0 ? sum / sqrt(ex * ey) : 1);
	r->apart[i] = carg(apart);
	double f = 0;
	for (int64_t lag = 1; lag < r->tokens; lag *= 2) {
		double complex phasor = 0;
		for (int64_t p = 0; p + lag < r->tokens; p++)
			phasor += r->z[p + lag] * conj(r->z[p]);
		const double seen = carg(phasor);
		f = (seen + TWO_PI * round((f * (double)lag - seen) / TWO_PI)) / (double)lag;
	}
	r->f[i] = f;
	for (int64_t p = 0; p < r->tokens; p++)
		all += r->z[p] * cexp(-I * f * (double)p);
	r->start[i] = carg(all);
}

static bool measure_rotation(vn_case *t, rotation *r)
{
	const vn_tensor *c = &t->site->cand;
	vn_tensor        x;

	if (!vn_case_input(t, 0, VN_OWN_WIDTH, &x))
		return false;
	r->first = t->site->first + r->row;
	r->tokens = c->shape.dim[0] - r->row;
	r->coherence = 1;
	r->z = vn_alloc((size_t)r->tokens, sizeof *r->z);
	double *y = vn_case_all_doubles_of(c);
	for (int i = 0; i < r->pairs; i++)
		one_pair(r, t->part, &x, y, i);
	VN_FREE(y, r->z);
	return true;
}

/* ---- what may have made such rotations ------------------------------------------------------- */

/* What is found of this rotation. If it also pairs other columns, that is a mistake of its own. */
static vn_trial found_of(const vn_case *t, const rotation *r, vn_finding finding)
{
	const int node = vn_case_node(t);
	vn_trial  h = { .finding = finding,
		            .node = node,
		            .paired = r->n.x.rope.pairing != t->site->plan->node[node].x.rope.pairing };

	if (h.paired)
		vn_trial_constant_put(&h, "pairing", r->n.x.rope.pairing);
	return h;
}

/* Tries a finding whose number is `number`. */
static void try_number(vn_case *t, vn_trial *h, double number)
{
	vn_trial_constant_put(h, vn_finding_constant(h->finding), number);
	vn_try(t, h);
}

/* Without scaling log f is linear in i. */
static double plain_theta(const rotation *r)
{
	double xy = 0, xx = 0;

	for (int i = 1; i < r->pairs; i++)
		if (r->f[i] > SLOWEST) {
			const double x = 2.0 * i / r->n.c.rope.rope.rotary_dim,
						 w = r->f[i] * r->f[i]; /* fast frequencies are known best */
			xy -= w * x * log(r->f[i]);
			xx += w * x * x;
		}
	return xx > 0 ? exp(xy / xx) : 0;
}

#define THETA_MIN    1.01
#define THETA_MAX    1e12
#define THETA_LIKELY 1e9 /* far above models' values; any theta large enough fits pairs that hardly rotate */

/* A search for one constant of the rotation. */
typedef struct searched_constant {
	rotation   *r;
	const char *name;
} searched_constant;

/* The numbers of a scaling that can be read off the frequencies. two: if it is this near to a power
 * of two (in log2), it is that power. */
static const struct scaling {
	vn_finding finding;
	double     least, most, two;
} scalings[] = {
	{ VN_FINDING_THETA, THETA_MIN, THETA_MAX, 0 }, { VN_FINDING_ROPE_FACTOR, THETA_MIN, THETA_MAX, 0.1 },
	{ VN_FINDING_ROPE_CONTEXT, 16, 1e8, 0.3 },     { VN_FINDING_ROPE_LOW, 0.01, 1e4, 0 },
	{ VN_FINDING_ROPE_HIGH, 0.01, 1e4, 0 },
};
enum { N_SCALINGS = sizeof scalings / sizeof *scalings };

static double own_number(const rotation *r, const char *constant)
{
	int i = 0;

	while (vn_const_name(VN_OP_ROPE, i) && strcmp(vn_const_name(VN_OP_ROPE, i), constant) != 0)
		i++;
	assert(vn_const_name(VN_OP_ROPE, i)); /* the rotation has this constant */
	return vn_const_get(&r->n, i);
}

/* The rotation's settings with another number. */
static vn_rope rope_with(const searched_constant *a, double x)
{
	vn_node n = a->r->n;

	vn_const_set(&n, a->name, strcmp(a->name, "original_context") ? x : round(x), NULL);
	return n.c.rope.rope;
}

/* How far the frequencies under this number are from the observed ones: a sum of squares. */
static double off_by(void *of, double x)
{
	const searched_constant *a = of;
	const bool               by_length = strcmp(a->name, "length") == 0;
	const vn_rope            rope = by_length ? a->r->n.c.rope.rope : rope_with(a, x);
	double                   sum = 0;
	float                    af;

	if (rope.type == VN_ROPE_LLAMA3 && !(rope.low_freq_factor < rope.high_freq_factor))
		return (double)INFINITY;
	vn_rope_frequencies(&rope, a->r->lists, by_length ? (int64_t)round(x) : a->r->tokens, a->r->room, &af);
	for (int i = 0; i < a->r->pairs; i++)
		sum += (a->r->f[i] - (double)a->r->room[i]) * (a->r->f[i] - (double)a->r->room[i]);
	return sum;
}

/* Finds theta or a number of Llama 3's scaling by a search, because they decide which frequencies
 * are scaled. */
static double scaled_number(rotation *r, const struct scaling *s)
{
	enum { GRID = 512, FINER = 3 };
	searched_constant of = { r, vn_finding_constant(s->finding) };

	return vn_search_grid(off_by, &of, (vn_range) { s->least, s->most, GRID, false }, FINER, GRID).x;
}

/* By how much the pairs of the single token differ from their rotation under this theta, not
 * counting whole rotations. */
static double off_by_rotation(void *of, double theta)
{
	const searched_constant *a = of;
	rotation                *r = a->r;
	const vn_rope            rope = rope_with(a, theta);
	double                   miss = 0;
	float                    af;

	vn_rope_frequencies(&rope, r->lists, r->first + r->tokens, r->room, &af);
	for (int f = 0; f < r->pairs; f++)
		miss += 1 - cos(r->apart[f] - ((double)r->room[f] - (double)r->unmodified[f]) * (double)r->first);
	return miss;
}

/* The theta that agrees best with the pairs at the single token's position. 0: none in the range
 * of models. */
static double theta_of_one(rotation *r)
{
	enum { GRID = 1 << 14, FINER = 3, FEWER = 128 };
	searched_constant of = { r, "theta" };
	/* searched to the upper end, so that a minimum inside it is seen as one */
	const double      theta =
		vn_search_grid(off_by_rotation, &of, (vn_range) { THETA_MIN, THETA_MAX, GRID, false }, FINER, FEWER).x;

	return theta < THETA_LIKELY ? theta : 0;
}

static void try_theta(vn_case *t, const rotation *r, double theta, vn_finding finding)
{
	vn_round_numbers written = { .x = theta, .most = 6, .near = true };
	bool             fits = false;

	if (!(theta > THETA_MIN && theta < THETA_LIKELY))
		return;
	while (!fits && vn_next_round_number(&written, &theta)) {
		vn_trial h = found_of(t, r, finding);
		if (finding == VN_FINDING_THETA_PLAIN)
			vn_trial_constant_put(&h, "type", VN_ROPE_DEFAULT);
		if (finding == VN_FINDING_THETA_FROM)
			vn_trial_constant_put(&h, "theta_from", (double)r->from);
		vn_trial_constant_put(&h, finding == VN_FINDING_THETA_FROM ? "other_theta" : "theta", theta);
		vn_try(t, &h);
		fits = vn_case_fits(t, &h);
	}
}

/* Tries Llama 3's scaling with another number, unless it is the rotation's own. */
static void try_scaling(vn_case *t, const rotation *r, vn_finding finding, double number, bool *fits)
{
	vn_trial     h = found_of(t, r, finding);
	const double used = finding == VN_FINDING_ROPE_CONTEXT ? round(number) : number;

	*fits = false;
	if (used == own_number(r, vn_finding_constant(finding)))
		return;
	try_number(t, &h, used);
	*fits = vn_case_fits(t, &h);
}

/* Llama 3's scaling with another number: for a factor or a context the nearest power of two,
 * else the fewest digits that fit. If few pairs rotate far enough to know their frequencies,
 * another theta or another of these numbers fits as well, so all are tried. */
static void fit_scaling(vn_case *t, rotation *r)
{

	for (const struct scaling *s = scalings + 1; s < scalings + N_SCALINGS; s++) {
		const double     x = scaled_number(r, s), two = exp2(round(log2(x)));
		vn_round_numbers written = { .x = x, .most = 4, .near = true };
		bool             fits = false;
		double           number;
		if (fabs(two / x - 1) < s->two)
			try_scaling(t, r, s->finding, two, &fits);
		while (!fits && vn_next_round_number(&written, &number))
			try_scaling(t, r, s->finding, number, &fits);
	}
}

/* The length of the sequence for which dynamic scaling was computed. */
static void fit_length(vn_case *t, rotation *r)
{
	enum { GRID = 512, FINER = 4 };
	searched_constant of = { r, "length" };
	const double      most = 1 << 24, least = r->n.c.rope.rope.max_context;
	vn_trial          h = found_of(t, r, VN_FINDING_ROPE_LENGTH);

	if (r->n.c.rope.rope.type != VN_ROPE_DYNAMIC || !(least < most))
		return;
	const double length = vn_search_grid(off_by, &of, (vn_range) { least, most, GRID, false }, FINER, GRID).x;
	vn_trial_constant_put(&h, "length", round(length));
	vn_fit_whole(t, &h, (int64_t)round(length), (int64_t)least, (int64_t)most);
}

static void fit_theta(vn_case *t, rotation *r)
{
	const bool scaled = r->n.c.rope.rope.type != VN_ROPE_DEFAULT;
	fit_length(t, r);

	if (scaled)
		try_theta(t, r, scaled_number(r, scalings), VN_FINDING_THETA);
	if (r->n.c.rope.rope.type == VN_ROPE_LLAMA3)
		fit_scaling(t, r);
	/* In 16 bits, a scaling by nearly 1 fits a rotation without scaling. So both are tried; the
	 * better one is the answer. */
	try_theta(t, r, plain_theta(r), scaled ? VN_FINDING_THETA_PLAIN : VN_FINDING_THETA);
}

/* Tries positions that are c too high, for all tokens or for those after the first call. */
static void fit_offset(vn_case *t, const rotation *r)
{
	const int own = r->n.x.rope.offset;
	vn_trial  h = found_of(t, r, VN_FINDING_OFFSET), later = found_of(t, r, VN_FINDING_OFFSET_LATER);
	int       best = 0;
	double    least = (double)INFINITY;

	for (int c = -OFFSETS; c <= OFFSETS; c++) {
		double miss = 0;
		for (int i = 0; i < r->pairs; i++)
			miss += 1 - cos(r->apart[i] - c * (double)r->unmodified[i]);
		if (miss < least - 1e-9) {
			least = miss;
			best = c;
		}
	}
	if (best == 0)
		return;
	vn_trial_constant_put(&h, "offset", own);
	vn_fit_whole(t, &h, own + best, own - OFFSETS, own + OFFSETS);
	if (r->first == 0)
		return;
	later.applied.later = true;
	try_number(t, &later, best);
}

/* All tokens are rotated by the same angle: finds the position of that angle. Position 0 is no
 * rotation (R12). */
static void fit_position(vn_case *t, const rotation *r)
{
	vn_trial h = found_of(t, r, VN_FINDING_ONE_POSITION);
	double   least = (double)INFINITY;
	int      best = 0;

	for (int i = 0; i < r->pairs; i++)
		if (fabs(r->f[i]) * (double)r->tokens > STILL)
			return;
	for (int c = 0; c <= OFFSETS; c++) {
		double miss = 0;
		for (int i = 0; i < r->pairs; i++)
			miss += 1 - cos(r->start[i] - c * (double)r->unmodified[i]);
		if (miss < least) {
			least = miss;
			best = c;
		}
	}
	if (!best)
		return;
	vn_trial_constant_put(&h, "one_position", 1);
	try_number(t, &h, best);
}

static void fit_stretch(vn_case *t, const rotation *r)
{
	const double own = r->n.x.rope.angle_factor;
	double       xy = 0, xx = 0;

	for (int i = 0; i < r->pairs; i++) {
		xy += r->f[i] * (double)r->unmodified[i];
		xx += (double)r->unmodified[i] * (double)r->unmodified[i];
	}
	const double by = xy / xx;
	if (!(fabs(by) > 1e-4) || fabs(by - 1) < 1e-4)
		return;
	/* A number that a person may have written, or 1 divided by such a number; else the measured
	 * number. */
	vn_round_numbers written = { .x = by, .fewest = 3, .most = 3, .inverse = true };
	double           factor = 0;
	for (bool more = true; more && !vn_case_answered(t);) {
		vn_trial h = found_of(t, r, VN_FINDING_STRETCH);
		if (!(more = vn_next_round_number(&written, &factor)))
			factor = by;
		vn_trial_constant_put(&h, "turn", (own != 0 ? own : 1) * factor);
		vn_try(t, &h);
	}
}

/* Tries a rotation of fewer or of more columns: of so many eighths of K, or times eight columns. */
static void fit_width(vn_case *t, int node)
{
	const vn_plan *p = t->site->plan;
	const int      K = p->value[p->node[node].out[0]].size[2], now = p->node[node].c.rope.rope.rotary_dim;

	for (int width = 2; width <= K - p->node[node].c.rope.rope.first; width += 2) {
		vn_trial h = { .finding = VN_FINDING_ROTARY_WIDTH, .node = node };
		if (width == now || (width % 8 && width * 8 % K))
			continue;
		vn_trial_constant_put(&h, "rotary_dim", width);
		vn_try(t, &h);
	}
}

/* Another theta from the first token that is wrong on. */
static void fit_theta_from(vn_case *t, rotation *r)
{
	int64_t last;

	vn_case_rows_off(t, NULL, &r->row, &last);
	if (r->row < 1 || t->site->cand.shape.dim[0] - r->row < SEVERAL || !measure_rotation(t, r) ||
	    r->coherence < COHERENT)
		return;
	r->from = r->first;
	try_theta(t, r, r->n.c.rope.rope.type != VN_ROPE_DEFAULT ? scaled_number(r, scalings) : plain_theta(r),
	          VN_FINDING_THETA_FROM);
}

/* Another theta at a single token: wherever the rotation is tried, or after the first call. */
static void fit_theta_of_one(vn_case *t, rotation *r)
{
	const double theta = theta_of_one(r);

	try_theta(t, r, theta, VN_FINDING_THETA);
	r->from = t->site->prompt;
	if (r->from > 0)
		try_theta(t, r, theta, VN_FINDING_THETA_FROM);
}

void vn_estimate_rope(vn_case *t, const vn_trial *at)
{
	const int      node = at->node;
	const vn_plan *p = t->site->plan;
	const int      root = vn_plan_root(p, vn_plan_find(p, t->result->checkpoints.of[t->x->checkpoint].name));
	rotation      *r = vn_alloc_zero(1, sizeof *r);
	float          af;

	for (int pairing = 0; pairing < VN_PAIR_ACROSS && p->value[root].node == node &&
	                      p->node[node].c.rope.rope.rotary_dim / 2 <= PAIRS_MAX;
	     pairing++) {
		r->n = p->node[node];
		r->row = 0;
		r->n.x.rope.pairing = pairing;
		r->pairs = r->n.c.rope.rope.rotary_dim / 2;
		r->lists = p->list;
		vn_rope_frequencies(&r->n.c.rope.rope, r->lists, t->site->tokens, r->unmodified, &af);
		if (!measure_rotation(t, r) || r->coherence < COHERENT)
			continue;
		if (r->tokens >= SEVERAL) {
			fit_theta(t, r);
			fit_position(t, r);
			if (vn_case_answered(t))
				break;
		}
		fit_offset(t, r);
		if (r->tokens >= SEVERAL)
			fit_stretch(t, r);
		if (r->tokens >= SEVERAL && !vn_case_answered(t))
			fit_theta_from(t, r);
		else if (r->tokens == 1 && r->first > 0 && !vn_case_answered(t))
			fit_theta_of_one(t, r);
	}
	free(r);
	fit_width(t, node);
}
