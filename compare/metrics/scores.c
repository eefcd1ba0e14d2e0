/* scores.c: the metrics of logits: argmax, top 5, and the divergence of the
 * two softmaxes, row by row; see metrics.h.
 *
 * Two scores of the reference that are closer than a 64th of the standard
 * deviation of their row are a tie, and the candidate may choose either: half
 * precision moves scores by about that much, and which of the two it lifts
 * says nothing. The reference alone sets this scale.
 *
 * A score of minus infinity on both sides (a token that may not be chosen) has
 * no weight; any other non-finite score makes the row's divergence NaN.
 */
#include "compare/metrics/average.h"
#include "compare/metrics/pages.h"
#include "compare/metrics/team.h"
#include "compare/metrics/window.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TOP 5
#define NO_WEIGHT (-DBL_MAX)
#define TIE       (1.0 / 64)

typedef struct top {
	int     n;
	double  score[TOP]; /* falling; of equal scores the first in the row comes first */
	int64_t at[TOP];
} top;

static void top_add(top *t, double x, int64_t at)
{
	if (t->n == TOP && !(x > t->score[TOP - 1]))
		return;
	int i = t->n < TOP ? t->n++ : TOP - 1;
	for (; i > 0 && x > t->score[i - 1]; i--) {
		t->score[i] = t->score[i - 1];
		t->at[i] = t->at[i - 1];
	}
	t->score[i] = x;
	t->at[i] = at;
}

/* Both sides of a block; true when no score but a shared minus infinity is non-finite. */
static bool load_scores(const vn_metric_kernel *k, const vn_pair *p, int64_t at, size_t n, double *r, double *c)
{
	bool good = true;
	vn_block_double(k, p, 0, at, n, r);
	vn_block_double(k, p, 1, at, n, c);
	for (size_t i = 0; i < n; i++) {
		if (isfinite(r[i]) && isfinite(c[i]))
			continue;
		if (!(r[i] < 0 && r[i] == c[i]))
			good = false;
		r[i] = c[i] = NO_WEIGHT;
	}
	return good;
}

/* Of the reference's scores that have weight, less the first of them: what they share takes no digits. */
typedef struct spread {
	double n, first, sum, squares;
} spread;

static void spread_add(spread *s, double x)
{
	if (s->n++ == 0)
		s->first = x;
	x -= s->first;
	s->sum += x;
	s->squares += x * x;
}

static double deviation(const spread *s)
{
	const double mean = s->sum / s->n, var = s->squares / s->n - mean * mean;
	return s->n > 0 && var > 0 ? sqrt(var) : 0.0;
}

/* x - log(1 + x) without the digits that cancel, |x| < 1/8: the series, whose rest is below 2^-53 of it. */
static double second_order(double x)
{
	double sum = 0;
	for (int i = 19; i >= 2; i--)
		sum = 1.0 / i - x * sum;
	return x * x * sum;
}

/* KL = sum p log(p/q) is small where its terms are not: they are p y, y = log(p/q) of either sign. What is summed is
 * p (e^-y - 1 + y), which is never negative and comes to the same, sum p e^-y = sum q being 1. The constant of
 * the row in y, log of the sums of exp, is guessed first: c stands to r as it does where r is highest. By the
 * sum of p (e^-y - 1) = u, 0 when y is right, one knows how far off the guess was, and what it added to
 * the sum: u - log(1 + u). Where that is most of it a second sweep has the right y. */
static void divergence(const vn_metric_kernel *k, const vn_pair *p, int64_t at, int64_t width, double rm, double cm, double at_ref,
                       vn_score_row *out)
{
	double r[VN_BLOCK], c[VN_BLOCK], shift = cm - at_ref < 4 ? rm - at_ref : rm - cm, kl = 0;

	for (int sweep = 0; sweep < 3; sweep++) {
		vn_soft s = { 0 };
		for (int64_t i = 0; i < width; i += VN_BLOCK) {
			const size_t n = (size_t)(width - i < VN_BLOCK ? width - i : VN_BLOCK);
			load_scores(k, p, at + i, n, r, c);
			k->soft(r, c, n, rm, cm, shift, &s);
		}
		const double sum = s.h / s.zr, u = s.u / s.zr;
		out->norm[0] = rm + log(s.zr);
		out->norm[1] = cm + log(s.zc);
		const double off = fabs(u) < 0.125 ? log1p(u) : shift - (rm - cm) + log(s.zc / s.zr);
		kl = sum - (fabs(u) < 0.125 ? second_order(u) : u - off);
		if (sum <= 64 * kl)
			break;
		shift -= off;
	}
	out->kl = kl < 0 ? 0 : kl; /* rounding; a NaN stays */
}

