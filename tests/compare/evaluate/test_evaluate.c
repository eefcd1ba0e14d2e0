/* test_evaluate.c: windows, sums and greedy decoding of an evaluation
 * (compare/evaluate/evaluate.h), with engines that are formulas: what is expected is computed here,
 * token by token. */
#include "compare/evaluate/evaluate.h"
#include "libref/plan/plan.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { V = 37, CONTEXT = 64, MOST = 400 };

static vn_plan *plan;
static int32_t  text[MOST];

/* ---- engines that are formulas ------------------------------------------------------ */

typedef struct formula {
	vn_dtype dtype;
	double   noise;    /* added to the scores */
	int      piece;    /* numbers handed over at a time */
	int64_t  nan_at;   /* calls hand over a NaN in the row of this position; -1 */
	int      parts_at; /* decoding: from this many tokens on, another token is highest; 0: never */
	bool     echo;     /* the highest score is that of the token that went in */
	int64_t  past, calls, longest, rows;
	int32_t  seen[CONTEXT];
} formula;

/* Depends on all that came before, so that a wrong window shows. */
static double score_of(const formula *f, int64_t p, int64_t k)
{
	double sum = 0;
	for (int64_t i = 0; i <= p; i++)
		sum += f->seen[i] * 0.37 + (double)i;
	double x = 2 * sin(1.3 * (double)k + sum) + f->noise * cos(7.7 * (double)k + (double)p);
	if (f->echo && k == f->seen[p])
		x += 9;
	if (f->parts_at && p + 1 >= f->parts_at && k == 5)
		x += 100;
	return p == f->nan_at && k == 3 ? (double)NAN : x;
}

static vn_status forward(void *self, const int32_t *ids, int64_t tokens, const vn_taps *t, vn_error *err)
{
	formula       *f = self;
	int64_t        first, count;
	const int      logits = vn_plan_find(plan, "logits");
	unsigned char *bytes = malloc((size_t)tokens * V * 8 + 1);

	CU_ASSERT_FATAL(f->past + tokens <= CONTEXT);
	f->calls++;
	f->longest = tokens > f->longest ? tokens : f->longest;
	memcpy(f->seen + f->past, ids, (size_t)tokens * sizeof *ids);
	vn_taps_select(t, f->past, tokens, &first, &count);
	f->rows += count;
	CU_ASSERT(t->want[logits]);
	for (int v = 0; v < plan->n_values; v++)
		CU_ASSERT_EQUAL(t->want[v], v == logits);
	if (count > 0) {
		const vn_shape shape = { .rank = 2, .dim = { count, V } };
		vn_status      st = t->sink.begin(t->sink.ctx, logits, f->dtype, &shape, err);
		for (int64_t i = 0; i < count * V; i++) {
			const double x = score_of(f, f->past + first + i / V, i % V);
			vn_from_f64(bytes + (size_t)i * vn_dtype_size(f->dtype), f->dtype, &x, 1);
		}
		for (int64_t i = 0; !st && i < count * V; i += f->piece) {
			const int64_t n = count * V - i < f->piece ? count * V - i : f->piece;
			st = t->sink.write(t->sink.ctx, bytes + (size_t)i * vn_dtype_size(f->dtype), (size_t)n, err);
		}
		if (!st)
			st = t->sink.end(t->sink.ctx, err);
		CU_ASSERT_EQUAL(st, VN_OK);
	}
	f->past += tokens;
	free(bytes);
	return VN_OK;
}

static int64_t position(const void *self)
{
	return ((const formula *)self)->past;
}

static void reset(void *self)
{
	((formula *)self)->past = 0;
}

static vn_engine engine(formula *f)
{
	static const vn_engine_ops ops = { .forward = forward, .position = position, .reset = reset };
	return (vn_engine) { .name = "formula", .self = f, .n_values = plan->n_values, .ops = &ops };
}

/* What the engine's numbers are once stored. */
static double stored(const formula *f, int64_t p, int64_t k)
{
	unsigned char raw[8];
	double        x = score_of(f, p, k);
	vn_from_f64(raw, f->dtype, &x, 1);
	vn_to_f64(&x, raw, f->dtype, 1);
	return x;
}

/* ---- what is expected, the plain way ------------------------------------------------- */

