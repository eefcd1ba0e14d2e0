/* test_ref.c: whole runs of the reference on the toy qwen2 of models.md,
 * appendix A: its golden numbers, and what must not change a result. */
#include "libref/exec/eval.h"
#include "libref/exec/ref.h"
#include "libref/model/model.h"
#include "tests/toy_model.h"

#include <CUnit/Basic.h>
#include <math.h>

enum { T = 8, LONG = 70, MOST_VALUES = 64 };

static char          dir[256];
static vn_model     *model;      /* float32 weights, every one of them exact */
static const int32_t ids[T] = { 3, 1, 4, 1, 5, 9, 2, 6 };

static const vn_policy F32 = { VN_F32, VN_F32 }, F64 = { VN_F64, VN_F64 }, F16 = { VN_F16, VN_F32 }, ACC16 = { VN_F16, VN_F16 };

/* ---- a sink that keeps everything ------------------------------------------------------ */

typedef struct keep {
	const vn_plan *plan;
	bool           want[MOST_VALUES];
	vn_tap_rows    rows;
	int64_t        first, last;
	int            order[MOST_VALUES], n; /* as handed over */
	int            open;                  /* the value begun and not ended; -1 */
	size_t         left;                  /* elements still to come */
	int            protocol_errors;
	int            fail_at;               /* the begin, write or end that fails; -1: none */
	int            calls;
	struct { vn_dtype dtype; vn_shape shape; size_t n; unsigned char *data; } value[MOST_VALUES];
} keep;

static vn_status maybe_fail(keep *k, vn_error *err)
{
	if (k->calls++ == k->fail_at)
		return vn_fail(err, VN_ERR_IO, "the sink is full");
	return VN_OK;
}

static vn_status keep_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	keep *k = ctx;

	k->protocol_errors += k->open >= 0 || !k->want[value] || k->value[value].data != NULL;
	k->open = value;
	k->order[k->n++] = value;
	k->left = (size_t)vn_shape_count(shape);
	k->value[value].dtype = dtype;
	k->value[value].shape = *shape;
	k->value[value].n = 0;
	k->value[value].data = malloc(k->left * vn_dtype_size(dtype) + 1);
	return maybe_fail(k, err);
}

static vn_status keep_write(void *ctx, const void *data, size_t n, vn_error *err)
{
	keep *k = ctx;

	if (k->open < 0 || n > k->left || n == 0) {
		k->protocol_errors++;
		return VN_OK;
	}
	const size_t size = vn_dtype_size(k->value[k->open].dtype);
	memcpy(k->value[k->open].data + k->value[k->open].n * size, data, n * size);
	k->value[k->open].n += n;
	k->left -= n;
	return maybe_fail(k, err);
}

static vn_status keep_end(void *ctx, vn_error *err)
{
	keep *k = ctx;

	k->protocol_errors += k->open < 0 || k->left != 0;
	k->open = -1;
	return maybe_fail(k, err);
}

static void keep_clear(keep *k)
{
	for (int v = 0; v < MOST_VALUES; v++) {
		free(k->value[v].data);
		k->value[v].data = NULL;
	}
	k->n = k->calls = 0;
	k->open = -1;
}

/* Everything of the plan that matches. */
static void keep_start(keep *k, const vn_plan *p, const char *glob)
{
	memset(k, 0, sizeof *k);
	k->plan = p;
	k->open = k->fail_at = -1;
	CU_ASSERT_EQUAL_FATAL(vn_taps_choose(p, &glob, 1, -1, 0, k->want, NULL), VN_OK);
}

static vn_taps taps_of(keep *k)
{
	return (vn_taps){ .want = k->want, .rows = k->rows, .first = k->first, .last = k->last,
	                  .sink = { k, keep_begin, keep_write, keep_end } };
}

/* A value as doubles; the caller frees. NULL when it was not handed over. */
static double *doubles(const keep *k, const char *name, size_t *n)
{
	const int v = vn_plan_find(k->plan, name);

	*n = 0;
	if (v < 0 || !k->value[v].data)
		return NULL;
	double *x = malloc((k->value[v].n + 1) * sizeof *x);
	vn_to_f64(x, k->value[v].data, k->value[v].dtype, k->value[v].n);
	*n = k->value[v].n;
	return x;
}

static bool same_bits(const keep *a, const keep *b, const char *name)
{
	const int v = vn_plan_find(a->plan, name);
	return a->value[v].data && b->value[v].data && a->value[v].n == b->value[v].n && a->value[v].dtype == b->value[v].dtype &&
	       memcmp(a->value[v].data, b->value[v].data, a->value[v].n * vn_dtype_size(a->value[v].dtype)) == 0;
}

static vn_ref *engine(const vn_plan *p, vn_policy policy, int threads)
{
	vn_ref *r;

	CU_ASSERT_EQUAL_FATAL(vn_ref_create(p, vn_model_weights(model), &(vn_ref_options){ .policy = policy, .threads = threads }, &r, NULL), VN_OK);
	return r;
}

static void forward(vn_ref *r, const int32_t *id, int64_t n, keep *k)
{
	const vn_taps t = k ? taps_of(k) : (vn_taps){ 0 };
	vn_error      e = { "" };

	if (k)
		keep_clear(k);
	CU_ASSERT_EQUAL(vn_ref_forward(r, id, n, k ? &t : NULL, &e), VN_OK);
	if (k)
		CU_ASSERT_EQUAL(k->protocol_errors, 0);
}

/* One prefill of everything that matches. */
static void run(keep *k, vn_policy policy, int threads, const char *glob, const int32_t *id, int64_t n)
{
	vn_ref *r = engine(vn_model_plan(model), policy, threads);

	keep_start(k, vn_model_plan(model), glob);
	forward(r, id, n, k);
	vn_ref_destroy(r);
}

static void long_ids(int32_t *id, int n)
{
	for (int t = 0; t < n; t++)
		id[t] = (7 * t + 3) % 32;
}

/* ---- golden numbers ---------------------------------------------------------------------- */

