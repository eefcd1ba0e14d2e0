/* scores.c: the metrics of logits: argmax, top 5, and the divergence of the two softmaxes, row by
 * row; see metrics.h.
 *
 * Two scores of the reference that are closer than a 64th of the standard deviation of their row
 * are a tie, and the candidate may choose either: half precision moves scores by about that much,
 * so the choice says nothing. Only the reference sets this scale.
 *
 * A score of minus infinity on both sides (a token that may not be chosen) has no weight; any other
 * score that is not finite makes the row's divergence NaN.
 */
#include "compare/metrics/average.h"
#include "compare/metrics/pages.h"
#include "compare/metrics/scores.h"
#include "compare/metrics/team.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NO_WEIGHT (-DBL_MAX)
#define TIE       (1.0 / 64)

static void top_add(vn_top *t, double x, int64_t at)
{
	if (t->n == VN_TOP && !(x > t->score[VN_TOP - 1]))
		return;
	int i = t->n < VN_TOP ? t->n++ : VN_TOP - 1;
	for (; i > 0 && x > t->score[i - 1]; i--) {
		t->score[i] = t->score[i - 1];
		t->at[i] = t->at[i - 1];
	}
	t->score[i] = x;
	t->at[i] = at;
}

/* Loads both sides of a block as double, with weight zero for non-finite scores. Returns true when
 * the only such scores are minus infinity on both sides. */
static bool load_scores(const vn_pair *p, int64_t at, size_t n, double *r, double *c)
{
	bool good = true;
	vn_block_double(p, 0, at, n, r);
	vn_block_double(p, 1, at, n, c);
	for (size_t i = 0; i < n; i++) {
		if (isfinite(r[i]) && isfinite(c[i]))
			continue;
		if (!(r[i] < 0 && r[i] == c[i]))
			good = false;
		r[i] = c[i] = NO_WEIGHT;
	}
	return good;
}

static void add_score(vn_scores_sweep *w, double x)
{
	if (w->n++ == 0)
		w->first[0] = x;
	x -= w->first[0];
	w->sum += x;
	w->squares += x * x;
}

static bool loaded_by_kernels(vn_dtype d)
{
	return d == VN_F32 || d == VN_F16 || d == VN_BF16;
}

static vn_side side_as_is(const vn_scores_sweep *w, int side, int64_t i)
{
	return (vn_side) { vn_pair_at(w->p, side, w->at + i), w->p->dtype[side] };
}

static double score_at(const vn_scores_sweep *w, int side, int64_t i)
{
	double x[2];
	load_scores(w->p, w->at + i, 1, &x[0], &x[1]);
	return x[side];
}

static size_t block_size(const vn_scores_sweep *w, int64_t i)
{
	return (size_t)(w->width - i < VN_BLOCK ? w->width - i : VN_BLOCK);
}

static double standard_deviation(const vn_scores_sweep *s)
{
	const double mean = s->sum / s->n, var = s->squares / s->n - mean * mean;
	return s->n > 0 && var > 0 ? sqrt(var) : 0.0;
}

/* x - log(1 + x) without cancellation for |x| < 1/8, by a series with a remainder below
 * 2^-53 of the result. */
static double second_order(double x)
{
	double sum = 0;
	for (int i = 19; i >= 2; i--)
		sum = 1.0 / i - x * sum;
	return x * x * sum;
}

/* KL = sum p log(p/q) is small although its terms p y, with y = log(p/q) of either sign, are not.
 * Instead we sum p (e^-y - 1 + y), which is never negative and has the same total, because sum p
 * e^-y = sum q = 1. The row's constant in y, the log of the sums of exp, is first guessed from the
 * scores where r is highest. The sum u of p (e^-y - 1), which is 0 for the right y, tells how far
 * off the guess was and what it added: u - log(1 + u). If that is most of the total, a second sweep
 * uses the right y. */
