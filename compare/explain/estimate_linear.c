/* estimate_linear.c: see estimate_linear.h. */
#include "compare/explain/estimate_linear.h"
#include "compare/explain/edit_matrix.h"
#include "compare/explain/fit.h"
#include "compare/explain/score.h"
#include "compare/explain/search.h"

#include "libref/plan/fault.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8, CHANNELS = 128 }; /* of a product that are looked at */
enum { RANKS = 32, PADDED = 512 }; /* the most that are tried */
enum { MATRIX_MOST = 1 << 24 };    /* the most numbers of a matrix that is tested whole */
#define LEFT  0.05                 /* of the error: more than a number that was read off leaves */
#define WHOLE 0.1                  /* a coefficient this near to 0 or 1 means that a rank is missing, or present */

typedef struct product {
	vn_explain_trial *t;
	const vn_node    *n;
	const vn_tensor  *own, *fine, *cand, *w, *bias; /* bias NULL: none */
	int               node;
	vn_point          point;
	int64_t           T, N, M; /* rows of the checkpoint, columns of its input, channels */
	int64_t           R, C;    /* of them are looked at */
	double           *x, *wc;  /* (R, N)  (C, N) */
	double           *error;   /* (R, C): found less expected */
} product;

static double at(const vn_tensor *t, int64_t i)
{
	double x;
	vn_to_f64(&x, (const char *)t->data + (size_t)i * vn_dtype_size(t->dtype), t->dtype, 1);
	return x;
}

static int64_t row_of(const product *p, int64_t i)
{
	return p->R < 2 ? 0 : (p->T - 1) * i / (p->R - 1);
}

static int64_t channel_of(const product *p, int64_t c)
{
	return p->M * c / p->C;
}

static double error_at(const product *p, int64_t row, int64_t channel)
{
	return at(p->cand, row * p->M + channel) - at(p->own, row * p->M + channel);
}

/* The hypothesis that a row of the table makes with this number. */
static vn_hypothesis with(const product *p, vn_finding finding, vn_mistake fault, double number)
{
	return (vn_hypothesis) { .finding = finding,
		                     .node = p->node,
		                     .change = { .kind = VN_BY_NUMBER, .number = { vn_mistake_fault(fault), number } } };
}

static bool fits_there(const product *p, vn_mistake fault)
{
	return !vn_fault_why_not(vn_mistake_fault(fault), p->t->site->plan, p->node);
}

/* ---- a bias ------------------------------------------------------------------------------------------- */

static vn_status fit_bias(product *p, vn_error *err)
{
	double eb = 0, bb = 0, ee = 0;

	if (!p->bias)
		return VN_OK;
	for (int64_t m = 0; m < p->M; m++) {
		const double b = at(p->bias, m);
		for (int64_t t = 0; t < p->T; t++) {
			const double e = error_at(p, t, m);
			eb += e * b;
			bb += b * b;
			ee += e * e;
		}
	}
	const double more = eb / bb;
	if (!(ee - more * eb <= LEFT * ee))
		return VN_OK;
	vn_hypothesis h = with(p, VN_BIAS_TIMES, VN_MISTAKE_W7, 1 + more);
	return vn_fit_digits(p->t, &h, 1 + more, err);
}

/* ---- ranks that are there ----------------------------------------------------------------------------- */

/* Solves the n equations a x = b. Returns false if they do not determine x. */
static bool solve(double *a, double *b, int n)
{
	for (int i = 0; i < n; i++) {
		int best = i;
		for (int k = i + 1; k < n; k++)
			best = fabs(a[k * n + i]) > fabs(a[best * n + i]) ? k : best;
		if (!(fabs(a[best * n + i]) > 0))
			return false;
		for (int k = 0; k <= n; k++) {
			double      *u = k < n ? &a[i * n + k] : &b[i], *v = k < n ? &a[best * n + k] : &b[best];
			const double z = *u;
			*u = *v;
			*v = z;
		}
		for (int k = i + 1; k < n; k++) {
			const double f = a[k * n + i] / a[i * n + i];
			for (int j = i; j < n; j++)
				a[k * n + j] -= f * a[i * n + j];
			b[k] -= f * b[i];
		}
	}
	for (int i = n - 1; i >= 0; i--) {
		for (int k = i + 1; k < n; k++)
			b[i] -= a[i * n + k] * b[k];
		b[i] /= a[i * n + i];
	}
	return true;
}

