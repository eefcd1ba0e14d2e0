/* error_shape.c: see error_shape.h. */
#include "compare/explain/error_shape.h"
#include "compare/comparison/checkpoint.h"
#include "compare/profile/profile.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A shape is reported if it leaves at most this part of the error, and less than shapes with
 * fewer numbers. */
#define SHAPE_LEAVES 0.05
#define ALL          1e-4 /* this little left is rounding */
enum { AS_MUCH = 4 };     /* nmse of the same terms in another order, or of rounded products */
enum { SHAPE_ROWS = 8 };  /* with fewer rows, one number per channel explains any error */
enum { NAMED = 4 };       /* the most channels or tokens named with their number */
#define NAMED_CARRY 0.99  /* if the named ones carry less of the error, the range of all is given */
#define ZERO        1e-6  /* a factor this small means a channel that was never written */

typedef struct error_sums {
	double rr, rc, d; /* r.r, r.c, sum of c - r */
} error_sums;

typedef struct error_grid {
	int64_t     rows, cols;
	double     *r, *c;  /* (rows, cols): expected, found */
	error_sums *sum[2]; /* of each column, of each row */
} error_grid;

static void add_pair(error_sums *s, double r, double c)
{
	s->rr += r * r;
	s->rc += r * c;
	s->d += c - r;
}

static double factor_of(const error_sums *s)
{
	return s->rr > 0 ? s->rc / s->rr : 1;
}

/* A number for each column or for each row, which is added or multiplied by. */
typedef enum error_form { COL_SUM, COL_FACTOR, ROW_SUM, ROW_FACTOR, N_SHAPES } error_form;

static const char *const says[N_SHAPES] = {
	"a number added to each channel, the same in every token, as from a bias",
	"a factor for each channel, the same in every token, as from the weight of a norm",
	"a number added to each token, the same in every channel, as from a mean",
	"a factor for each token, the same in every channel, as from the statistics of a norm",
};

static bool by_column(error_form s)
{
	return s == COL_SUM || s == COL_FACTOR;
}

static bool by_factor(error_form s)
{
	return s == COL_FACTOR || s == ROW_FACTOR;
}

/* The factor or addend of channel or token i. */
static double number_of(const error_grid *g, error_form s, int64_t i)
{
	const error_sums *x = &g->sum[!by_column(s)][i];
	return by_factor(s) ? factor_of(x) : x->d / (double)(by_column(s) ? g->rows : g->cols);
}

/* The part of the error that this factor or addend causes. */
static double error_of(const error_grid *g, error_form s, int64_t i)
{
	const double x = number_of(g, s, i);
	return by_factor(s) ? (x - 1) * (x - 1) * g->sum[!by_column(s)][i].rr
	                    : x * x * (double)(by_column(s) ? g->rows : g->cols);
}

static double value_with(const error_grid *g, error_form s, int64_t i, int64_t j)
{
	const double r = g->r[i * g->cols + j], x = number_of(g, s, by_column(s) ? j : i);
	return by_factor(s) ? r * x : r + x;
}

VN_ORDER_BY(by_index, int64_t, VN_ORDER(*x, *y))

/* Writes a factor as "x -1.5" and an addend as "- 1.5". */
static const char *sign_of(error_form s, double x)
{
	return by_factor(s) ? "x" : x < 0 ? "-" : "+";
}

static double size_of(error_form s, double x)
{
	return by_factor(s) ? x : fabs(x);
}

/* "channel 8 x 1.15, channel 40 is 0" if a few channels carry nearly all of the error, else
 * "from x 0.98 to x 1.03". */