static const struct { const char *name; double first, last, norm; } golden[] = {
	{ "embed", -0.4059296, -0.01412964, 3.374886 },
	{ "layer0.attn_norm", -1.166639, -0.04480887, 10.51699 },
	{ "layer0.q_proj", 0.9513515, -0.5238797, 12.18115 },
	{ "layer0.k_proj", -1.83605, 0.2462582, 6.429776 },
	{ "layer0.v_proj", -0.05835372, -0.4095407, 8.91698 },
	{ "layer0.q_rope", 0.9513515, -0.4689223, 12.18115 },
	{ "layer0.k_rope", -1.83605, 0.1248694, 6.429776 },
	{ "layer0.attn_probs", 1, 0.02698523, 3.645269 },
	{ "layer0.attn_context", -0.05835372, 0.466251, 8.821971 },
	{ "layer0.attn_out", -1.031935, -0.9203345, 10.38346 },
	{ "layer0.attn_residual", -1.437865, -0.9344641, 11.76182 },
	{ "layer0.mlp_norm", -0.70135, -1.240244, 11.4217 },
	{ "layer0.gate_proj", 0.1709279, 2.545743, 17.83441 },
	{ "layer0.up_proj", -0.4172348, 0.3369126, 14.70726 },
	{ "layer0.mlp_act", -0.03869867, 0.7953277, 11.79097 },
	{ "layer0.down_proj", -0.09956815, 1.121348, 12.85833 },
	{ "layer0.output", -1.537433, 0.1868837, 18.46554 },
	{ "layer1.output", 0.9168901, -0.9816515, 22.74084 },
	{ "final_norm", 0.2771917, -0.4830368, 12.05131 },
	{ "logits", 1.890736, -0.02487613, 20.86642 },
};

/* Seven digits are given; HuggingFace in float32 itself is within 3e-6. */
static bool golden_near(double a, double b)
{
	return fabs(a - b) <= 3e-6 + 6e-7 * fabs(b);
}

static void check_golden(vn_policy policy)
{
	keep   k;
	size_t n;

	run(&k, policy, 2, "*", ids, T);
	for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
		double *x = doubles(&k, golden[i].name, &n), squares = 0;
		CU_ASSERT_PTR_NOT_NULL_FATAL(x);
		for (size_t j = 0; j < n; j++)
			squares += x[j] * x[j];
		const bool ok = golden_near(x[0], golden[i].first) && golden_near(x[n - 1], golden[i].last) && golden_near(sqrt(squares), golden[i].norm);
		CU_ASSERT(ok);
		if (!ok)
			fprintf(stderr, "%s: %.9g %.9g %.9g\n", golden[i].name, x[0], x[n - 1], sqrt(squares));
		free(x);
	}

	const double last_row[8] = { 1.114159, 0.995844, -0.670074, -3.057582, 2.004670, 0.996979, 1.889538, -2.578010 };
	const int    top[T] = { 3, 13, 12, 12, 2, 2, 2, 12 };
	double      *x = doubles(&k, "logits", &n);
	CU_ASSERT_EQUAL_FATAL(n, T * TOY_V);
	for (int i = 0; i < 8; i++)
		CU_ASSERT(golden_near(x[(T - 1) * TOY_V + i], last_row[i]));
	for (int t = 0; t < T; t++) {
		int best = 0;
		for (int i = 1; i < TOY_V; i++)
			best = x[t * TOY_V + i] > x[t * TOY_V + best] ? i : best;
		CU_ASSERT_EQUAL(best, top[t]);
	}
	free(x);
	keep_clear(&k);
}

/* The check of the fill rule in appendix A: without it the rest proves nothing. */
static void the_toy_model_is_filled_as_the_specification_says(void)
{
	const char *name = "model.embed_tokens.weight";
	const float want[] = { 0.356109619f, -0.797393799f, 0.206268311f, -0.071685791f };
	uint32_t    x = toy_hash(name);

	CU_ASSERT_EQUAL(x, 0x403ADE76u);
	for (int i = 0; i < 4; i++)
		CU_ASSERT(fabsf(2 * toy_value(name, &x) - want[i]) < 1e-9f);
}

static void float32_has_the_golden_numbers(void) { check_golden(F32); }
static void float64_has_the_golden_numbers(void) { check_golden(F64); }

/* Mean squared error over mean square, of every logit. */
static double nmse(const keep *a, const keep *ref, const char *name)
{
	size_t  n, m;
	double *x = doubles(a, name, &n), *y = doubles(ref, name, &m), error = 0, square = 0;

	CU_ASSERT_EQUAL_FATAL(n, m);
	for (size_t i = 0; i < n; i++) {
		error += (x[i] - y[i]) * (x[i] - y[i]);
		square += y[i] * y[i];
	}
	free(x);
	free(y);
	return error / square;
}

static void each_coarser_format_is_further_away_and_by_its_own_amount(void)
{
	keep a, b, c, d;

	run(&a, F64, 1, "*", ids, T);
	run(&b, F32, 1, "*", ids, T);
	run(&c, F16, 1, "*", ids, T);
	run(&d, ACC16, 1, "*", ids, T);
	const double f32 = nmse(&b, &a, "logits"), f16 = nmse(&c, &a, "logits"), acc16 = nmse(&d, &a, "logits");
	CU_ASSERT(f32 > 1e-16 && f32 < 1e-12);
	CU_ASSERT(f16 > 1e-8 && f16 < 1e-5); /* one rounding to half is 2e-8; the weights too are rounded, and layers amplify */
	CU_ASSERT(acc16 > 1.2 * f16 && acc16 < 1e-4);
	if (!(f16 > 1e-8 && f16 < 1e-5 && acc16 > 1.2 * f16))
		fprintf(stderr, "nmse f32 %g, f16 %g, f16-acc16 %g\n", f32, f16, acc16);
	keep_clear(&a), keep_clear(&b), keep_clear(&c), keep_clear(&d);
}

static void every_value_is_handed_over_in_the_format_it_is_stored_in(void)
{
	const struct { vn_policy policy; vn_dtype dtype; } row[] = { { F32, VN_F32 }, { F64, VN_F64 }, { F16, VN_F16 }, { ACC16, VN_F16 } };
	keep k;

	for (int i = 0; i < 4; i++) {
		run(&k, row[i].policy, 1, "*", ids, T);
		for (int j = 0; j < k.n; j++)
			CU_ASSERT_EQUAL(k.value[k.order[j]].dtype, row[i].dtype);
		keep_clear(&k);
	}
}