/* The part of each of n ranks' sums, and last of the bias, that is missing, by least squares.
 * part: (n + 1). */
static bool missing(const product *p, int n, double missing[RANKS + 1])
{
	const int     k = n + (p->bias != NULL);
	const int64_t each = p->N / n;
	double        a[(RANKS + 1) * (RANKS + 1)] = { 0 }, part[RANKS + 1];

	memset(missing, 0, (size_t)(n + 1) * sizeof *missing);
	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++) {
			for (int i = 0; i < n; i++) {
				part[i] = 0;
				for (int64_t j = i * each; j < (i + 1) * each; j++)
					part[i] += p->x[r * p->N + j] * p->wc[c * p->N + j];
			}
			part[n] = p->bias ? at(p->bias, channel_of(p, c)) : 0;
			for (int i = 0; i < k; i++) {
				missing[i] -= part[i] * p->error[r * p->C + c];
				for (int j = 0; j < k; j++)
					a[i * k + j] += part[i] * part[j];
			}
		}
	return solve(a, missing, k);
}

static bool is_whole(double x)
{
	return fabs(x - round(x)) < WHOLE && round(x) >= 0 && round(x) <= 1;
}

/* ---- inputs that are not in the sum -------------------------------------------------------------------- */

/* What is left of the error if the last `tail` inputs were not added. part: (R, C), the
 * contribution of the inputs after j. */
static double add_input(const product *p, int64_t j, double *part)
{
	double left = 0;

	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++) {
			double *s = &part[r * p->C + c];
			*s += p->x[r * p->N + j] * p->wc[c * p->N + j];
			left += (p->error[r * p->C + c] + *s) * (p->error[r * p->C + c] + *s);
		}
	return left;
}

static double error_of(const product *p)
{
	double ee = 0;

	for (int64_t i = 0; i < p->R * p->C; i++)
		ee += p->error[i] * p->error[i];
	return ee;
}

/* With this many ranks, the last rank's part looks like the end of a sum. */
enum { RANKS_LIKELY = 8 };

static vn_status fit_tail(product *p, vn_error *err)
{
	double *part = calloc((size_t)(p->R * p->C) + 1, sizeof *part), least = (double)INFINITY;
	int64_t best = 0;

	if (!part)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the end of a product");
	for (int64_t tail = 1; tail <= p->N / 2; tail++) {
		const double left = add_input(p, p->N - tail, part);
		best = left < least ? tail : best;
		least = fmin(least, left);
	}
	free(part);
	if (!(least <= LEFT * error_of(p)))
		return VN_OK;
	if (p->N % best == 0 && p->N / best <= RANKS_LIKELY && fits_there(p, VN_MISTAKE_P15)) {
		const int     n = (int)(p->N / best);
		vn_hypothesis rank = with(p, VN_RANKS_SUMMED, VN_MISTAKE_P15, VN_RANKS_MOST * (ldexp(1, n - 1) - 1) + n);
		rank.capture = p->t->went == VN_NOT_WENT_ON;
		const vn_status st = vn_try(p->t, &rank, err);
		if (st)
			return st;
	}
	vn_hypothesis h = { .finding = VN_INPUTS_MISSING,
		                .node = p->node,
		                .change = { .kind = VN_BY_MATRIX, .matrix = { .kind = VN_EDIT_TAIL, .n = (int)best } } };
	return vn_try(p->t, &h, err);
}

static vn_status fit_ranks(product *p, vn_error *err)
{
	vn_status st = VN_OK;

	for (int n = 2; !st && n <= RANKS && fits_there(p, VN_MISTAKE_P15) && !vn_answered(p->t); n++) {
		double gone[RANKS + 1], mask = 0;
		int    there = 0;
		bool   clear = p->N % n == 0 && n < p->R * p->C && missing(p, n, gone);
		for (int i = 0; clear && i <= n; i++) {
			clear = is_whole(gone[i]);
			there += i < n && gone[i] < 0.5;
			mask += i < n && gone[i] < 0.5 ? ldexp(1, i) : 0;
		}
		if (!clear || !there || there == n)
			continue;
		vn_hypothesis h = with(p, VN_RANKS_SUMMED, VN_MISTAKE_P15,
		                       (gone[n] > 0.5 ? -1 : 1) * (VN_RANKS_MOST * mask + n));
		h.capture = p->t->went == VN_NOT_WENT_ON;
		st = vn_try(p->t, &h, err);
	}
	return st;
}

