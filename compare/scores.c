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
#include "compare/average.h"
#include "compare/measure.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define TOP 5
#define NO_WEIGHT (-1e30)
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
static bool load_scores(const vn_kernel *k, const vn_pair *p, int64_t at, size_t n, double *r, double *c)
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

/* Of the reference's scores that have weight. */
typedef struct spread {
	double n, sum, squares;
} spread;

static double deviation(const spread *s)
{
	const double mean = s->sum / s->n, var = s->squares / s->n - mean * mean;
	return s->n > 0 && var > 0 ? sqrt(var) : 0.0;
}

vn_score_row vn_score_one(const vn_kernel *k, const vn_pair *p, int64_t at, int64_t width)
{
	double  r[VN_BLOCK], c[VN_BLOCK], at_cand = 0; /* the reference's score where the candidate is highest */
	top     tr = { 0 }, tc = { 0 };
	vn_soft s = { 0 };
	spread  of_r = { 0 };
	vn_score_row out = { .finite = true };

	for (int64_t i = 0; i < width; i += VN_BLOCK) {
		const size_t n = (size_t)(width - i < VN_BLOCK ? width - i : VN_BLOCK);
		out.finite = load_scores(k, p, at + i, n, r, c) && out.finite;
		for (size_t j = 0; j < n; j++) {
			top_add(&tr, r[j], i + (int64_t)j);
			if (r[j] > NO_WEIGHT) {
				of_r.n++;
				of_r.sum += r[j];
				of_r.squares += r[j] * r[j];
			}
			if (tc.n == 0 || c[j] > tc.score[0])
				at_cand = r[j];
			top_add(&tc, c[j], i + (int64_t)j);
		}
	}
	for (int64_t i = 0; i < width; i += VN_BLOCK) {
		const size_t n = (size_t)(width - i < VN_BLOCK ? width - i : VN_BLOCK);
		load_scores(k, p, at + i, n, r, c);
		k->soft(r, c, n, tr.score[0], tc.score[0], &s);
	}
	out.of = tr.n;
	for (int i = 0; i < tr.n; i++)
		for (int j = 0; j < tc.n; j++)
			out.shared += tr.at[i] == tc.at[j];
	out.argmax[0] = tr.at[0];
	out.argmax[1] = tc.at[0];
	out.tie = out.finite && tr.score[0] - at_cand <= TIE * deviation(&of_r);
	out.norm[0] = tr.score[0] + log(s.zr);
	out.norm[1] = tc.score[0] + log(s.zc);
	/* sum p (log p - log q): the maxima and the logs of the sums are constants of the row. */
	out.kl = s.t / s.zr - (tr.score[0] - tc.score[0]) - (log(s.zr) - log(s.zc));
	if (out.kl < 0 && out.kl > -1e-9)
		out.kl = 0; /* rounding; a divergence is never negative */
	if (!out.finite) {
		out.kl = out.norm[0] = out.norm[1] = NAN;
		out.shared = 0;
	}
	return out;
}

vn_status vn_measure_scores(const vn_kernel *k, const vn_pair *p, int64_t width, int threads,
                            vn_measured *m, vn_error *err)
{
	const int64_t rows = p->n / width, stretch = VN_GIVE_BACK / width + 1;
	int64_t agree = 0, strict = 0, shared = 0, of = 0;
	double *kl = malloc((size_t)rows * sizeof *kl);
	if (!kl)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %lld rows of scores", (long long)rows);

	#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) reduction(+ : agree, strict, shared, of)
	for (int64_t i = 0; i < rows; i++) {
		const vn_score_row x = vn_score_one(k, p, i * width, width);
		kl[i] = x.kl;
		agree += x.tie;
		strict += x.finite && x.argmax[0] == x.argmax[1];
		shared += x.shared;
		of += x.of;
		if (p->mapped && (i + 1) % stretch == 0 && i >= 2 * stretch)
			vn_pair_give_back(p, (i + 1 - 2 * stretch) * width, (i + 1 - stretch) * width);
	}
	m->argmax_strict = (double)strict / (double)rows;
	const vn_mean mean = vn_mean_of(kl, rows);
	m->kl_half = VN_Z95 * mean.error;
	m->worst_row = 0;
	for (int64_t i = 0; i < rows; i++)
		if (vn_ascending(&kl[i], &kl[m->worst_row]) > 0)
			m->worst_row = i;
	const double max = kl[m->worst_row];
	qsort(kl, (size_t)rows, sizeof *kl, vn_ascending);
	const double value[][2] = {
		{ VN_M_ARGMAX_AGREEMENT, (double)agree / (double)rows },
		{ VN_M_TOP5_AGREEMENT, (double)shared / (double)of },
		{ VN_M_KL_MEAN, mean.mean },
		{ VN_M_KL_P99, kl[vn_rank(rows, 0.99)] },
		{ VN_M_KL_MAX, max },
	};
	for (size_t i = 0; i < sizeof value / sizeof *value; i++) {
		m->has[(int)value[i][0]] = true;
		m->value[(int)value[i][0]] = value[i][1];
	}
	free(kl);
	return VN_OK;
}