vn_score_row vn_score_one(const vn_metric_kernel *k, const vn_pair *p, int64_t at, int64_t width)
{
	double  r[VN_BLOCK], c[VN_BLOCK];
	double  at_cand = 0, at_ref = 0; /* the reference's score where the candidate is highest, and the other way round */
	top     tr = { 0 }, tc = { 0 };
	spread  of_r = { 0 };
	vn_score_row out = { .finite = true };

	for (int64_t i = 0; i < width; i += VN_BLOCK) {
		const size_t n = (size_t)(width - i < VN_BLOCK ? width - i : VN_BLOCK);
		out.finite = load_scores(k, p, at + i, n, r, c) && out.finite;
		for (size_t j = 0; j < n; j++) {
			top_add(&tr, r[j], i + (int64_t)j);
			if (r[j] > NO_WEIGHT)
				spread_add(&of_r, r[j]);
			if (tc.n == 0 || c[j] > tc.score[0])
				at_cand = r[j];
			if (tr.n == 0 || r[j] > tr.score[0])
				at_ref = c[j];
			top_add(&tc, c[j], i + (int64_t)j);
		}
	}
	out.of = tr.n;
	for (int i = 0; i < tr.n; i++)
		for (int j = 0; j < tc.n; j++)
			out.shared += tr.at[i] == tc.at[j];
	out.argmax[0] = tr.at[0];
	out.argmax[1] = tc.at[0];
	out.tie = out.finite && tr.score[0] - at_cand <= TIE * deviation(&of_r);
	divergence(k, p, at, width, tr.score[0], tc.score[0], at_ref, &out);
	if (!out.finite) {
		out.kl = out.norm[0] = out.norm[1] = NAN;
		out.shared = 0;
	}
	return out;
}

typedef struct pass {
	const vn_metric_kernel *k;
	const vn_pair   *p;
	int64_t width, rows;
	double *kl; /* (rows) */
	vn_job    *job;
	vn_window *window; /* (threads) */
	vn_stretches stretches;
	_Atomic bool failed;
	_Atomic int64_t next, agree, strict, shared, of;
} pass;

static void score_some(void *ctx, int thread)
{
	pass *s = ctx;
	for (int64_t i, from, to; (i = s->next++) < s->rows;) {
		vn_error why = { "" };
		vn_pair  here = *s->p;
		if (s->job->from[0].recording) {
			const vn_status st = s->failed ? VN_ERR_IO : vn_window_run(&s->window[thread], s->job, i * s->width, s->width, &why);
			if (st && !atomic_exchange(&s->failed, true)) {
				s->job->st = st;
				s->job->why = why;
			}
			if (st)
				continue;
			here = vn_window_of_run(&s->window[thread], s->p, i * s->width);
		}
		const vn_score_row x = vn_score_one(s->k, &here, i * s->width, s->width);
		s->kl[i] = x.kl;
		s->agree += x.tie;
		s->strict += x.finite && x.argmax[0] == x.argmax[1];
		s->shared += x.shared;
		s->of += x.of;
		if (vn_stretch_ends(&s->stretches, i, &from, &to))
			vn_pair_give_back(s->p, from * s->width, to * s->width);
	}
}

vn_status vn_measure_scores(const vn_metric_kernel *k, const vn_pair *p, int threads, vn_window *windows, vn_job *job, vn_error *err)
{
	vn_measured  *m = &job->m;
	const int64_t width = job->ref.shape.dim[job->ref.shape.rank - 1];
	const int64_t rows = p->n / width, enough = p->n / VN_SLICE + 1; /* threads */
	vn_stretches stretches = job->from[0].recording ? (vn_stretches) { 0 } : vn_stretches_of(p, rows, width, threads);
	double *kl = calloc((size_t)rows + 1, sizeof *kl);
	stretches.ended = calloc((size_t)stretches.count + 1, sizeof *stretches.ended);
	bool    room = kl && stretches.ended;
	for (int i = 0; room && i < threads && job->from[0].recording; i++)
		room = vn_window_holds(&windows[i], width);
	if (!room) {
		free(stretches.ended);
		free(kl);
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld rows of scores", (long long)rows);
	}

	pass s = { .k = k, .p = p, .width = width, .rows = rows, .kl = kl, .job = job, .window = windows, .stretches = stretches };
	vn_team_run(threads < enough ? threads : (int)enough, score_some, &s);
	if (!job->from[0].recording && vn_pair_gives_back(p))
		vn_pair_give_back(p, 0, p->n);
	m->argmax_strict = (double)s.strict / (double)rows;
	const vn_mean mean = vn_mean_of(kl, rows);
	m->kl_half = VN_Z95 * mean.error;
	m->worst_row = 0;
	for (int64_t i = 0; i < rows; i++)
		if (vn_ascending(&kl[i], &kl[m->worst_row]) > 0)
			m->worst_row = i;
	const double max = kl[m->worst_row];
	qsort(kl, (size_t)rows, sizeof *kl, vn_ascending);
	const double value[][2] = {
		{ VN_M_ARGMAX_AGREEMENT, (double)s.agree / (double)rows },
		{ VN_M_TOP5_AGREEMENT, (double)s.shared / (double)s.of },
		{ VN_M_KL_MEAN, mean.mean },
		{ VN_M_KL_P99, kl[vn_rank(rows, 0.99)] },
		{ VN_M_KL_MAX, max },
	};
	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		m->has[(int)value[i][0]] = true;
		m->value[(int)value[i][0]] = value[i][1];
	}
	free(stretches.ended);
	free(kl);
	return VN_OK;
}