/* ---- shards joined ------------------------------------------------------------------------------------ */

static bool off(const product *p, int64_t channel)
{
	double dd = 0, yy = 0;

	for (int64_t t = 0; t < p->T; t++) {
		const double e = error_at(p, t, channel), y = at(p->own, t * p->M + channel);
		dd += e * e;
		yy += y * y;
	}
	return !(dd <= VN_PEAK_LIMIT * p->t->x->unmodified.local.floor_token * yy);
}

/* A rank's shard of a fused product is correct up to its own length: from the first channel on,
 * or (in the second half) to the last. */
static vn_status fit_shards(product *p, vn_error *err)
{
	const bool gate = fits_there(p, VN_MISTAKE_P17_GATE), last = p->point == VN_POINT_UP_PROJ;
	int64_t    right = 0;

	if (!gate && !fits_there(p, VN_MISTAKE_P17))
		return VN_OK;
	while (right < p->M && !off(p, last ? p->M - 1 - right : right))
		right++;
	const int64_t ranks = right ? p->M / (gate ? right : 3 * right) : 0;
	if (ranks < 2 || ranks > RANKS || p->M % ranks)
		return VN_OK;
	vn_hypothesis h = with(p, VN_SHARDS_JOINED, gate ? VN_MISTAKE_P17_GATE : VN_MISTAKE_P17, (double)ranks);
	return vn_try(p->t, &h, err);
}

/* The element at row t, channel c if the outputs of n ranks were joined along the tokens. */
static int64_t joined(const product *p, int64_t n, int64_t t, int64_t c)
{
	const int64_t each = p->M / n, e = t * p->M + c, rank = e / (each * p->T);
	return e / each % p->T * p->M + rank * each + e % each;
}

static vn_status fit_axis(product *p, vn_error *err)
{
	const vn_step *s = vn_recording_step(p->t->c->opened.cand, p->t->c->result.point[p->t->x->point].step);
	double         ee = 0;

	if (!fits_there(p, VN_MISTAKE_P18_AXIS) || p->T < 2 || !s || s->tokens != p->T)
		return VN_OK;
	for (int64_t i = 0; i < p->R * p->C; i++)
		ee += p->error[i] * p->error[i];
	for (int64_t n = 2; n <= RANKS; n++) {
		double dd = 0;
		for (int64_t r = 0; r < p->R && p->M % n == 0; r++)
			for (int64_t c = 0; c < p->C; c++) {
				const int64_t t = row_of(p, r), m = channel_of(p, c);
				const double  d = at(p->cand, t * p->M + m) - at(p->own, joined(p, n, t, m));
				dd += d * d;
			}
		if (p->M % n || !(dd <= LEFT * ee))
			continue;
		vn_hypothesis h = with(p, VN_SHARDS_ALONG_TOKENS, VN_MISTAKE_P18_AXIS, (double)n);
		return vn_try(p->t, &h, err);
	}
	return VN_OK;
}

/* For each of n blocks of channels, the block that is nearest to it: the ranks in another order.
 * less: without the bias, which stays where it is. */
static double nearest(const product *p, int n, bool less, int from[RANKS])
{
	const int64_t each = p->M / n;
	double        left = 0;

	for (int i = 0; i < n; i++) {
		double least = (double)INFINITY;
		from[i] = i;
		for (int j = 0; j < n; j++) {
			double dd = 0;
			for (int64_t r = 0; r < p->R && dd < least; r++)
				for (int64_t m = 0; m < each; m++) {
					const int64_t row = row_of(p, r) * p->M;
					const double  bias = less ? at(p->bias, i * each + m) - at(p->bias, j * each + m) : 0,
								 d = at(p->cand, row + i * each + m) - at(p->own, row + j * each + m) - bias;
					dd += d * d;
				}
			if (dd < least) {
				least = dd;
				from[i] = j;
			}
		}
		left += least;
	}
	return left;
}