/* ---- what a value is made of ---------------------------------------------------------------- */

static void scores_and_probabilities_are_those_of_the_tapped_queries_and_keys(void)
{
	int32_t long_id[LONG];
	size_t  n;
	keep    k;

	long_ids(long_id, 64);
	run(&k, F64, 2, "*", long_id, 64);
	for (int l = 0; l < TOY_L; l++) {
		char name[4][64];
		snprintf(name[0], 64, "layer%d.q_rope", l), snprintf(name[1], 64, "layer%d.k_rope", l);
		snprintf(name[2], 64, "layer%d.attn_scores", l), snprintf(name[3], 64, "layer%d.attn_probs", l);
		double *q = doubles(&k, name[0], &n), *key = doubles(&k, name[1], &n), *s = doubles(&k, name[2], &n), *p = doubles(&k, name[3], &n);
		double  worst_s = 0, worst_p = 0, beyond = 0;
		CU_ASSERT_EQUAL_FATAL(n, TOY_H * 64 * 64);
		for (int h = 0; h < TOY_H; h++)
			for (int i = 0; i < 64; i++) {
				double row[64], sum = 0;
				for (int j = 0; j < 64; j++) {
					double dot = 0;
					for (int d = 0; d < TOY_K; d++)
						dot += q[(i * TOY_H + h) * TOY_K + d] * key[(j * TOY_G + h / 2) * TOY_K + d];
					row[j] = dot / 2; /* 4^-1/2 */
					sum += j <= i ? exp(row[j]) : 0;
				}
				for (int j = 0; j < 64; j++) {
					const size_t at = (size_t)((h * 64 + i) * 64 + j);
					worst_s = fmax(worst_s, fabs(s[at] - row[j]));
					worst_p = fmax(worst_p, fabs(p[at] - (j <= i ? exp(row[j]) / sum : 0)));
					beyond += j > i && p[at] != 0.0;
				}
			}
		CU_ASSERT(worst_s < 1e-13);
		CU_ASSERT(worst_p < 1e-13);
		CU_ASSERT_EQUAL(beyond, 0.0);
		free(q), free(key), free(s), free(p);
	}
	keep_clear(&k);
}

static void the_first_row_of_attention_is_its_own_value(void)
{
	size_t n;
	keep   k;

	run(&k, F32, 1, "layer0.{v_proj,attn_context}", ids, T);
	double *v = doubles(&k, "layer0.v_proj", &n), *c = doubles(&k, "layer0.attn_context", &n);
	for (int h = 0; h < TOY_H; h++)
		for (int d = 0; d < TOY_K; d++)
			CU_ASSERT_EQUAL(c[h * TOY_K + d], v[h / 2 * TOY_K + d]);
	free(v);
	free(c);
	keep_clear(&k);
}

/* ---- what must not change a bit ---------------------------------------------------------------- */

static const vn_policy all_policies[] = { { VN_F32, VN_F32 }, { VN_F64, VN_F64 }, { VN_F16, VN_F32 }, { VN_F16, VN_F16 } };

static void any_number_of_threads_gives_the_same_bits(void)
{
	int32_t long_id[LONG];

	long_ids(long_id, 64);
	for (size_t i = 0; i < 4; i++) {
		keep a, b;
		run(&a, all_policies[i], 1, "*", long_id, 64);
		for (int threads = 2; threads <= 3; threads++) {
			run(&b, all_policies[i], threads, "*", long_id, 64);
			for (int v = 0; v < a.plan->n_values; v++)
				if (a.plan->value[v].alias_of < 0)
					CU_ASSERT(same_bits(&a, &b, a.plan->value[v].name));
			keep_clear(&b);
		}
		keep_clear(&a);
	}
}

static void taps_change_no_bit_of_the_logits(void)
{
	const char *glob[] = { "{logits,layer*.attn_probs,layer0.gate_act}", "{logits,layer1.input}", "logits" };

	for (size_t i = 0; i < 4; i++) {
		keep a, b;
		run(&a, all_policies[i], 2, "*", ids, T);
		for (int g = 0; g < 3; g++) {
			run(&b, all_policies[i], 2, glob[g], ids, T);
			CU_ASSERT(same_bits(&a, &b, "logits"));
			keep_clear(&b);
		}
		/* without any tap: the next call sees what this one left in the cache */
		vn_ref *tapped = engine(vn_model_plan(model), all_policies[i], 2), *silent = engine(vn_model_plan(model), all_policies[i], 2);
		keep_clear(&a);
		keep_start(&a, vn_model_plan(model), "*");
		forward(tapped, ids, T - 1, &a);
		forward(silent, ids, T - 1, NULL);
		keep_start(&b, vn_model_plan(model), "logits");
		forward(tapped, ids + T - 1, 1, &a);
		forward(silent, ids + T - 1, 1, &b);
		CU_ASSERT(same_bits(&a, &b, "logits"));
		vn_ref_destroy(tapped);
		vn_ref_destroy(silent);
		keep_clear(&a);
		keep_clear(&b);
	}
}

