/* explain_rope.c: what a rotation was, read off its input and its output.
 *
 * A pair of columns is a complex number; output over input is af e^(i p f), p the position
 * (specs/models.md 9.2). Summed over the heads of a token that is z[p], whose turn from
 * token to token is f, as long as f is below pi; longer and longer lags make f more precise. Of one
 * token alone theta is what turns all its pairs so far. */
#include "compare/explain/explain_inside.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TURN       6.283185307179586
#define COHERENT   0.98  /* |z| over the sizes of input and output, of the pairing that it was */
#define SLOWEST   1e-7  /* a frequency below it is none */
#define STILL     0.1   /* radians from the first token to the last: all tokens are turned alike */
enum { PAIRS_MAX = 1024, OFFSETS = 4096 };
enum { SEVERAL = 3 }; /* tokens, of which a turn from one to the next is told */

typedef struct turning {
	vn_rope rope;
	int     pairs;
	int64_t tokens;
	double complex *z;          /* (tokens) of one pair */
	double  f[PAIRS_MAX];       /* radians a token */
	double  start[PAIRS_MAX];   /* and at the first of the tokens */
	double  apart[PAIRS_MAX];   /* how far a token is turned otherwise than the sound rotation turns it */
	int64_t first;              /* token, of those that the rotation's input has */
	double  coherence;          /* the least of all pairs */
} turning;

static double real_at(const vn_tensor *t, int64_t at)
{
	return t->dtype == VN_F64 ? ((const double *)t->data)[at] : (double)((const float *)t->data)[at];
}

/* Turns of pair i, from x to y: both (tokens, heads, K), y in double. sound: radians a token that it should be. */
static void one_pair(turning *r, const vn_part *part, const vn_tensor *x, const double *y, int i, double sound)
{
	const int64_t H = x->shape.dim[1], K = x->shape.dim[2];
	double  ex = 0, ey = 0, sum = 0;
	int64_t a, b;
	double complex all = 0, apart = 0;

	vn_rope_pair(&r->rope, K, i, &a, &b);
	for (int64_t p = 0; p < r->tokens; p++) {
		r->z[p] = 0;
		for (int64_t h = 0; h < H; h++) {
			const int64_t at = ((r->first + p) * H + h) * K, to = (p * H + h) * K;
			const double complex u = real_at(x, at + a) + I * real_at(x, at + b), v = y[to + a] + I * y[to + b];
			if (part && !part->in[h])
				continue;
			r->z[p] += v * conj(u);
			ex += creal(u * conj(u));
			ey += creal(v * conj(v));
		}
		sum += cabs(r->z[p]);
		apart += r->z[p] * cexp(-I * sound * (double)(r->first + p));
	}
	r->coherence = fmin(r->coherence, ex > 0 && ey > 0 ? sum / sqrt(ex * ey) : 1);
	r->apart[i] = carg(apart);
	double f = 0;
	for (int64_t lag = 1; lag < r->tokens; lag *= 2) {
		double complex turn = 0;
		for (int64_t p = 0; p + lag < r->tokens; p++)
			turn += r->z[p + lag] * conj(r->z[p]);
		const double seen = carg(turn);
		f = (seen + TURN * round((f * (double)lag - seen) / TURN)) / (double)lag;
	}
	r->f[i] = f;
	for (int64_t p = 0; p < r->tokens; p++)
		all += r->z[p] * cexp(-I * f * (double)p);
	r->start[i] = carg(all);
}

/* sound (pairs). */
static vn_status look(vn_trial *t, turning *r, const float *sound, vn_error *err)
{
	const vn_tensor *c = vn_probe_candidate(t->probe);
	const size_t     n = (size_t)vn_shape_count(&c->shape);
	vn_tensor        x;
	vn_status        st = vn_probe_input(t->probe, 0, VN_PROBE_OWN, &x, err);

	if (st)
		return st;
	r->coherence = 0;
	r->first = vn_probe_first(t->probe);
	if (x.shape.rank != 3 || c->shape.rank != 3 || x.shape.dim[1] != c->shape.dim[1] || x.shape.dim[2] != c->shape.dim[2] || r->pairs > PAIRS_MAX
	    || r->first + c->shape.dim[0] > x.shape.dim[0])
		return VN_OK;
	r->tokens = c->shape.dim[0];
	double *y = malloc(n * sizeof *y);
	r->z = malloc((size_t)r->tokens * sizeof *r->z);
	if (!y || !r->z)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for a rotation");
	else {
		vn_to_f64(y, c->data, c->dtype, n);
		r->coherence = 1;
		for (int i = 0; i < r->pairs; i++)
			one_pair(r, t->part, &x, y, i, (double)sound[i]);
	}
	free(y);
	free(r->z);
	return st;
}