/* The numbers of own or fine with their blocks in that order. NULL: no memory. */
static void *in_order(const product *p, const vn_tensor *z, int n, const int *from)
{
	const size_t each = (size_t)(p->M / n) * vn_dtype_size(z->dtype);
	char        *x = malloc((size_t)(p->T * n) * each + 1);

	for (int64_t i = 0; x && i < p->T * n; i++)
		memcpy(x + (size_t)i * each, (const char *)z->data + (size_t)(i / n * n + from[i % n]) * each, each);
	return x;
}

static vn_status try_rows(product *p, int n, const int *from, vn_error *err)
{
	vn_hypothesis h = { .finding = VN_ROWS_REORDERED,
		                .node = p->node,
		                .change = { .kind = VN_BY_MATRIX, .matrix = { .kind = VN_EDIT_ROWS, .n = n } } };

	memcpy(h.change.matrix.from, from, (size_t)n * sizeof *from);
	return vn_try(p->t, &h, err);
}

static vn_status try_order(product *p, int n, const int *from, vn_error *err)
{
	vn_tensor     own = *p->own, fine = *p->fine;
	vn_hypothesis h = { .finding = VN_SHARDS_REORDERED,
		                .node = p->node,
		                .change = { .kind = VN_BY_RESULT, .result.n = n } };
	void         *a = in_order(p, &own, n, from), *b = in_order(p, &fine, n, from);
	vn_status     st = a && b ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "no memory for ranks in order");

	memcpy(h.change.result.list, from, (size_t)n * sizeof *from);
	own.data = a;
	fine.data = b;
	st = st ? st : vn_try_numbers(p->t, &own, &fine, &h, err);
	free(a);
	free(b);
	return st;
}

static vn_status fit_order(product *p, vn_error *err)
{
	const vn_value *y = &p->t->site->plan->value[p->n->out[0]];
	const int       most = y->rank == 3 && y->size[1] <= RANKS ? y->size[1] - 1
	                                                           : RANKS; /* by heads: blocks of one head each */
	vn_status       st = VN_OK;
	double          ee = 0;

	for (int64_t r = 0; r < p->R; r++)
		for (int64_t m = 0; m < p->M; m++)
			ee += error_at(p, row_of(p, r), m) * error_at(p, row_of(p, r), m);
	for (int n = 2; !st && n <= most && fits_there(p, VN_MISTAKE_P18_ORDER) && !vn_answered(p->t); n++) {
		for (int less = 0; !st && p->M % n == 0 && less < (p->bias && n <= VN_CROSSED_MOST ? 2 : 1); less++) {
			int  from[RANKS];
			bool moved = false;
			if (!(nearest(p, n, less, from) <= LEFT * ee))
				continue;
			for (int i = 0; i < n; i++)
				moved = moved || from[i] != i;
			st = !moved ? VN_OK : less ? try_rows(p, n, from, err) : try_order(p, n, from, err);
		}
	}
	return st;
}

/* ---- padded rows -------------------------------------------------------------------------------------- */

/* Row i of a matrix whose rows are padded in memory by `by` elements but read as if they were
 * not: its first rows, or (transposed) all of them, in w. */
static double padded(const double *w, int64_t width, int64_t by, int64_t i)
{
	const int64_t stride = width + by;
	return i % stride < width ? w[i / stride * width + i % stride] : 0;
}

static vn_status fit_padding(product *p, vn_error *err)
{
	enum { LOOKED_AT = 4 };
	const bool    turned = p->n->c.linear.transposed;
	const int64_t width = turned ? p->M : p->N, rows = turned ? p->N : LOOKED_AT < p->M ? LOOKED_AT : p->M;
	double        least = (double)INFINITY, ee = 0;
	int64_t       best = 0;

	if (!fits_there(p, VN_MISTAKE_W18) || rows * width > MATRIX_MOST || p->M < LOOKED_AT)
		return VN_OK;
	double *w = malloc((size_t)(rows * width) * sizeof *w);
	if (!w)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for rows of a matrix");
	vn_to_f64(w, p->w->data, p->w->dtype, (size_t)(rows * width));
	for (int64_t by = 0; by <= PADDED; by++) { /* 0: as it should be */
		double dd = 0;
		for (int64_t m = 1; m < LOOKED_AT; m++)
			for (int64_t r = 0; r < p->R; r++) {
				double y = p->bias ? at(p->bias, m) : 0;
				for (int64_t k = 0; k < p->N; k++)
					y += p->x[r * p->N + k] * padded(w, width, by, turned ? k * width + m : m * width + k);
				y -= at(p->cand, row_of(p, r) * p->M + m);
				dd += y * y;
			}
		ee = by ? ee : dd;
		if (by && dd < least) {
			least = dd;
			best = by;
		}
	}
	free(w);
	if (!(least <= LEFT * ee))
		return VN_OK;
	vn_hypothesis h = with(p, VN_ROWS_PADDED, VN_MISTAKE_W18, (double)best);
	return vn_try(p->t, &h, err);
}