static void a_second_run_and_a_reset_give_the_same_bits(void)
{
	keep    a, b;
	vn_ref *r = engine(vn_model_plan(model), F32, 2);
	int32_t long_id[LONG];

	long_ids(long_id, 64);
	run(&a, F32, 2, "*", ids, T);
	keep_start(&b, vn_model_plan(model), "*");
	forward(r, long_id, 64, NULL); /* something else first: memory and cache are used */
	vn_ref_reset(r);
	CU_ASSERT_EQUAL(vn_ref_position(r), 0);
	forward(r, ids, T, &b);
	for (int v = 0; v < a.plan->n_values; v++)
		if (a.plan->value[v].alias_of < 0)
			CU_ASSERT(same_bits(&a, &b, a.plan->value[v].name));
	vn_ref_destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

/* Rows of token t of a value: (T, ...), (S, ...) or (H, T, S). */
static bool rows_same(const keep *a, const keep *b, int v, int64_t before)
{
	const vn_shape *s = &a->value[v].shape;
	const size_t    size = vn_dtype_size(a->value[v].dtype);
	const bool      score = a->plan->value[v].size[a->plan->value[v].rank - 1] == VN_S;
	const int64_t   outer = score ? s->dim[0] : 1, rows = score ? s->dim[1] : s->dim[0];
	const size_t    row = (size_t)(vn_shape_count(s) / outer / rows) * size;

	for (int64_t o = 0; o < outer; o++)
		for (int64_t t = 0; t < before; t++) {
			/* scores against a later key are shown before the mask and may differ */
			const size_t n = a->plan->value[v].point == VN_POINT_ATTN_SCORES ? (size_t)before * size : row;
			if (memcmp(a->value[v].data + (size_t)(o * rows + t) * row, b->value[v].data + (size_t)(o * rows + t) * row, n) != 0)
				return false;
		}
	return true;
}

static void changing_the_last_token_changes_nothing_before_it(void)
{
	int32_t one[64], two[64];

	long_ids(one, 64);
	memcpy(two, one, sizeof two);
	two[63] = (two[63] + 11) % 32;
	for (size_t i = 0; i < 4; i++) {
		keep a, b;
		run(&a, all_policies[i], 2, "*", one, 64);
		run(&b, all_policies[i], 2, "*", two, 64);
		CU_ASSERT_FALSE(same_bits(&a, &b, "logits"));
		for (int v = 0; v < a.plan->n_values; v++)
			if (a.plan->value[v].alias_of < 0)
				CU_ASSERT(rows_same(&a, &b, v, 63));
		keep_clear(&a);
		keep_clear(&b);
	}
}

/* The same, when the last token poisons its own row: the embedding of id 31 is NaN. */
static void a_nan_in_the_last_token_reaches_nothing_before_it(void)
{
	vn_tensor weight[TOY_MOST];
	float     embedding[TOY_V * TOY_D];
	int32_t   one[64], two[64];

	memcpy(weight, vn_model_weights(model), (size_t)vn_model_plan(model)->n_weights * sizeof *weight);
	memcpy(embedding, weight[0].data, sizeof embedding);
	for (int d = 0; d < TOY_D; d++)
		embedding[31 * TOY_D + d] = NAN;
	weight[0].data = embedding;
	for (int t = 0; t < 64; t++)
		one[t] = two[t] = (7 * t + 3) % 31;
	two[63] = 31;
	/* the tied output matrix has the NaN row as well: a NaN in column 31 of the logits everywhere */
	for (size_t i = 0; i < 4; i++) {
		keep    a, b;
		vn_ref *r;
		CU_ASSERT_EQUAL_FATAL(vn_ref_create(vn_model_plan(model), weight, &(vn_ref_options){ .policy = all_policies[i], .threads = 2 }, &r, NULL), VN_OK);
		keep_start(&a, vn_model_plan(model), "*");
		keep_start(&b, vn_model_plan(model), "*");
		forward(r, one, 64, &a);
		vn_ref_reset(r);
		forward(r, two, 64, &b);
		for (int v = 0; v < a.plan->n_values; v++)
			if (a.plan->value[v].alias_of < 0 && a.plan->value[v].point != VN_POINT_LOGITS)
				CU_ASSERT(rows_same(&a, &b, v, 63));
		vn_ref_destroy(r);
		keep_clear(&a);
		keep_clear(&b);
	}
}

/* ---- calls ------------------------------------------------------------------------------------ */

static void any_split_of_a_prompt_gives_the_logits_of_one_prefill(void)
{
	const vn_policy policy[] = { F32, F64 };
	const double    tolerance[] = { 3e-6, 1e-13 }; /* models.md 7.4 */
	int32_t         long_id[LONG];

	long_ids(long_id, 64);
	for (int i = 0; i < 2; i++)
		for (int step = 1; step <= 33; step += step < 4 ? 1 : 14) {
			keep    a, b;
			vn_ref *r = engine(vn_model_plan(model), policy[i], 1);
			double  worst = 0;
			size_t  n, m;

			run(&a, policy[i], 1, "logits", long_id, 64);
			double *whole = doubles(&a, "logits", &n);
			keep_start(&b, vn_model_plan(model), "logits");
			for (int t = 0; t < 64; t += step) {
				const int here = 64 - t < step ? 64 - t : step;
				forward(r, long_id + t, here, &b);
				double *part = doubles(&b, "logits", &m);
				CU_ASSERT_EQUAL_FATAL(m, (size_t)here * TOY_V);
				for (size_t j = 0; j < m; j++)
					worst = fmax(worst, fabs(part[j] - whole[(size_t)t * TOY_V + j]));
				free(part);
				CU_ASSERT_EQUAL(vn_ref_position(r), t + here);
			}
			CU_ASSERT(worst <= tolerance[i]);
			if (!(worst <= tolerance[i]))
				fprintf(stderr, "steps of %d: %g\n", step, worst);
			vn_ref_destroy(r);
			free(whole);
			keep_clear(&a);
			keep_clear(&b);
		}
}

static void selected_rows_are_those_of_the_whole_and_no_others(void)
{
	const struct { vn_tap_rows rows; int64_t first, last; int from, count; } row[] = {
		{ VN_ROWS_LAST, 0, 0, 7, 1 }, { VN_ROWS_RANGE, 2, 4, 2, 3 }, { VN_ROWS_RANGE, 0, 0, 0, 1 }, { VN_ROWS_RANGE, 6, 99, 6, 2 },
	};
	keep    a, b;

	run(&a, F32, 2, "*", ids, T);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_ref *r = engine(vn_model_plan(model), F32, 2);
		keep_start(&b, vn_model_plan(model), "*");
		b.rows = row[i].rows, b.first = row[i].first, b.last = row[i].last;
		forward(r, ids, T, &b);
		for (int v = 0; v < a.plan->n_values; v++) {
			if (a.plan->value[v].alias_of >= 0)
				continue;
			if (a.plan->value[v].state >= 0) { /* whole, whatever the rows */
				CU_ASSERT(same_bits(&a, &b, a.plan->value[v].name));
				continue;
			}
			const vn_shape *s = &b.value[v].shape;
			const bool      score = a.plan->value[v].size[0] != VN_T;
			CU_ASSERT_EQUAL_FATAL(s->dim[score ? 1 : 0], row[i].count);
			const int64_t outer = score ? TOY_H : 1, n = vn_shape_count(s) / outer / row[i].count;
			for (int64_t o = 0; o < outer; o++)
				CU_ASSERT_EQUAL(memcmp(b.value[v].data + (size_t)(o * row[i].count * n) * 4,
				                       a.value[v].data + (size_t)((o * T + row[i].from) * n) * 4, (size_t)(row[i].count * n) * 4), 0);
		}
		keep_clear(&b);
		vn_ref_destroy(r);
	}
	keep_clear(&a);
}