static void say_numbers(const error_grid *g, error_form s, char *text, size_t room)
{
	const int64_t n = by_column(s) ? g->cols : g->rows;
	const char   *of = by_column(s) ? "channel" : "token";
	double        whole = 0, named = 0, low = INFINITY, high = -INFINITY;
	int64_t       most[NAMED];
	int           k = 0;

	for (int64_t i = 0; i < n; i++) {
		whole += error_of(g, s, i);
		low = fmin(low, number_of(g, s, i));
		high = fmax(high, number_of(g, s, i));
	}
	while (k < NAMED && !(named >= NAMED_CARRY * whole)) {
		int64_t best = -1;
		for (int64_t i = 0; i < n; i++) {
			bool taken = false;
			for (int j = 0; j < k; j++)
				taken = taken || most[j] == i;
			best = !taken && (best < 0 || error_of(g, s, i) > error_of(g, s, best)) ? i : best;
		}
		most[k++] = best;
		named += error_of(g, s, best);
	}
	if (!(named >= NAMED_CARRY * whole)) {
		snprintf(text, room, "from %s %.3g to %s %.3g", sign_of(s, low), size_of(s, low), sign_of(s, high),
		         size_of(s, high));
		return;
	}
	*text = 0;
	qsort(most, (size_t)k, sizeof *most, by_index);
	for (int j = 0; j < k; j++)
		if (by_factor(s) && fabs(number_of(g, s, most[j])) < ZERO)
			vn_text_add(text, room, "%s%s %" PRId64 " is 0", j ? ", " : "", of, most[j]);
		else
			vn_text_add(text, room, "%s%s %" PRId64 " %s %.4g", j ? ", " : "", of, most[j],
			            sign_of(s, number_of(g, s, most[j])), size_of(s, number_of(g, s, most[j])));
}

static void add_best_shape(vn_case *t, const error_grid *g)
{
	double left[N_SHAPES] = { 0 }, whole = 0, there = 0;
	char   numbers[160], rest[40] = "";
	int    best = 0;

	for (int64_t i = 0; i < g->rows; i++)
		for (int64_t j = 0; j < g->cols; j++) {
			const double c = g->c[i * g->cols + j], d = c - g->r[i * g->cols + j];
			whole += d * d;
			there += c * c;
			for (int s = 0; s < N_SHAPES; s++)
				left[s] += (c - value_with(g, (error_form)s, i, j)) * (c - value_with(g, (error_form)s, i, j));
		}
	for (int s = 1; s < N_SHAPES; s++)
		best = left[s] < left[best] ? s : best;
	if (!(whole > 0 && left[best] <= SHAPE_LEAVES * whole && left[best] <= SHAPE_LEAVES * there))
		return;
	say_numbers(g, (error_form)best, numbers, sizeof numbers);
	if (left[best] > ALL * whole)
		snprintf(rest, sizeof rest, " but %.2g %%", 100 * left[best] / whole);
	vn_lines_add(&t->x->error_shape, "%s: %s; this explains all%s of the error", says[best], numbers, rest);
}

static void add_shape(vn_case *t)
{
	const vn_tensor *c = &t->site->cand;
	const int64_t    n = vn_shape_count(&c->shape), rows = c->shape.rank > 1 ? c->shape.dim[0] : 1;
	error_grid       g = { .rows = rows, .cols = n / rows };

	if (strncmp(t->site->axes, "token", 5) != 0 || rows < SHAPE_ROWS || g.cols < SHAPE_ROWS ||
	    t->x->unmodified.residual.bad)
		return;
	g.r = vn_case_all_doubles_of(&t->own);
	g.c = vn_case_all_doubles_of(c);
	g.sum[1] = vn_alloc_zero((size_t)g.rows, sizeof *g.sum[1]);
	g.sum[0] = vn_alloc_zero((size_t)g.cols, sizeof *g.sum[0]);
	for (int64_t i = 0; i < n; i++) {
		add_pair(&g.sum[1][i / g.cols], g.r[i], g.c[i]);
		add_pair(&g.sum[0][i % g.cols], g.r[i], g.c[i]);
	}
	add_best_shape(t, &g);
	VN_FREE(g.r, g.c, g.sum[0], g.sum[1]);
}

/* The error is as large as that of float16 sums. Nothing more is known: the order of the terms
 * is the engine's, and another order has another error. */