/* Losses, divergences and choices of every scored token; how many. */
static int64_t expect(formula *r, formula *c, int64_t n, int64_t window, int64_t stride, vn_token_score *t)
{
	formula *const f[2] = { r, c };
	int64_t        m = 0, done = 0;

	for (int64_t begin = 0;; begin += stride) {
		const int64_t stop = begin + window < n ? begin + window : n;
		for (int s = 0; s < 2; s++)
			memcpy(f[s]->seen, text + begin, (size_t)(stop - begin) * sizeof *text);
		for (int64_t at = done > begin ? done : begin + 1; at < stop; at++, m++) {
			double z[2] = { 0 }, kl = 0;
			t[m] = (vn_token_score) { .at = at };
			for (int s = 0; s < 2; s++) {
				for (int64_t k = 0; k < V; k++) {
					z[s] += exp(stored(f[s], at - 1 - begin, k));
					if (stored(f[s], at - 1 - begin, k) > stored(f[s], at - 1 - begin, t[m].argmax[s]))
						t[m].argmax[s] = (int32_t)k;
				}
				t[m].loss[s] = log(z[s]) - stored(f[s], at - 1 - begin, text[at]);
			}
			for (int64_t k = 0; k < V; k++) {
				const double a = stored(r, at - 1 - begin, k) - log(z[0]), b = stored(c, at - 1 - begin, k) - log(z[1]);
				kl += exp(a) * (a - b);
			}
			t[m].kl = kl;
		}
		done = stop;
		if (stop == n)
			return m;
	}
}

static double mean(const vn_token_score *t, int64_t m, int what)
{
	double sum = 0;
	for (int64_t i = 0; i < m; i++)
		sum += what == 3 ? t[i].kl : what == 2 ? t[i].loss[1] - t[i].loss[0] : t[i].loss[what];
	return sum / (double)m;
}

static void fill_text(void)
{
	uint32_t x = 1;
	for (int i = 0; i < MOST; i++) {
		x = x * 1664525u + 1013904223u;
		text[i] = i % 10 == 3 ? text[i - 1] : (int32_t)((x >> 16) % V);
	}
}

static vn_evaluate_options over(int64_t n, int64_t window, int64_t stride)
{
	return (vn_evaluate_options) { .ids = text, .n = n, .window = window, .stride = stride, .threads = 2 };
}

/* ---- tests ------------------------------------------------------------------------------ */

static void every_token_is_scored_once_by_the_row_before_it(void)
{
	static const int64_t cases[][3] = { { 2, 2, 1 },     { 10, 64, 32 },  { 64, 64, 32 },  { 65, 64, 32 },
		                                { 300, 64, 32 }, { 300, 64, 1 },  { 299, 64, 63 }, { 300, 50, 17 },
		                                { 128, 64, 64 }, { 129, 64, 64 }, { 97, 2, 1 },    { 41, 2, 2 } };
	static const struct {
		vn_dtype a, b;
		int      piece;
	} form[] = { { VN_F32, VN_F16, 1000 }, { VN_F32, VN_F32, 7 }, { VN_F64, VN_F16, 38 } };
	vn_token_score t[MOST];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		for (size_t k = 0; k < sizeof form / sizeof *form; k++) {
			formula r = { form[k].a, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } },
					c = { form[k].b, 0.05, form[k].piece, -1, 0, false, 0, 0, 0, 0, { 0 } };
			const vn_engine           a = engine(&r), b = engine(&c);
			const vn_evaluate_options o = over(cases[i][0], cases[i][1], cases[i][2]);
			vn_evaluation             e;
			vn_error                  err = { "" };
			int64_t                   strict = 0, repeats = 0, most = 0;
			double                    squares = 0;

			CU_ASSERT_EQUAL(vn_evaluate_check(&o, plan, &err), VN_OK);
			CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e, &err), VN_OK);
			const int64_t m = expect(&r, &c, o.n, o.window, o.stride, t);
			CU_ASSERT_EQUAL(e.tokens, o.n);
			CU_ASSERT_EQUAL(e.scored, m);
			if (o.stride < o.window)
				CU_ASSERT_EQUAL(m, o.n - 1);
			CU_ASSERT(r.longest <= o.window && c.longest <= o.window);
			CU_ASSERT(r.rows == m && c.rows == m); /* no more is asked for than is scored */
			CU_ASSERT_DOUBLE_EQUAL(e.loss[0].mean, mean(t, m, 0), 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(e.loss[1].mean, mean(t, m, 1), 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(e.gap.mean, mean(t, m, 2), 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(e.kl.mean, mean(t, m, 3), 1e-9);
			CU_ASSERT_DOUBLE_EQUAL(e.perplexity[1] / exp(mean(t, m, 1)), 1, 1e-9);
			for (int64_t j = 0; j < m; j++) {
				strict += t[j].argmax[0] == t[j].argmax[1];
				repeats += text[t[j].at] == text[t[j].at - 1];
				squares += pow(t[j].loss[1] - t[j].loss[0] - mean(t, m, 2), 2);
				most = t[j].kl > t[most].kl ? j : most;
			}
			CU_ASSERT_DOUBLE_EQUAL(e.strict, (double)strict / (double)m, 1e-12);
			CU_ASSERT_DOUBLE_EQUAL(e.repeats, (double)repeats / (double)m, 1e-12);
			const double error = sqrt(squares / (double)(m - 1) / (double)m); /* NaN for one token */
			CU_ASSERT(m > 1 ? fabs(e.gap.error - error) < 1e-9 : isnan(e.gap.error));
			CU_ASSERT_EQUAL(e.kl_max_at, t[most].at);
			CU_ASSERT_DOUBLE_EQUAL(e.kl_max, t[most].kl, 1e-9);
		}
}

static void an_engine_does_not_part_from_itself(void)
{
	formula             r = { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } }, c = r;
	const vn_engine     a = engine(&r), b = engine(&c);
	vn_evaluate_options o = over(200, 64, 32);
	vn_evaluation       e;

	o.decode = 20;
	CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e, NULL), VN_OK);
	CU_ASSERT(e.gap.mean == 0 && e.gap.error == 0 && e.kl_max == 0);
	CU_ASSERT(e.strict == 1 && e.agree == 1);
	CU_ASSERT_EQUAL(e.differ_at, -1);
	CU_ASSERT_EQUAL(e.part_at, -1);
	CU_ASSERT_EQUAL(e.prompt, 32);
	CU_ASSERT_EQUAL(e.steps, 20);
	o.decode = 1000; /* to the end of the context */
	CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e, NULL), VN_OK);
	CU_ASSERT_EQUAL(e.steps, CONTEXT - 32);
}