/* ---- another matrix --------------------------------------------------------------------------------------- */

/* What is left of the error under the edit, on the tested rows and channels. */
static double left_with(const product *p, const vn_matrix_edit *edit, double *x, double *w)
{
	vn_edited e;
	double    left = 0;

	if (!vn_edited_open(&e, p->t->site->plan, p->t->site->weights, p->node, edit->fused,
	                    p->t->c->opened.policy.storage))
		return (double)INFINITY;
	memcpy(x, p->x, (size_t)(p->R * p->N) * sizeof *x);
	for (int64_t r = 0; r < p->R; r++)
		vn_edited_input(edit, 0, x + r * p->N, p->N);
	for (int64_t c = 0; c < p->C; c++) {
		const int64_t m = channel_of(p, c);
		const double  b = p->bias ? at(p->bias, m) : 0;
		vn_edited_row(&e, edit, m, w);
		for (int64_t r = 0; r < p->R; r++) {
			double y = b - at(p->cand, row_of(p, r) * p->M + m);
			for (int64_t k = 0; k < p->N; k++)
				y += x[r * p->N + k] * w[k];
			left += y * y;
		}
	}
	return left;
}

/* In which order the shards of n ranks met their inputs: finds, by least squares over all pairs,
 * the rank whose weights multiplied the inputs of rank i. Returns false if no order stands out. */
static bool crossed(const product *p, int n, int from[VN_CROSSED_MOST])
{
	enum { PAIRS = VN_CROSSED_MOST * VN_CROSSED_MOST };
	const int     k = n * n;
	const int64_t each = p->N / n;
	double        a[PAIRS * PAIRS] = { 0 }, b[PAIRS] = { 0 }, part[PAIRS];
	bool          clear = true, moved = false;

	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++) {
			const double bias = p->bias ? at(p->bias, channel_of(p, c)) : 0,
						 y = at(p->cand, row_of(p, r) * p->M + channel_of(p, c)) - bias;
			for (int i = 0; i < k; i++) {
				part[i] = 0;
				for (int64_t j = 0; j < each; j++)
					part[i] += p->x[r * p->N + i / n * each + j] * p->wc[c * p->N + i % n * each + j];
			}
			for (int i = 0; i < k; i++) {
				b[i] += part[i] * y;
				for (int j = 0; j < k; j++)
					a[i * k + j] += part[i] * part[j];
			}
		}
	if (!solve(a, b, k))
		return false;
	for (int i = 0; i < n && clear; i++) {
		int met = 0;
		for (int j = 0; j < n; j++) {
			const bool there = b[i * n + j] > 0.5;
			clear = clear && is_whole(b[i * n + j]);
			met += there;
			from[i] = there ? j : from[i];
		}
		clear = clear && met == 1;
		moved = moved || from[i] != i;
	}
	return clear && moved;
}

static vn_status fit_crossed(product *p, vn_error *err)
{
	vn_status st = VN_OK;

	for (int n = 2; !st && n <= VN_CROSSED_MOST && !vn_answered(p->t); n++) {
		vn_hypothesis h = { .finding = VN_RANKS_CROSSED,
			                .node = p->node,
			                .change = { .kind = VN_BY_MATRIX, .matrix = { .kind = VN_EDIT_RANKS, .n = n } } };
		if (p->N % n == 0 && p->N / n > 1 && n * n < p->R * p->C && crossed(p, n, h.change.matrix.from))
			st = vn_try(p->t, &h, err);
	}
	return st;
}