static void rows_outside_the_call_are_not_handed_over(void)
{
	keep    k;
	vn_ref *r = engine(vn_model_plan(model), F32, 1);

	keep_start(&k, vn_model_plan(model), "*");
	k.rows = VN_ROWS_RANGE, k.first = 5, k.last = 5;
	forward(r, ids, 4, &k);
	CU_ASSERT_EQUAL(k.n, 0);
	forward(r, ids + 4, 4, &k);
	CU_ASSERT(k.n > 0);
	CU_ASSERT_EQUAL(k.value[vn_plan_find(k.plan, "embed")].shape.dim[0], 1);
	vn_ref_destroy(r);
	keep_clear(&k);
}

static void values_come_in_execution_order_and_aliases_once(void)
{
	keep k;

	run(&k, F32, 2, "*", ids, T);
	for (int i = 1; i < k.n; i++)
		CU_ASSERT(k.order[i] > k.order[i - 1]);
	CU_ASSERT_EQUAL(k.n, k.plan->n_values - TOY_L);
	keep_clear(&k);
	run(&k, F32, 2, "layer1.input", ids, T);
	CU_ASSERT_EQUAL(k.n, 1);
	CU_ASSERT_EQUAL(k.order[0], vn_plan_find(k.plan, "layer0.output"));
	keep_clear(&k);
}

/* ---- failures ------------------------------------------------------------------------------------ */

static void refused(vn_ref *r, const int32_t *id, int64_t n, const char *word)
{
	const int64_t before = vn_ref_position(r);
	vn_error      e = { "" };

	CU_ASSERT_EQUAL(vn_ref_forward(r, id, n, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, word));
	if (!strstr(e.text, word))
		fprintf(stderr, "wanted '%s', have '%s'\n", word, e.text);
	CU_ASSERT_EQUAL(vn_ref_position(r), before);
}

static void calls_that_cannot_be_are_refused_and_change_nothing(void)
{
	const int32_t low[] = { 3, -1, 4 }, high[] = { 3, 1, 32 }, far_off[] = { 2147483647 };
	int32_t       long_id[LONG];
	vn_ref       *r = engine(vn_model_plan(model), F32, 1);
	keep          a, b;

	long_ids(long_id, LONG);
	refused(r, ids, 0, "empty prompt");
	refused(r, ids, -3, "empty prompt");
	refused(r, long_id, 65, "65 tokens, the model's context is 64");
	refused(r, low, 3, "token 1: id -1 is outside the vocabulary (0 to 31)");
	refused(r, high, 3, "token 2: id 32");
	refused(r, far_off, 1, "id 2147483647");
	forward(r, ids, 4, NULL);
	refused(r, ids, 0, "empty prompt");
	refused(r, long_id, 61, "65 tokens");
	refused(r, high, 3, "token 2");

	/* and the run goes on as if nothing had been said */
	run(&a, F32, 1, "logits", ids, T);
	keep_start(&b, vn_model_plan(model), "logits");
	forward(r, ids + 4, 4, &b);
	CU_ASSERT(nmse(&b, &b, "logits") == 0.0);
	CU_ASSERT(golden_near((double)((float *)(void *)b.value[vn_plan_find(b.plan, "logits")].data)[4 * TOY_V - 1], -0.02487613));
	vn_ref_destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

static void the_whole_context_may_be_used_and_no_more(void)
{
	int32_t long_id[LONG];
	vn_ref *r = engine(vn_model_plan(model), F16, 2);

	long_ids(long_id, LONG);
	forward(r, long_id, 63, NULL);
	forward(r, long_id + 63, 1, NULL);
	CU_ASSERT_EQUAL(vn_ref_position(r), 64);
	refused(r, long_id, 1, "65 tokens");
	vn_ref_reset(r);
	forward(r, long_id, 64, NULL);
	vn_ref_destroy(r);
}

static void a_sink_that_fails_ends_the_run_with_its_error(void)
{
	keep    k, good, after;
	vn_ref *r = engine(vn_model_plan(model), F32, 1);
	int     calls;

	run(&good, F32, 1, "*", ids, T);
	calls = good.calls;
	CU_ASSERT(calls >= 3 * good.n);
	for (int i = 0; i < calls; i++) {
		keep_start(&k, vn_model_plan(model), "*");
		k.fail_at = i;
		const vn_taps t = taps_of(&k);
		vn_error      e = { "" };
		CU_ASSERT_EQUAL(vn_ref_forward(r, ids, T, &t, &e), VN_ERR_IO);
		CU_ASSERT_STRING_EQUAL(e.text, "the sink is full");
		CU_ASSERT_EQUAL(vn_ref_position(r), 0);
		CU_ASSERT_EQUAL(k.calls, i + 1); /* nothing is handed over after that */
		keep_clear(&k);
	}
	keep_start(&after, vn_model_plan(model), "*");
	forward(r, ids, T, &after);
	CU_ASSERT(same_bits(&good, &after, "logits"));
	vn_ref_destroy(r);
	keep_clear(&good);
	keep_clear(&after);
}

static void an_engine_says_what_it_is(void)
{
	vn_ref  *r = engine(vn_model_plan(model), ACC16, 3);
	vn_facts f = { 0 };

	vn_ref_facts(r, &f);
	CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "engine"), "ref");
	CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "precision"), "f16-acc16");
	CU_ASSERT_STRING_EQUAL(vn_facts_get(&f, "threads"), "3");
	CU_ASSERT_PTR_NOT_NULL(vn_facts_get(&f, "blas_kernel"));
	vn_ref_destroy(r);
	vn_ref_destroy(NULL);
}