static void greedy_decoding_parts_where_the_candidate_differs(void)
{
	for (int at = 32; at <= 40; at += 4) {
		formula             r = { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } }, c = r;
		const vn_engine     a = engine(&r), b = engine(&c);
		vn_evaluate_options o = over(60, 64, 32);
		vn_evaluation       e;

		c.parts_at = at; /* its row at - 1 says 5 */
		o.decode = 20;
		CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e, NULL), VN_OK);
		CU_ASSERT_EQUAL(e.part_at, at - 31);
		CU_ASSERT_EQUAL(e.steps, at - 31);
		CU_ASSERT_EQUAL(e.part[1], 5);
		CU_ASSERT_NOT_EQUAL(e.part[0], 5);
		CU_ASSERT_FALSE(e.part_tie);
		/* What was decoded on the way is the reference's. */
		formula again = { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } };
		memcpy(again.seen, text, 32 * sizeof *text);
		for (int64_t p = 31; p < at; p++) {
			int64_t best = 0;
			for (int64_t k = 0; k < V; k++)
				best = stored(&again, p, k) > stored(&again, p, best) ? k : best;
			CU_ASSERT_EQUAL(p + 1 < at ? c.seen[p + 1] : e.part[0], best);
			again.seen[p + 1] = (int32_t)best;
		}
	}
}

static void scores_without_numbers_are_counted_on_their_side(void)
{
	for (int s = 0; s < 2; s++) {
		formula             f[2] = { { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } },
			                         { VN_F32, 1e-6, 64, -1, 0, false, 0, 0, 0, 0, { 0 } } };
		const vn_engine     a = engine(&f[0]), b = engine(&f[1]);
		vn_evaluate_options o = over(64, 64, 32);
		vn_evaluation       e;

		f[s].nan_at = 40;
		o.decode = 20;
		CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e, NULL), VN_OK);
		CU_ASSERT_EQUAL(e.nonfinite[s], 1);
		CU_ASSERT_EQUAL(e.nonfinite[1 - s], 0);
		CU_ASSERT_TRUE(isnan(e.perplexity[s]));
		CU_ASSERT_TRUE(isfinite(e.perplexity[1 - s])); /* the other's is its own */
		CU_ASSERT_TRUE(isnan(e.kl.mean) && isnan(e.kl_max));
		CU_ASSERT_EQUAL(e.kl_max_at, 41);
		CU_ASSERT(e.strict < 1);
		CU_ASSERT_EQUAL(e.differ_at, 41);
		CU_ASSERT_EQUAL(e.part_at, 10); /* row 31 is the first, row 40 the tenth */
		CU_ASSERT_EQUAL(e.part[s], -1);
		CU_ASSERT(e.part[1 - s] >= 0);
	}
}