static const struct {
	vn_finding     finding;
	vn_matrix_edit edit;
} edits[] = {
#define ROUNDED(finding, number_format, which, scale) \
	{ \
		finding, \
		{ \
			.kind = VN_EDIT_FORMAT, .format = number_format, .of = which, .scaled = scale \
		} \
	}
	{ VN_MATRIX_TURNED, { .kind = VN_EDIT_TURNED } },
	{ VN_MATRIX_TURNED, { .kind = VN_EDIT_BACK } },
	{ VN_MATRIX_TURNED, { .kind = VN_EDIT_TURNED, .fused = true } },
	{ VN_MATRIX_TURNED, { .kind = VN_EDIT_BACK, .fused = true } },
	{ VN_NEVER_LOADED, { .kind = VN_EDIT_ZERO } },
	ROUNDED(VN_WEIGHTS_ROUNDED, VN_FORMAT_BF16, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_WEIGHTS_ROUNDED, VN_FORMAT_F16, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_WEIGHTS_ROUNDED, VN_FORMAT_TF32, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_E4M3, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_E5M2, VN_OF_WEIGHTS, VN_NO_SCALE),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_E4M3, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_E4M3, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_E5M2, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_E5M2, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_INT8, VN_OF_WEIGHTS, VN_SCALE_OF_ALL),
	ROUNDED(VN_WEIGHTS_QUANTISED, VN_FORMAT_INT8, VN_OF_WEIGHTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_TF32, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_TF32, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_TF32_CUT, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_BF16, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_BF16, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_F16, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_F16, VN_OF_INPUTS, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_BOTH, VN_SCALE_OF_ALL),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_BOTH, VN_SCALE_OF_ROWS),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_INPUTS, VN_SCALE_OF_ROWS),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_E4M3, VN_OF_BOTH, VN_NO_SCALE),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_INT8, VN_OF_BOTH, VN_SCALE_OF_ALL),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_INT8, VN_OF_BOTH, VN_SCALE_OF_ROWS),
	ROUNDED(VN_PRODUCT_ROUNDED, VN_FORMAT_INT8, VN_OF_INPUTS, VN_SCALE_OF_ROWS),
#undef ROUNDED
};

/* The weights times a number, in a product whose bias is not multiplied. */
static vn_status fit_factor(product *p, vn_error *err)
{
	enum { DIGITS = 6 };
	vn_hypothesis h = { .finding = VN_WEIGHTS_SCALED,
		                .node = p->node,
		                .change = { .kind = VN_BY_MATRIX, .matrix.kind = VN_EDIT_FACTOR } };
	double        xy = 0, xx = 0, ee = 0;
	vn_status     st = VN_OK;

	for (int64_t t = 0; p->bias && t < p->T; t++)
		for (int64_t m = 0; m < p->M; m++) {
			const double x = at(p->own, t * p->M + m) - at(p->bias, m), e = error_at(p, t, m);
			xy += x * (x + e);
			xx += x * x;
			ee += e * e;
		}
	const double f = xy / xx, left = ee - (f - 1) * (f - 1) * xx;
	const bool   likely = fabs(f) > LEFT && left <= LEFT * ee;
	for (int digits = 2; !st && likely && digits <= DIGITS && !vn_answered(p->t); digits++) {
		h.change.matrix.factor = vn_in_digits(f, digits);
		st = vn_try(p->t, &h, err);
	}
	return st;
}

/* The edit that leaves least of the tested numbers. Of formats that leave the same, the first,
 * which changes less. */
static vn_status fit_edit(product *p, vn_error *err)
{
	enum { N_EDITS = sizeof edits / sizeof *edits };
	double *x = malloc((size_t)(p->R * p->N) * sizeof *x + 1), *w = malloc((size_t)p->N * sizeof *w + 1),
		   least = (double)INFINITY;
	const vn_dtype storage = p->t->c->opened.policy.storage;
	vn_hypothesis  h = { .node = p->node, .change.kind = VN_BY_MATRIX };

	/* An engine that stores weights in 16 bits may have rounded those, or what it read. */
	for (int i = 0; x && w && i < N_EDITS; i++)
		for (int stored = 0; stored < (storage == VN_F16 || storage == VN_BF16 ? 2 : 1); stored++) {
			vn_matrix_edit edit = edits[i].edit;
			edit.stored = stored;
			const double left = left_with(p, &edit, x, w);
			if (!(left < 0.99 * least))
				continue;
			least = left;
			h.finding = edits[i].finding;
			h.change.matrix = edit;
		}
	free(x);
	free(w);
	if (!x || !w)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for rows of a product");
	if (!(least < error_of(p) / 4))
		return VN_OK;
	return vn_try_format(p->t, &h, &h.change.matrix.format,
	                     h.change.matrix.of == VN_OF_WEIGHTS ? VN_FORMAT_F16 : VN_FORMAT_TF32, err);
}