static void a_window_in_a_clone_hides_the_keys_before_it(void)
{
	vn_plan *c;
	keep     k;
	size_t   n;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(vn_model_plan(model), &c, NULL), VN_OK);
	for (int i = 0; i < c->n_nodes; i++)
		if (c->node[i].op == VN_OP_ATTENTION)
			CU_ASSERT_EQUAL(vn_const_set(&c->node[i], "window", 3, NULL), VN_OK);
	vn_ref *r = engine(c, F32, 1);
	keep_start(&k, c, "layer0.attn_probs");
	forward(r, ids, T, &k);
	double *p = doubles(&k, "layer0.attn_probs", &n);
	for (int h = 0; h < TOY_H; h++)
		for (int i = 0; i < T; i++)
			for (int j = 0; j < T; j++)
				CU_ASSERT_EQUAL(p[(h * T + i) * T + j] > 0, j <= i && j > i - 3);
	free(p);
	vn_ref_destroy(r);
	keep_clear(&k);
	vn_plan_destroy(c);
}

/* ---- changed constants --------------------------------------------------------------------------- */

static vn_plan *changed(const char *value, const char *constant, double to)
{
	vn_plan *c;

	CU_ASSERT_EQUAL_FATAL(vn_plan_clone(vn_model_plan(model), &c, NULL), VN_OK);
	CU_ASSERT_EQUAL_FATAL(vn_const_set(&c->node[c->value[vn_plan_find(c, value)].node], constant, to, NULL), VN_OK);
	return c;
}

static void a_clone_whose_constants_do_not_fit_its_shapes_is_refused(void)
{
	const struct { const char *value, *constant; double to; const char *word; } row[] = {
		{ "layer0.attn_context", "heads", 64, "64 heads" },        { "layer0.attn_context", "heads", 2, "2 heads" },
		{ "layer1.attn_context", "kv_heads", 4, "4 key heads" },   { "layer1.attn_context", "kv_heads", 1, "1 key heads" },
		{ "layer0.attn_context", "head_dim", 8, "width 8" },       { "layer0.attn_context", "head_dim", 2, "width 2" },
		{ "layer0.q_rope", "rotary_dim", 6, "6 rotary columns" },  { "layer0.k_rope", "rotary_dim", 65536, "rotary columns" },
		{ "layer0.q_rope", "type", VN_ROPE_LLAMA3, "low_freq_factor" },
	};

	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan *c = changed(row[i].value, row[i].constant, row[i].to);
		vn_ref  *r;
		vn_error e = { "" };
		CU_ASSERT_EQUAL(vn_ref_create(c, vn_model_weights(model), &(vn_ref_options){ .policy = F32 }, &r, &e), VN_ERR_UNSUPPORTED);
		CU_ASSERT_PTR_NULL(r);
		const bool said = strstr(e.text, row[i].word) && strstr(e.text, row[i].value);
		CU_ASSERT(said);
		if (!said)
			fprintf(stderr, "%s of %s: '%s'\n", row[i].constant, row[i].value, e.text);
		vn_plan_destroy(c);
	}
}

static void a_changed_constant_changes_its_own_node_and_nothing_beside_it(void)
{
	const struct { const char *value, *constant; double to; } row[] = {
		{ "layer1.attn_norm", "eps", 1e-2 }, { "layer1.q_rope", "theta", 500 }, { "layer1.k_rope", "rotary_dim", 2 },
		{ "layer1.attn_context", "scale", 0.25 }, { "layer1.attn_context", "window", 3 }, { "layer1.attn_context", "causal", 0 },
	};
	keep a, b;

	run(&a, F32, 2, "*", ids, T);
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		vn_plan  *c = changed(row[i].value, row[i].constant, row[i].to);
		vn_ref   *r = engine(c, F32, 2);
		const int own = vn_plan_find(c, row[i].value), node = c->value[own].node;
		bool      follows[MOST_VALUES] = { false }; /* reads what the node made, at whatever distance */
		keep_start(&b, c, "*");
		forward(r, ids, T, &b);
		CU_ASSERT_FALSE(same_bits(&a, &b, row[i].value));
		follows[own] = true;
		for (int n = node; n < c->n_nodes; n++) {
			bool reads = n == node; /* its scores and probabilities may change, too */
			for (int j = 0; j < c->node[n].n_in; j++)
				reads = reads || follows[c->node[n].in[j]];
			for (int j = 0; reads && j < c->node[n].n_out; j++)
				follows[c->node[n].out[j]] = true;
		}
		for (int v = 0; v < c->n_values; v++)
			if (c->value[v].alias_of < 0 && !follows[v])
				CU_ASSERT(same_bits(&a, &b, c->value[v].name));
		CU_ASSERT_FALSE(same_bits(&a, &b, "logits"));
		vn_ref_destroy(r);
		keep_clear(&b);
		vn_plan_destroy(c);
	}
	keep_clear(&a);
}

/* ---- a call in parts ------------------------------------------------------------------------------- */

enum { MOST_ROW = T * TOY_V * 8 }; /* bytes of the largest value here, and more */

/* A node computed outside the engine on what it holds: (tokens, row) in the storage format. */
static void compute(vn_ref *r, const vn_plan *p, int node, vn_policy policy, unsigned char *out)
{
	static unsigned char stored[VN_MAX_IN][MOST_ROW], real[VN_MAX_IN + 1][2 * MOST_ROW];
	const vn_eval       *e = vn_eval_for(policy);
	const vn_node       *n = &p->node[node];
	const vn_value      *y = &p->value[n->out[0]];
	vn_args              a = { .policy = policy, .threads = 1, .tokens = T, .ids = ids };
	const bool           half = policy.storage == VN_F16;

	for (int i = 0; i < n->n_in; i++) {
		CU_ASSERT_EQUAL_FATAL(vn_ref_read(r, n->in[i], stored[i], NULL), VN_OK);
		if (half)
			vn_to_f32((float *)(void *)real[i], stored[i], VN_F16, (size_t)(T * vn_value_row(&p->value[n->in[i]])));
		a.in[i] = half ? real[i] : stored[i];
	}
	for (int i = 0; i < n->n_w; i++)
		a.w[i] = n->w[i] >= 0 ? &vn_model_weights(model)[n->w[i]] : NULL;
	for (int i = 0; i < n->n_state; i++) /* the first call: its own rows are all there are */
		a.state[i] = (void *)(uintptr_t)a.in[p->state[n->state[i]].input];
	CU_ASSERT_EQUAL(e->node(n, &a, vn_value_row(y), y->size[y->rank - 1], half ? real[VN_MAX_IN] : out, NULL), VN_OK);
	if (half)
		vn_from_f32(out, VN_F16, (float *)(void *)real[VN_MAX_IN], (size_t)(T * vn_value_row(y)));
}