static void an_engine_that_says_its_input_again_is_told_on(void)
{
	formula                   r = { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } }, c = r;
	const vn_engine           a = engine(&r), b = engine(&c);
	const vn_evaluate_options o = over(300, 64, 32);
	vn_evaluation             e;

	c.echo = true;
	CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e, NULL), VN_OK);
	CU_ASSERT_EQUAL(e.echo[1], 1.0);
	CU_ASSERT_TRUE(e.echoes[1]);
	CU_ASSERT(e.echo[0] < 0.2);
	CU_ASSERT_FALSE(e.echoes[0]);
	/* A text that repeats itself may be echoed. */
	int32_t        same[100];
	vn_token_score t[99];
	for (int i = 0; i < 100; i++)
		same[i] = i < 60 ? 4 : i % V;
	for (int i = 0; i < 99; i++)
		t[i] = (vn_token_score) { .at = i + 1, .argmax = { same[i], same[i] }, .finite = { true, true } };
	e = (vn_evaluation) { 0 };
	vn_evaluate_sum(same, t, 99, &e);
	CU_ASSERT_FALSE(e.echoes[0]);
	/* Three of five tokens are chance. */
	for (int i = 0; i < 5; i++)
		t[i] = (vn_token_score) { .at = 60 + i, .argmax = { i < 3 ? same[59 + i] : 36, 36 }, .finite = { true, true } };
	e = (vn_evaluation) { 0 };
	vn_evaluate_sum(same, t, 5, &e);
	CU_ASSERT_DOUBLE_EQUAL(e.echo[0], 0.6, 1e-12);
	CU_ASSERT_FALSE(e.echoes[0]);
}

static void a_near_tie_agrees_and_is_told_all_the_same(void)
{
	const int32_t  ids[] = { 1, 2, 3, 4 };
	vn_token_score t[3] = {
		{ .at = 1, .argmax = { 7, 7 }, .finite = { true, true }, .tie = true },
		{ .at = 2, .argmax = { 7, 8 }, .finite = { true, true }, .tie = true },
		{ .at = 3, .argmax = { 7, 9 }, .finite = { true, true } },
	};
	vn_evaluation e = { 0 };

	vn_evaluate_sum(ids, t, 3, &e);
	CU_ASSERT_DOUBLE_EQUAL(e.agree, 2 / 3.0, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(e.strict, 1 / 3.0, 1e-12);
	CU_ASSERT_EQUAL(e.differ_at, 2);
	CU_ASSERT_TRUE(e.differ_tie);
	CU_ASSERT(e.differ[0] == 7 && e.differ[1] == 8);
}

/* Of four tokens, one has no draft, and one of the candidate's scores is NaN. */
static void a_draft_is_accepted_where_it_is_the_engines_own_token(void)
{
	const int32_t  ids[] = { 1, 2, 3, 4, 5 };
	vn_token_score t[4] = {
		{ .at = 1, .argmax = { 7, 7 }, .finite = { true, true }, .draft = { VN_NO_DRAFT, VN_NO_DRAFT } },
		{ .at = 2, .argmax = { 7, 8 }, .finite = { true, true }, .draft = { 7, 7 } },
		{ .at = 3, .argmax = { 7, 9 }, .finite = { true, true }, .draft = { 7, 9 } },
		{ .at = 4, .argmax = { 7, -1 }, .finite = { true, false }, .draft = { 3, -1 } },
	};
	vn_evaluation e = { 0 };

	vn_evaluate_sum(ids, t, 4, &e);
	CU_ASSERT_EQUAL(e.drafts, 3);
	CU_ASSERT_DOUBLE_EQUAL(e.accepted[0], 2 / 3.0, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(e.accepted[1], 1 / 3.0, 1e-12);
	e = (vn_evaluation) { 0 };
	vn_evaluate_sum(ids, t, 1, &e);
	CU_ASSERT(e.drafts == 0 && e.accepted[0] == 0);
}

static void the_digits_do_not_depend_on_threads(void)
{
	vn_evaluation e[3];

	for (int threads = 1; threads <= 3; threads++) {
		formula r = { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } },
				c = { VN_F16, 0.03, 11, -1, 0, false, 0, 0, 0, 0, { 0 } };
		const vn_engine     a = engine(&r), b = engine(&c);
		vn_evaluate_options o = over(300, 64, 32);
		o.threads = threads;
		memset(&e[threads - 1], 0, sizeof *e);
		CU_ASSERT_EQUAL_FATAL(vn_evaluate(&o, plan, &a, &b, &e[threads - 1], NULL), VN_OK);
		CU_ASSERT_EQUAL(memcmp(&e[threads - 1].loss, &e[0].loss, sizeof e->loss), 0);
		CU_ASSERT_EQUAL(memcmp(&e[threads - 1].gap, &e[0].gap, sizeof e->gap), 0);
		CU_ASSERT_EQUAL(memcmp(&e[threads - 1].kl, &e[0].kl, sizeof e->kl), 0);
		CU_ASSERT(e[threads - 1].agree == e[0].agree && e[threads - 1].kl_p99 == e[0].kl_p99);
	}
}

static void what_cannot_be_evaluated_is_refused(void)
{
	const struct {
		int64_t     n, window, stride;
		const char *says;
	} bad[] = {
		{ 1, 64, 32, "at least two are needed" }, { 10, 1, 1, "a window must have 2" },
		{ 10, CONTEXT + 1, 1, "2 to 64 tokens" }, { 10, 32, 0, "the stride must be from 1" },
		{ 10, 32, 33, "to the window of 32" },
	};
	vn_error err = { "" };

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		const vn_evaluate_options o = over(bad[i].n, bad[i].window, bad[i].stride);
		CU_ASSERT_EQUAL(vn_evaluate_check(&o, plan, &err), VN_ERR_USAGE);
		CU_ASSERT_PTR_NOT_NULL(strstr(err.text, bad[i].says));
	}
	const vn_evaluate_options o = { .ids = (const int32_t[]) { 1, V }, .n = 2, .window = 2, .stride = 1 };
	CU_ASSERT_EQUAL(vn_evaluate_check(&o, plan, &err), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(err.text, "token id 37 (number 2 of 2) is outside the vocabulary of 37"));
}