/* ---- what may have made such turns ------------------------------------------------------------------ */

static void made_by(vn_hypothesis *h, const vn_rope *rope)
{
	vn_made_put(h, "type", (double)rope->type);
	vn_made_put(h, "rotary_dim", rope->rotary_dim);
	vn_made_put(h, "pairing", rope->pairing);
	vn_made_put(h, "one_position", rope->one_position);
	vn_made_put(h, "step_offset", rope->step_offset);
	vn_made_put(h, "turn", rope->turn);
	vn_made_put(h, "theta", rope->theta);
	vn_made_put(h, "factor", rope->factor);
	if (rope->type == VN_ROPE_LLAMA3) {
		vn_made_put(h, "low_freq_factor", rope->low_freq_factor);
		vn_made_put(h, "high_freq_factor", rope->high_freq_factor);
		vn_made_put(h, "original_context", rope->original_context);
	}
	vn_made_put(h, "offset", rope->offset);
}

/* Columns that are paired otherwise too are a mistake of their own. */
static bool paired_otherwise(const vn_trial *t, int node, const vn_rope *rope)
{
	return rope->pairing != vn_probe_plan(t->probe)->node[node].c.rope.rope.pairing;
}

#define AND_PAIRED "; and pairs columns 2i and 2i + 1"

static vn_status try_rope(vn_trial *t, int node, const vn_rope *rope, const char *id, vn_hypothesis *h, vn_error *err)
{
	const bool both = paired_otherwise(t, node, rope);
	const size_t n = strlen(h->words);

	snprintf(h->id, sizeof h->id, "%s%s", both ? "R1+" : "", id);
	if (both)
		snprintf(h->words + n, sizeof h->words - n, AND_PAIRED);
	h->node = node;
	made_by(h, rope);
	return vn_try_made(t, h, err);
}

/* Without scaling log f is linear in i. */
static double plain_theta(const turning *r)
{
	double xy = 0, xx = 0;

	for (int i = 1; i < r->pairs; i++)
		if (r->f[i] > SLOWEST) {
			const double x = 2.0 * i / r->rope.rotary_dim, w = r->f[i] * r->f[i]; /* what turns fast is known best */
			xy -= w * x * log(r->f[i]);
			xx += w * x * x;
		}
	return xx > 0 ? exp(xy / xx) : 0;
}

/* A number of a scaling that is read off the frequencies. */
typedef enum scaled_by { BY_THETA, BY_FACTOR, BY_CONTEXT, BY_LOW, BY_HIGH, N_SCALED_BY } scaled_by;

static void set(vn_rope *rope, scaled_by what, double x)
{
	double *const at[] = { &rope->theta, &rope->factor, NULL, &rope->low_freq_factor, &rope->high_freq_factor };

	if (at[what])
		*at[what] = x;
	else
		rope->original_context = (int)lround(x);
}

static double got(const vn_rope *rope, scaled_by what)
{
	const double x[] = { rope->theta, rope->factor, rope->original_context, rope->low_freq_factor, rope->high_freq_factor };
	return x[what];
}

/* How far the frequencies of a rope with this number are from those that were seen: a sum of squares. room (pairs). */
static double off_by(const turning *r, const vn_list *lists, scaled_by what, double x, float *room)
{
	vn_rope rope = r->rope;
	double  sum = 0;
	float   af;

	set(&rope, what, x);
	if (rope.type == VN_ROPE_LLAMA3 && !(rope.low_freq_factor < rope.high_freq_factor))
		return (double)INFINITY;
	vn_rope_frequencies(&rope, lists, r->tokens, room, &af);
	for (int i = 0; i < r->pairs; i++)
		sum += (r->f[i] - (double)room[i]) * (r->f[i] - (double)room[i]);
	return sum;
}