static void a_node_computed_elsewhere_and_written_gives_the_same_bits(void)
{
	const vn_plan *p = vn_model_plan(model);
	unsigned char  made[MOST_ROW], back[MOST_ROW];

	for (int i = 0; i < 4; i++) {
		keep    whole, after, b;
		vn_ref *r = engine(p, all_policies[i], 1);
		run(&whole, all_policies[i], 1, "logits", ids, T);
		forward(r, ids, T, NULL);
		keep_start(&after, p, "logits");
		forward(r, ids, 1, &after); /* a token behind it: the cache must be as full */
		for (int n = 0; n < p->n_nodes; n++) {
			if (vn_value_streams(p, p->node[n].out[0]))
				continue;
			vn_ref_reset(r);
			keep_start(&b, p, "logits");
			const vn_taps t = taps_of(&b);
			const size_t  bytes = (size_t)(T * vn_value_row(&p->value[p->node[n].out[0]])) * vn_dtype_size(all_policies[i].storage);
			CU_ASSERT_EQUAL_FATAL(vn_ref_begin(r, ids, T, &t, NULL), VN_OK);
			CU_ASSERT_EQUAL(vn_ref_run(r, 0, n, NULL), VN_OK);
			compute(r, p, n, all_policies[i], made);
			CU_ASSERT_EQUAL(vn_ref_write(r, p->node[n].out[0], made, NULL), VN_OK);
			CU_ASSERT_EQUAL(vn_ref_read(r, p->node[n].out[0], back, NULL), VN_OK);
			CU_ASSERT_EQUAL(memcmp(made, back, bytes), 0);
			CU_ASSERT_EQUAL(vn_ref_run(r, n + 1, p->n_nodes, NULL), VN_OK);
			vn_ref_end(r, true);
			CU_ASSERT_EQUAL(vn_ref_position(r), T);
			CU_ASSERT(same_bits(&whole, &b, "logits"));
			forward(r, ids, 1, &b);
			CU_ASSERT(same_bits(&after, &b, "logits"));
			keep_clear(&b);
		}
		vn_ref_destroy(r);
		keep_clear(&whole);
		keep_clear(&after);
	}
}