static vn_status fail(void *self, const int32_t *ids, int64_t tokens, const vn_taps *t, vn_error *err)
{
	(void)self, (void)ids, (void)tokens, (void)t;
	return vn_fail(err, VN_ERR_INTERRUPTED, "interrupted");
}

static void an_engine_that_fails_ends_it(void)
{
	formula                    r = { VN_F32, 0, 64, -1, 0, false, 0, 0, 0, 0, { 0 } }, c = r;
	const vn_engine            a = engine(&r);
	static const vn_engine_ops failing = { .forward = fail, .position = position, .reset = reset };
	vn_engine                  b = engine(&c);
	const vn_evaluate_options  o = over(300, 64, 32);
	vn_evaluation              e;
	vn_error                   err = { "" };

	b.ops = &failing;
	CU_ASSERT_EQUAL(vn_evaluate(&o, plan, &a, &b, &e, &err), VN_ERR_INTERRUPTED);
	CU_ASSERT_STRING_EQUAL(err.text, "tokens 0 to 63: interrupted");
	CU_ASSERT_EQUAL(r.calls, 1);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(every_token_is_scored_once_by_the_row_before_it),
		TEST(an_engine_does_not_part_from_itself),
		TEST(greedy_decoding_parts_where_the_candidate_differs),
		TEST(scores_without_numbers_are_counted_on_their_side),
		TEST(an_engine_that_says_its_input_again_is_told_on),
		TEST(a_near_tie_agrees_and_is_told_all_the_same),
		TEST(a_draft_is_accepted_where_it_is_the_engines_own_token),
		TEST(the_digits_do_not_depend_on_threads),
		TEST(what_cannot_be_evaluated_is_refused),
		TEST(an_engine_that_fails_ends_it),
		CU_TEST_INFO_NULL,
	};
	vn_builder *b = vn_plan_begin(1, V, CONTEXT);

	vn_plan_layer(b, -1);
	const int table = vn_plan_weight(b, "embed", 2, (int64_t[]) { V, 4 });
	vn_plan_linear(b, vn_plan_embed(b, table, VN_POINT_EMBED), table, -1, 0, VN_POINT_LOGITS);
	if (vn_plan_finish(b, &plan, NULL))
		return 1;
	fill_text();
	const int failed = run_suite("evaluate", tests);
	vn_plan_destroy(plan);
	return failed;
}