/* ---- all of them ----------------------------------------------------------------------------------------- */

static bool is_product(product *p, int node)
{
	const vn_plan *plan = p->t->site->plan;
	const vn_node *n = &plan->node[node];

	if (n->op != VN_OP_LINEAR || p->t->part || p->t->x->unmodified.local.bad)
		return false;
	p->n = n;
	p->node = node;
	p->point = plan->value[n->out[0]].point;
	p->w = &p->t->site->weights[n->w[0]];
	p->bias = n->w[1] >= 0 ? &p->t->site->weights[n->w[1]] : NULL;
	p->T = p->cand->shape.dim[0];
	p->M = vn_value_row(&plan->value[n->out[0]]);
	p->N = vn_value_row(&plan->value[n->in[0]]);
	p->R = p->T < ROWS ? p->T : ROWS;
	p->C = p->M < CHANNELS ? p->M : CHANNELS;
	return !p->t->site->sampled && (p->point != VN_POINT_LOGITS || p->N * p->M <= MATRIX_MOST) &&
	       p->T * p->M == vn_shape_count(&p->cand->shape) && p->t->site->first + p->T <= p->t->site->tokens &&
	       (!n->c.linear.transposed || p->N * p->M <= MATRIX_MOST);
}

static vn_status read_product(product *p, vn_error *err)
{
	const int64_t first = p->t->site->first;
	vn_tensor     x;
	vn_status     st = vn_recompute_input(p->t->recompute, 0, VN_FINE_WIDTH, &x, err);

	if (st)
		return st;
	double *row = malloc((size_t)(p->M > p->N ? p->M : p->N) * sizeof *row);
	p->x = malloc((size_t)(p->R * p->N) * sizeof *p->x);
	p->wc = malloc((size_t)(p->C * p->N) * sizeof *p->wc);
	p->error = malloc((size_t)(p->R * p->C) * sizeof *p->error);
	if (!row || !p->x || !p->wc || !p->error) {
		free(row);
		return vn_fail(err, VN_ERR_NOMEM, "no memory for rows of a product");
	}
	for (int64_t r = 0; r < p->R; r++)
		vn_to_f64(p->x + r * p->N,
		          (const char *)x.data + (size_t)((first + row_of(p, r)) * p->N) * vn_dtype_size(x.dtype), x.dtype,
		          (size_t)p->N);
	for (int64_t c = 0; !p->n->c.linear.transposed && c < p->C; c++)
		vn_to_f64(p->wc + c * p->N,
		          (const char *)p->w->data + vn_dtype_bytes(p->w->dtype, (size_t)(channel_of(p, c) * p->N)),
		          p->w->dtype, (size_t)p->N);
	for (int64_t k = 0; p->n->c.linear.transposed && k < p->N; k++) {
		vn_to_f64(row, (const char *)p->w->data + vn_dtype_bytes(p->w->dtype, (size_t)(k * p->M)), p->w->dtype,
		          (size_t)p->M);
		for (int64_t c = 0; c < p->C; c++)
			p->wc[c * p->N + k] = row[channel_of(p, c)];
	}
	for (int64_t r = 0; r < p->R; r++)
		for (int64_t c = 0; c < p->C; c++)
			p->error[r * p->C + c] = error_at(p, row_of(p, r), channel_of(p, c));
	free(row);
	return VN_OK;
}

vn_status vn_estimate_linear(vn_explain_trial *t, vn_error *err)
{
	static vn_status (*const fits[])(product *, vn_error *) = {
		fit_bias, fit_tail, fit_ranks, fit_shards, fit_axis, fit_order, fit_padding, fit_crossed, fit_edit, fit_factor,
	};
	const vn_plan *plan = t->site->plan;
	product        p = { .t = t, .own = &t->own, .fine = &t->fine, .cand = &t->site->cand };
	vn_status      st;

	if (!is_product(&p, plan->value[t->site->target].node))
		return VN_OK;
	st = read_product(&p, err);
	for (size_t i = 0; !st && i < sizeof fits / sizeof *fits && !vn_answered(t); i++)
		st = fits[i](&p, err);
	free(p.x);
	free(p.wc);
	free(p.error);
	return st;
}