static void a_changed_value_changes_exactly_what_follows(void)
{
	const vn_plan *p = vn_model_plan(model);
	const int      v = vn_plan_find(p, "layer0.down_proj"), n = p->value[v].node;
	vn_ref        *r = engine(p, F32, 2);
	float          x[T * TOY_D];
	keep           a, b;

	run(&a, F32, 2, "*", ids, T);
	keep_start(&b, p, "*");
	const vn_taps t = taps_of(&b);
	CU_ASSERT_EQUAL_FATAL(vn_ref_begin(r, ids, T, &t, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_run(r, 0, n, NULL), VN_OK);
	memcpy(x, a.value[v].data, sizeof x);
	x[5 * TOY_D + 3] += 1.0f; /* of token 5 */
	CU_ASSERT_EQUAL(vn_ref_write(r, v, x, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_run(r, n + 1, p->n_nodes, NULL), VN_OK);
	vn_ref_end(r, true);
	CU_ASSERT_PTR_NULL(b.value[v].data); /* a tap shows what a node makes */
	for (int i = 0; i < p->n_values; i++) {
		if (p->value[i].alias_of >= 0 || i == v)
			continue;
		if (p->value[i].node < n) {
			CU_ASSERT(same_bits(&a, &b, p->value[i].name));
		} else {
			CU_ASSERT_FALSE(same_bits(&a, &b, p->value[i].name));
			CU_ASSERT(rows_same(&a, &b, i, 5));
		}
	}
	vn_ref_destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

static void what_is_not_there_is_refused_and_never_made_up(void)
{
	const vn_plan *p = vn_model_plan(model);
	const int      embed = vn_plan_find(p, "embed"), q = vn_plan_find(p, "layer0.q_proj"), k = vn_plan_find(p, "layer0.k_rope");
	const int      out = p->value[vn_plan_find(p, "layer0.attn_out")].node;
	vn_ref        *r = engine(p, F32, 1);
	unsigned char  x[MOST_ROW] = { 0 };
	vn_error       e;

	vn_ref_end(r, true); /* nothing is begun: nothing happens */
	CU_ASSERT_EQUAL(vn_ref_position(r), 0);
	CU_ASSERT_EQUAL(vn_ref_run(r, 0, 1, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_read(r, embed, x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_write(r, embed, x, &e), VN_ERR_USAGE);

	CU_ASSERT_EQUAL_FATAL(vn_ref_begin(r, ids, T, NULL, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_begin(r, ids, T, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_forward(r, ids, T, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_run(r, -1, 1, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_run(r, 0, p->n_nodes + 1, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_read(r, embed, x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_run(r, 1, 2, &e), VN_ERR_USAGE);
	CU_ASSERT_STRING_EQUAL(e.text, "layer0.attn_norm: its input embed is not there: neither run nor written, or gone");
	CU_ASSERT_EQUAL(vn_ref_run(r, 0, out + 1, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_read(r, embed, x, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_read(r, vn_plan_find(p, "layer0.input"), x, NULL), VN_OK); /* its second name */
	CU_ASSERT_EQUAL(vn_ref_read(r, p->n_values, x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_read(r, vn_plan_find(p, "layer0.attn_probs"), x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_write(r, vn_plan_find(p, "logits"), x, &e), VN_ERR_USAGE);
	CU_ASSERT_EQUAL(vn_ref_run(r, out + 1, p->n_nodes, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_read(r, q, x, &e), VN_ERR_USAGE); /* its memory is another's by now */
	vn_ref_end(r, false);
	CU_ASSERT_EQUAL(vn_ref_position(r), 0);

	/* keys of a kept call that nobody made: refused when they are needed */
	CU_ASSERT_EQUAL_FATAL(vn_ref_begin(r, ids, T, NULL, NULL), VN_OK);
	CU_ASSERT_EQUAL(vn_ref_run(r, 0, p->value[k].node, NULL), VN_OK);
	vn_ref_end(r, true);
	CU_ASSERT_EQUAL(vn_ref_forward(r, ids, 1, NULL, &e), VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(e.text, "layer0.attn_context: its input layer0.k_rope is not there"));
	CU_ASSERT_EQUAL(vn_ref_position(r), T);
	vn_ref_reset(r);
	forward(r, ids, T, NULL);
	vn_ref_destroy(r);
}

/* ---- stopping -------------------------------------------------------------------------------------- */

typedef struct patience { int left, asked; } patience;

static bool lost(void *ctx)
{
	patience *p = ctx;
	p->asked++;
	return p->left-- <= 0;
}

static void a_run_can_be_stopped_before_every_node_and_changes_nothing(void)
{
	const vn_plan *p = vn_model_plan(model);
	patience       until = { .left = 1000 };
	vn_ref        *r;
	keep           a, b;

	run(&a, F32, 1, "logits", ids, T);
	CU_ASSERT_EQUAL_FATAL(vn_ref_create(p, vn_model_weights(model), &(vn_ref_options){ .policy = F32, .threads = 1, .stop = lost,
	                                    .stop_ctx = &until }, &r, NULL), VN_OK);
	forward(r, ids, 4, NULL);
	CU_ASSERT_EQUAL(until.asked, p->n_nodes + 1); /* once more for the one piece of the logits */
	for (int i = 0; i <= p->n_nodes; i++) {
		vn_error e = { "" };
		until = (patience){ .left = i };
		CU_ASSERT_EQUAL(vn_ref_forward(r, ids + 4, 4, NULL, &e), VN_ERR_INTERRUPTED);
		CU_ASSERT_STRING_EQUAL(e.text, "interrupted");
		CU_ASSERT_EQUAL(until.asked, i + 1);
		CU_ASSERT_EQUAL(vn_ref_position(r), 4);
	}
	until.left = 1000;
	vn_ref_reset(r);
	keep_start(&b, p, "logits");
	forward(r, ids, T, &b);
	CU_ASSERT(same_bits(&a, &b, "logits"));
	vn_ref_destroy(r);
	keep_clear(&a);
	keep_clear(&b);
}

int main(void)
{
	unsigned  failures = 1;
	toy_model m;
	vn_error  e;

	toy_directory(dir);
	toy_build(&m, VN_F32);
	toy_save(&m, dir, TOY_CONFIG);
	toy_free(&m);
	if (vn_model_open(dir, &model, &e) != VN_OK) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;

	CU_pSuite s = CU_add_suite("ref", NULL, NULL);
	if (s && CU_ADD_TEST(s, the_toy_model_is_filled_as_the_specification_says) &&
	    CU_ADD_TEST(s, float32_has_the_golden_numbers) &&
	    CU_ADD_TEST(s, float64_has_the_golden_numbers) &&
	    CU_ADD_TEST(s, each_coarser_format_is_further_away_and_by_its_own_amount) &&
	    CU_ADD_TEST(s, every_value_is_handed_over_in_the_format_it_is_stored_in) &&
	    CU_ADD_TEST(s, scores_and_probabilities_are_those_of_the_tapped_queries_and_keys) &&
	    CU_ADD_TEST(s, the_first_row_of_attention_is_its_own_value) &&
	    CU_ADD_TEST(s, any_number_of_threads_gives_the_same_bits) &&
	    CU_ADD_TEST(s, taps_change_no_bit_of_the_logits) &&
	    CU_ADD_TEST(s, a_second_run_and_a_reset_give_the_same_bits) &&
	    CU_ADD_TEST(s, changing_the_last_token_changes_nothing_before_it) &&
	    CU_ADD_TEST(s, a_nan_in_the_last_token_reaches_nothing_before_it) &&
	    CU_ADD_TEST(s, any_split_of_a_prompt_gives_the_logits_of_one_prefill) &&
	    CU_ADD_TEST(s, selected_rows_are_those_of_the_whole_and_no_others) &&
	    CU_ADD_TEST(s, rows_outside_the_call_are_not_handed_over) &&
	    CU_ADD_TEST(s, values_come_in_execution_order_and_aliases_once) &&
	    CU_ADD_TEST(s, calls_that_cannot_be_are_refused_and_change_nothing) &&
	    CU_ADD_TEST(s, the_whole_context_may_be_used_and_no_more) &&
	    CU_ADD_TEST(s, a_sink_that_fails_ends_the_run_with_its_error) &&
	    CU_ADD_TEST(s, an_engine_says_what_it_is) &&
	    CU_ADD_TEST(s, a_window_in_a_clone_hides_the_keys_before_it) &&
	    CU_ADD_TEST(s, a_clone_whose_constants_do_not_fit_its_shapes_is_refused) &&
	    CU_ADD_TEST(s, a_changed_constant_changes_its_own_node_and_nothing_beside_it) &&
	    CU_ADD_TEST(s, a_node_computed_elsewhere_and_written_gives_the_same_bits) &&
	    CU_ADD_TEST(s, a_changed_value_changes_exactly_what_follows) &&
	    CU_ADD_TEST(s, what_is_not_there_is_refused_and_never_made_up) &&
	    CU_ADD_TEST(s, a_run_can_be_stopped_before_every_node_and_changes_nothing)) {
		CU_basic_set_mode(CU_BRM_VERBOSE);
		CU_basic_run_tests();
		failures = CU_get_number_of_failures();
	}
	CU_cleanup_registry();
	vn_model_close(model);
	toy_remove(dir);
	return failures != 0;
}