#define THETA_MIN 1.01
#define THETA_MAX 1e12
#define THETA_MAX_OF_ONE 1e9 /* far above those of models; of one token pairs that hardly turn are met by any that is large enough */
#define FROM_TWO 0.3 /* a context is a power of two, if one is so near at what was read off; */
#define NEAR_TWO 0.1 /* so is a factor */

/* With scaling it depends on theta which frequencies are scaled: looked for, on a grid that is made finer around the best. The numbers of
 * Llama 3's scaling likewise. */
static double scaled_number(const turning *r, const vn_list *lists, scaled_by what, float *room)
{
	enum { GRID = 512, FINER = 4 };
	static const double least_of[] = { THETA_MIN, THETA_MIN, 16, 0.01, 0.01 }, most_of[] = { THETA_MAX, THETA_MAX, 1e8, 1e4, 1e4 };
	double low = log(least_of[what]), high = log(most_of[what]), best = low;

	for (int k = 0; k < FINER; k++) {
		const double step = (high - low) / (GRID - 1);
		double       least = (double)INFINITY;
		for (int i = 0; i < GRID; i++) {
			const double off = off_by(r, lists, what, exp(low + i * step), room);
			if (off < least) {
				least = off;
				best = low + i * step;
			}
		}
		low = fmax(best - 2 * step, log(least_of[what]));
		high = fmin(best + 2 * step, log(most_of[what]));
	}
	return exp(best);
}

/* One token says how far it is turned, but for whole turns: the theta whose pairs at its position are nearest to that together. */
static double theta_of_one(const turning *r, const vn_list *lists, const float *sound, float *room)
{
	enum { GRID = 1 << 14, FINER = 4 };
	double low = log(THETA_MIN), high = log(THETA_MAX), best = low; /* to the end, so that it is seen to be there */
	int    n = GRID;

	for (int k = 0; k < FINER; k++, n = 128) {
		const double step = (high - low) / (n - 1);
		double       least = (double)INFINITY;
		for (int i = 0; i < n; i++) {
			vn_rope rope = r->rope;
			double  miss = 0;
			float   af;
			rope.theta = exp(low + i * step);
			vn_rope_frequencies(&rope, lists, r->first + r->tokens, room, &af);
			for (int f = 0; f < r->pairs; f++)
				miss += 1 - cos(r->apart[f] - ((double)room[f] - (double)sound[f]) * (double)r->first);
			if (miss < least) {
				least = miss;
				best = low + i * step;
			}
		}
		low = fmax(best - 2 * step, log(THETA_MIN));
		high = fmin(best + 2 * step, log(THETA_MAX));
	}
	return best < log(THETA_MAX_OF_ONE) ? exp(best) : 0;
}

static vn_status try_theta(vn_trial *t, int node, vn_rope rope, double theta, const char *how, vn_error *err)
{
	char      text[32];
	vn_status st = VN_OK;

	if (!(theta > THETA_MIN && theta < THETA_MAX))
		return VN_OK;
	for (int digits = 1; !st && digits <= 6 && !vn_trial_answered(t); digits++) { /* as few as will do: a person wrote it */
		vn_hypothesis h = { 0 };
		snprintf(text, sizeof text, "%.*g", digits, theta);
		rope.theta = atof(text);
		if (fabs(rope.theta / theta - 1) > 0.02)
			continue;
		vn_hypothesis_say(&h, "RoPE with theta %g%s", rope.theta, how);
		st = try_rope(t, node, &rope, "R2", &h, err);
	}
	return st;
}

/* One number, where it is another than the model's; *fits: is it within the floor? */
static vn_status try_scaled(vn_trial *t, int node, vn_rope rope, scaled_by what, double x, bool *fits, vn_error *err)
{
	static const char *const says[] = { "", "RoPE scaled as Llama 3's by a factor of %g", "RoPE scaled as Llama 3's, of an original context of %g",
	                                    "RoPE scaled as Llama 3's, with a low frequency factor of %g", "RoPE scaled as Llama 3's, with a high frequency factor of %g" };
	vn_hypothesis h = { 0 };
	vn_status     st;

	if (x == got(&rope, what))
		return VN_OK;
	set(&rope, what, x);
	vn_hypothesis_say(&h, says[what], x);
	st = try_rope(t, node, &rope, "R6", &h, err);
	*fits = vn_trial_fits(t, &h);
	return st;
}