static void add_half_sums(vn_case *t)
{
	const vn_tensor *c = &t->site->cand;
	const vn_plan   *plan = t->site->plan;
	const vn_policy *policy = &t->opened->policy;
	vn_measured      half, is;
	vn_tensor        z;

	if (plan->node[vn_case_node(t)].op != VN_OP_LINEAR || policy->storage != VN_F16 || policy->sums == VN_F16)
		return;
	if (!vn_case_run(t, plan, t->site->weights, VN_HALF_SUMS, &z))
		return;
	const int threads = t->opened->request.options->threads;
	if (vn_case_made(t, vn_measure_brief(&t->own, &z, t->site->axes, threads, &half, vn_case_error(t))) &&
	    vn_case_made(t, vn_measure_brief(&t->own, c, t->site->axes, threads, &is, vn_case_error(t)))) {
		const double times = is.value[VN_M_NMSE] / half.value[VN_M_NMSE];
		if (is.finite && half.finite && times > 1.0 / AS_MUCH && times < AS_MUCH)
			vn_lines_add(&t->x->error_shape,
			             "sums kept in float16 (%s): its nmse is %.2g times the error that such sums "
			             "cause",
			             vn_mistake_id(VN_MISTAKE_P4), times);
	}
	vn_tensor_free(&z);
}

/* Adds " 0-2, 5" for the set ones of n. */
static void add_runs(const bool *set, int64_t n, char *text, size_t room)
{
	bool more = false;

	for (int64_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && set[end] == set[i];)
			end++;
		if (set[i])
			vn_text_add(text, room, end - i > 1 ? "%s %" PRId64 "-%" PRId64 : "%s %" PRId64, more ? "," : "", i,
			            end - 1);
		more = more || set[i];
	}
}

bool vn_explain_says_where(const vn_findings *x)
{
	return x->n_fit && vn_trial_mistake(&x->by[0]) == VN_MISTAKE_A12_ZERO;
}

void vn_error_zeros(vn_case *t)
{
	const vn_tensor *c = &t->site->cand;
	const int        heads = vn_axes_find(t->site->axes, "head"), rows = vn_axes_find(t->site->axes, "token");
	char             text[VN_WORDS] = "";
	int64_t          zeros = 0, due = 0;

	if (c->shape.rank != 3 || heads < 0 || heads > 1 || rows != 1 - heads)
		return;
	const int64_t  H = c->shape.dim[heads], T = c->shape.dim[rows], each = c->shape.dim[2];
	VN_FREED bool *head = vn_alloc_zero((size_t)H, sizeof *head), *row = vn_alloc_zero((size_t)T, sizeof *row);
	for (int64_t i = 0; i < H * T * each; i++) {
		const int64_t at = i / each, h = heads == 0 ? at / T : at % H, r = heads == 0 ? at % T : at / H;
		const bool    is = vn_tensor_number(&t->own, i) != 0, zero = is && vn_tensor_number(c, i) == 0;
		due += is;
		zeros += zero;
		head[h] = head[h] || zero;
		row[r] = row[r] || zero;
	}
	vn_text_add(text, sizeof text, "%" PRId64 " of %" PRId64 " numbers became 0", zeros, due);
	if (zeros) {
		vn_text_add(text, sizeof text, ": heads");
		add_runs(head, H, text, sizeof text);
		vn_text_add(text, sizeof text, " of %" PRId64 ", tokens", H);
		add_runs(row, T, text, sizeof text);
		vn_text_add(text, sizeof text, " of %" PRId64, T);
	}
	vn_lines_add(&t->x->error_shape, "%s", text);
}

void vn_error_shape(vn_case *t)
{
	vn_profile               p;
	const vn_step           *s = vn_case_step(t);
	const vn_profile_subject of = { .axes = t->site->axes,
		                            .first_token = s ? s->first_row : 0,
		                            .noise = VN_PEAK_LIMIT * t->x->unmodified.residual.floor_token,
		                            .threads = t->opened->request.options->threads };

	vn_case_made(t, vn_profile_of(&t->own, &t->site->cand, &of, &p, vn_case_error(t)));
	for (int i = 0; i < p.words.n; i++)
		vn_lines_add(&t->x->error_shape, "%s", p.words.line[i]);
	vn_profile_free(&p);
	add_shape(t);
	add_half_sums(t);
}