static void measure_divergence(const vn_scores_sweep *w, double at_ref, vn_scores_row *out)
{
	const double rm = w->top[0].score[0], cm = w->top[1].score[0];
	double       r[VN_BLOCK], c[VN_BLOCK], shift = cm - at_ref < 4 ? rm - at_ref : rm - cm, kl = 0;

	for (int sweep = 0; sweep < 3; sweep++) {
		vn_soft s = { .rm = rm, .cm = cm, .shift = shift };
		for (int64_t i = 0; i < w->width; i += VN_BLOCK) {
			const size_t n = block_size(w, i);
			if (w->as_is) {
				w->p->kernel->soft(side_as_is(w, 0, i), side_as_is(w, 1, i), n, &s);
				continue;
			}
			load_scores(w->p, w->at + i, n, r, c);
			w->p->kernel->soft((vn_side) { r, VN_F64 }, (vn_side) { c, VN_F64 }, n, &s);
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

vn_scores_sweep vn_scores_sweep_begin(const vn_pair *p, int64_t at, int64_t width)
{
	vn_scores_sweep w = { .p = p, .at = at, .width = width, .finite = true };

	w.as_is = loaded_by_kernels(p->dtype[0]) && loaded_by_kernels(p->dtype[1]);
	for (int side = 0; side < 2 && w.as_is; side++)
		w.first[side] = score_at(&w, side, 0);
	return w;
}

void vn_scores_sweep_block(vn_scores_sweep *w, int64_t i, size_t n)
{
	const vn_metric_kernel *k = w->p->kernel;
	const vn_side           side[2] = { side_as_is(w, 0, i), side_as_is(w, 1, i) };
	vn_score_sums           s;

	if (!w->as_is)
		return;
	k->scores(side[0], side[1], n, w->first, &s);
	w->as_is = s.finite;
	w->n += (double)n;
	w->sum += s.sum;
	w->squares += s.squares;
	for (int j = 0; j < 2 && s.finite; j++) {
		vn_top *t = &w->top[j];
		for (size_t m = 0; m < n && (t->n < VN_TOP || s.max[j] > t->score[VN_TOP - 1]); m++)
			if ((m = k->above(side[j], n, m, t->n < VN_TOP ? -(double)INFINITY : t->score[VN_TOP - 1])) < n)
				top_add(t, score_at(w, j, i + (int64_t)m), i + (int64_t)m);
	}
}

/* The first sweep of a row with scores that are not finite, or in another format. */
static void sweep_row(vn_scores_sweep *w)
{
	double r[VN_BLOCK], c[VN_BLOCK];
	for (int64_t i = 0; i < w->width; i += VN_BLOCK) {
		const size_t n = block_size(w, i);
		w->finite = load_scores(w->p, w->at + i, n, r, c) && w->finite;
		for (size_t j = 0; j < n; j++) {
			top_add(&w->top[0], r[j], i + (int64_t)j);
			top_add(&w->top[1], c[j], i + (int64_t)j);
			if (r[j] > NO_WEIGHT)
				add_score(w, r[j]);
		}
	}
}

vn_scores_row vn_scores_sweep_end(const vn_scores_sweep *first)
{
	vn_scores_sweep w = *first;

	if (!w.as_is) {
		w = (vn_scores_sweep) { .p = w.p, .at = w.at, .width = w.width, .finite = true };
		sweep_row(&w);
	}
	const vn_top *tr = &w.top[0], *tc = &w.top[1];
	vn_scores_row out = { .finite = w.finite, .argmax = { tr->at[0], tc->at[0] }, .of = tr->n };
	for (int i = 0; i < tr->n; i++)
		for (int j = 0; j < tc->n; j++)
			out.shared += tr->at[i] == tc->at[j];
	if (!w.finite) {
		out.kl = out.norm[0] = out.norm[1] = NAN;
		out.shared = 0;
		return out;
	}
	out.tie = tr->score[0] - score_at(&w, 0, tc->at[0]) <= TIE * standard_deviation(&w);
	measure_divergence(&w, score_at(&w, 1, tr->at[0]), &out);
	return out;
}

vn_scores_row vn_scores_sweep_row(const vn_pair *p, int64_t at, int64_t width)
{
	vn_scores_sweep w = vn_scores_sweep_begin(p, at, width);

	for (int64_t i = 0; i < width && w.as_is; i += VN_BLOCK)
		vn_scores_sweep_block(&w, i, block_size(&w, i));
	return vn_scores_sweep_end(&w);
}

/* ---- all rows --------------------------------------------------------------------- */

bool vn_scores_begin(vn_scores *s, const vn_pair *p, int64_t width)
{
	s->width = width;
	s->rows = p->n / width;
	return (s->kl = calloc((size_t)s->rows + 1, sizeof *s->kl)) != NULL;
}

void vn_scores_add(vn_scores *s, int64_t row, const vn_scores_row *x)
{
	s->kl[row] = x->kl;
	s->agree += x->tie;
	s->strict += x->finite && x->argmax[0] == x->argmax[1];
	s->shared += x->shared;
	s->of += x->of;
}

void vn_scores_end(vn_scores *s, vn_measured *m)
{
	const int64_t rows = s->rows;
	m->argmax_strict = (double)s->strict / (double)rows;
	const vn_mean mean = vn_mean_of(s->kl, rows);
	m->kl_half = VN_Z95 * mean.error;
	m->worst_row = 0;
	for (int64_t i = 0; i < rows; i++)
		if (vn_ascending(&s->kl[i], &s->kl[m->worst_row]) > 0)
			m->worst_row = i;
	const double max = s->kl[m->worst_row];
	qsort(s->kl, (size_t)rows, sizeof *s->kl, vn_ascending);
	const double value[][2] = {
		{ VN_M_ARGMAX_AGREEMENT, (double)s->agree / (double)rows },
		{ VN_M_TOP5_AGREEMENT, (double)s->shared / (double)s->of },
		{ VN_M_KL_MEAN, mean.mean },
		{ VN_M_KL_P99, s->kl[vn_quantile_index(rows, 0.99)] },
		{ VN_M_KL_MAX, max },
	};
	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		m->has[(int)value[i][0]] = true;
		m->value[(int)value[i][0]] = value[i][1];
	}
}

void vn_scores_free(vn_scores *s)
{
	free(s->kl);
	s->kl = NULL;
}

/* What the threads of a separate pass share. */
typedef struct scores_pass {
	const vn_pair  *p;
	vn_scores      *scores;
	vn_job         *job;
	vn_window      *window; /* (threads) */
	vn_stretches    stretches;
	_Atomic bool    failed;
	_Atomic int64_t next;
} scores_pass;

static void score_some(void *ctx, int thread)
{
	scores_pass  *s = ctx;
	const int64_t width = s->scores->width;
	for (int64_t i, from, to; (i = s->next++) < s->scores->rows;) {
		vn_error why = { "" };
		vn_pair  here = *s->p;
		if (s->job->from[0].recording) {
			const vn_status st = s->failed ? VN_ERR_IO
			                               : vn_window_run(&s->window[thread], s->job, i * width, width, &why);
			if (st && !atomic_exchange(&s->failed, true)) {
				s->job->st = st;
				s->job->why = why;
			}
			if (st)
				continue;
			here = vn_window_of_run(&s->window[thread], s->p, i * width);
		}
		const vn_scores_row x = vn_scores_sweep_row(&here, i * width, width);
		vn_scores_add(s->scores, i, &x);
		if (vn_stretch_ends(&s->stretches, i, &from, &to))
			vn_pair_give_back(s->p, from * width, to * width);
	}
}

vn_status vn_measure_scores(const vn_pair *p, int threads, vn_window *windows, vn_job *job, vn_error *err)
{
	const int64_t width = job->ref.shape.dim[job->ref.shape.rank - 1], enough = p->n / VN_SLICE + 1; /* threads */
	const bool    parts = job->from[0].recording != NULL;
	VN_ENDS(vn_scores_free) vn_scores scores = { 0 };
	vn_stretches                      stretches = { 0 };
	bool                              room = vn_scores_begin(&scores, p, width);

	if (!parts)
		stretches = vn_stretches_of(p, scores.rows, width, threads);
	stretches.ended = calloc((size_t)stretches.count + 1, sizeof *stretches.ended);
	room = room && stretches.ended;
	for (int i = 0; room && i < threads && parts; i++)
		room = vn_window_holds(&windows[i], width);
	if (room) {
		scores_pass s = { .p = p, .scores = &scores, .job = job, .window = windows, .stretches = stretches };
		vn_team_run(threads < enough ? threads : (int)enough, score_some, &s);
		if (!parts && vn_pair_gives_back(p))
			vn_pair_give_back(p, 0, p->n);
		vn_scores_end(&scores, &job->m);
	}
	free(stretches.ended);
	return room ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for %lld rows of scores", (long long)scores.rows);
}