/* Llama 3's scaling by another number: the power of two beside what was read off for a factor or a context, else as few digits as will do. Where few
 * pairs turn far enough for their frequencies to be known, another theta, or another of these numbers, does as well: all are tried. */
static vn_status fit_scaling(vn_trial *t, int node, const turning *r, const vn_list *lists, float *room, vn_error *err)
{
	vn_status st = VN_OK;

	for (scaled_by what = BY_FACTOR; !st && what < N_SCALED_BY; what++) {
		const double x = scaled_number(r, lists, what, room), two = exp2(round(log2(x)));
		bool         fits = false;
		char         text[32];
		if (what <= BY_CONTEXT && fabs(two / x - 1) < (what == BY_CONTEXT ? FROM_TWO : NEAR_TWO))
			st = try_scaled(t, node, r->rope, what, two, &fits, err);
		for (int digits = 1; !st && digits <= 4 && !fits; digits++) {
			snprintf(text, sizeof text, "%.*g", digits, x);
			if (fabs(atof(text) / x - 1) <= 0.02)
				st = try_scaled(t, node, r->rope, what, what == BY_CONTEXT ? round(atof(text)) : atof(text), &fits, err);
		}
	}
	return st;
}

static vn_status fit_theta(vn_trial *t, int node, const turning *r, const vn_list *lists, float *room, vn_error *err)
{
	const bool scaled = r->rope.type != VN_ROPE_DEFAULT;
	vn_rope    plain = r->rope;
	vn_status  st = scaled ? try_theta(t, node, r->rope, scaled_number(r, lists, BY_THETA, room), "", err) : VN_OK;

	if (!st && r->rope.type == VN_ROPE_LLAMA3)
		st = fit_scaling(t, node, r, lists, room, err);
	plain.type = VN_ROPE_DEFAULT;
	return st || vn_trial_answered(t) ? st : try_theta(t, node, plain, plain_theta(r), scaled ? " and without its scaling" : "", err);
}

/* Positions that are c too high, of all tokens or of those behind the first call. sound (pairs). */
static vn_status fit_offset(vn_trial *t, int node, const turning *r, const float *sound, vn_error *err)
{
	vn_hypothesis h = { .id = "R3", .node = node }, later = { .id = "R3b", .node = node };
	vn_rope       rope = r->rope;
	int           best = 0;
	double        least = (double)INFINITY;
	vn_status     st;

	for (int c = -OFFSETS; c <= OFFSETS; c++) {
		double miss = 0;
		for (int i = 0; i < r->pairs; i++)
			miss += 1 - cos(r->apart[i] - c * (double)sound[i]);
		if (miss < least - 1e-9) {
			least = miss;
			best = c;
		}
	}
	if (best == 0)
		return VN_OK;
	made_by(&h, &rope);
	if (paired_otherwise(t, node, &rope)) {
		snprintf(h.id, sizeof h.id, "R1+R3");
		st = vn_try_whole(t, &h, rope.offset + best, rope.offset - OFFSETS, rope.offset + OFFSETS, "positions count from %s" AND_PAIRED, err);
	} else {
		st = vn_try_whole(t, &h, rope.offset + best, rope.offset - OFFSETS, rope.offset + OFFSETS, "positions count from %s", err);
	}
	if (st || r->first == 0)
		return st;
	rope.step_offset = best;
	later.made.later = true;
	vn_hypothesis_say(&later, "positions behind the first call are %d too %s", abs(best), best > 0 ? "high" : "low");
	return try_rope(t, node, &rope, "R3b", &later, err);
}

/* All tokens are turned alike: as one that stands where? Not at 0: that is no rotation (R12). sound (pairs). */
static vn_status fit_position(vn_trial *t, int node, const turning *r, const float *sound, vn_error *err)
{
	vn_rope       rope = r->rope;
	vn_hypothesis h = { 0 };
	double        least = (double)INFINITY;

	for (int i = 0; i < r->pairs; i++)
		if (fabs(r->f[i]) * (double)r->tokens > STILL)
			return VN_OK;
	for (int c = 0; c <= OFFSETS; c++) {
		double miss = 0;
		for (int i = 0; i < r->pairs; i++)
			miss += 1 - cos(r->start[i] - c * (double)sound[i]);
		if (miss < least) {
			least = miss;
			rope.offset = c;
		}
	}
	if (!rope.offset)
		return VN_OK;
	rope.one_position = 1;
	vn_hypothesis_say(&h, "every token is rotated as token %d", rope.offset);
	return try_rope(t, node, &rope, "R3", &h, err);
}

static vn_status fit_stretch(vn_trial *t, int node, const turning *r, const float *sound, vn_error *err)
{
	vn_rope rope = r->rope;
	double  xy = 0, xx = 0;

	for (int i = 0; i < r->pairs; i++) {
		xy += r->f[i] * (double)sound[i];
		xx += (double)sound[i] * (double)sound[i];
	}
	const double by = xy / xx;
	if (!(fabs(by) > 1e-4) || fabs(by - 1) < 1e-4)
		return VN_OK;
	/* A person wrote it, or one over it; else as it was measured. */
	const double as[] = { vn_three_digits(by), 1 / vn_three_digits(1 / by), by };
	vn_status    st = VN_OK;
	for (size_t i = 0; !st && i < sizeof as / sizeof *as && !vn_trial_answered(t); i++) {
		vn_hypothesis h = { 0 };
		rope.turn = (r->rope.turn != 0 ? r->rope.turn : 1) * as[i];
		vn_hypothesis_say(&h, "every angle is %.5g times what it should be", rope.turn);
		st = try_rope(t, node, &rope, "R5", &h, err);
	}
	return st;
}

/* Fewer columns turned, or more: what is turned as a part of K is commonly a half or a quarter. */
static vn_status fit_width(vn_trial *t, int node, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const int      K = p->value[p->node[node].out[0]].size[2], now = p->node[node].c.rope.rope.rotary_dim;
	vn_status      st = VN_OK;

	for (int part = 1; !st && part <= 8; part++) {
		vn_rope rope = p->node[node].c.rope.rope;
		vn_hypothesis h = { 0 };
		rope.rotary_dim = K * part / 8;
		if (rope.rotary_dim < 2 || rope.rotary_dim % 2 || rope.rotary_dim == now || (K * part) % 8)
			continue;
		vn_hypothesis_say(&h, "RoPE turns %d of %d columns", rope.rotary_dim, K);
		st = try_rope(t, node, &rope, "R4", &h, err);
	}
	return st;
}

vn_status vn_fit_rope(vn_trial *t, int node, vn_error *err)
{
	const vn_plan *p = vn_probe_plan(t->probe);
	const int      root = vn_plan_root(p, vn_plan_find(p, t->c->point[t->x->point].name));
	turning       *r = calloc(1, sizeof *r);
	float         *sound = malloc(PAIRS_MAX * sizeof *sound), *room = malloc(PAIRS_MAX * sizeof *room), af;
	vn_status      st = r && sound && room ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for a rotation");

	for (int pairing = 0; !st && pairing < VN_PAIR_ACROSS && p->value[root].node == node && p->node[node].c.rope.rope.rotary_dim / 2 <= PAIRS_MAX; pairing++) {
		r->rope = p->node[node].c.rope.rope;
		r->rope.pairing = pairing;
		r->pairs = r->rope.rotary_dim / 2;
		vn_rope_frequencies(&r->rope, p->list, vn_probe_tokens(t->probe), sound, &af);
		if ((st = look(t, r, sound, err)) || r->coherence < COHERENT)
			continue;
		if (r->tokens >= SEVERAL && (st = fit_theta(t, node, r, p->list, room, err)))
			break;
		if (r->tokens >= SEVERAL && ((st = fit_position(t, node, r, sound, err)) || vn_trial_answered(t)))
			break;
		if (!(st = fit_offset(t, node, r, sound, err)) && r->tokens >= SEVERAL)
			st = fit_stretch(t, node, r, sound, err);
		else if (!st && r->tokens == 1 && r->first > 0 && !vn_trial_answered(t))
			st = try_theta(t, node, r->rope, theta_of_one(r, p->list, sound, room), "", err);
	}
	free(sound);
	free(room);
	free(r);
	return st ? st : fit_width(t, node, err);
}
