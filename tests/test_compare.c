/* test_compare.c: whole comparisons, of runs of the trained model in fixtures/ with faults put in. */
#include "compare/commands.h"
#include "compare/compare.h"
#include "compare/report.h"
#include "tests/suite.h"
#include "tests/trial.h"

#include "capture/commands.h"
#include "capture/store.h"
#include "libref/exec/ref.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MODEL VERNIER_SOURCE "/fixtures/qwen2-trained"
enum { TOKENS = 17, DECODE = 2 };

static vn_model      *model;
static vn_weight_row *rows;

/* How a recorded run shall differ from a healthy one. */
typedef struct fault {
	const char *theta_of;  /* this value's node rotates with another theta */
	const char *bias_of;   /* this value's linear node gets another bias */
	const char *nan_in;    /* the first number of this value is filed as NaN */
	const char *points;    /* record only these */
	const char *link;      /* and this second name of a tensor, as a link */
	const char *copy;      /* and this second name, with numbers of its own */
	bool        nan_in_copy;
	int32_t     first_id;  /* instead of the prompt's */
	bool        no_plan, cut_off, other_weights;
	int         decode;    /* steps behind the prompt */
	const char *precision; /* NULL: f32 */
} fault;

typedef struct bend {
	vn_sink to;
	int     value;   /* gets a NaN; -1 */
	bool    first, here;
	vn_dtype dtype;
	int     copied, copy; /* this value is filed once more, as that one; -1 */
	bool    nan_in_copy, copying;
	vn_shape shape;
	unsigned char *data;
	size_t  have;
} bend;

static vn_status bend_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	bend *b = ctx;
	b->here = value == b->value;
	b->first = true;
	b->dtype = dtype;
	b->copying = value == b->copied;
	b->shape = *shape;
	b->have = 0;
	if (b->copying)
		b->data = malloc((size_t)vn_shape_count(shape) * vn_dtype_size(dtype));
	return b->to.begin(b->to.ctx, value, dtype, shape, err);
}

static vn_status bend_write(void *ctx, const void *data, size_t elements, vn_error *err)
{
	bend *b = ctx;
	const size_t size = vn_dtype_size(b->dtype);
	if (b->copying) {
		memcpy(b->data + b->have, data, elements * size);
		b->have += elements * size;
	}
	if (!b->here || !b->first || elements == 0)
		return b->to.write(b->to.ctx, data, elements, err);
	b->first = false;
	char *copy = malloc(elements * size);
	const float nan = NAN;
	memcpy(copy, data, elements * size);
	vn_from_f32(copy, b->dtype, &nan, 1);
	const vn_status st = b->to.write(b->to.ctx, copy, elements, err);
	free(copy);
	return st;
}

static vn_status bend_end(void *ctx, vn_error *err)
{
	bend *b = ctx;
	vn_status st = b->to.end(b->to.ctx, err);
	if (st || !b->copying)
		return st;
	const float nan = NAN;
	if (b->nan_in_copy)
		vn_from_f32(b->data, b->dtype, &nan, 1);
	if (!(st = b->to.begin(b->to.ctx, b->copy, b->dtype, &b->shape, err))
	    && !(st = b->to.write(b->to.ctx, b->data, b->have / vn_dtype_size(b->dtype), err)))
		st = b->to.end(b->to.ctx, err);
	free(b->data);
	b->copying = false;
	return st;
}

static vn_status run_steps(vn_store *s, vn_ref *ref, const vn_plan *plan, const fault *f, const int32_t *ids, vn_error *err)
{
	bool *want = calloc((size_t)plan->n_values, sizeof *want);
	bool *links = calloc((size_t)plan->n_values, sizeof *links);
	bend  b = { .to = vn_store_sink(s), .value = f->nan_in ? vn_plan_root(plan, vn_plan_find(plan, f->nan_in)) : -1,
	            .copy = f->copy ? vn_plan_find(plan, f->copy) : -1, .copied = -1, .nan_in_copy = f->nan_in_copy };
	const vn_taps taps = { .want = want, .rows = VN_ROWS_ALL, .sink = { &b, bend_begin, bend_write, bend_end } };
	vn_status st = vn_taps_choose(plan, &f->points, f->points ? 1 : 0, -1, -1, want, err);
	int64_t done = 0;
	if (b.copy >= 0)
		b.copied = vn_plan_root(plan, b.copy);
	if (f->link)
		links[vn_plan_find(plan, f->link)] = true;
	for (int step = 0; !st && step <= f->decode; step++) {
		const int64_t n = step ? 1 : TOKENS;
		if (!(st = vn_store_step(s, step, done, n, 0, n, err)))
			st = vn_ref_forward(ref, ids + done, n, &taps, err);
		if (!st && f->link)
			st = vn_store_aliases(s, links, err);
		done += n;
	}
	free(links);
	free(want);
	return st;
}

static void record(const char *name, const fault *f)
{
	vn_error  err = { "" };
	vn_plan  *plan = NULL;
	vn_store *s = NULL;
	vn_ref   *ref = NULL;
	int32_t   ids[TOKENS + DECODE], positions[TOKENS + DECODE];
	vn_facts  facts = { 0 };
	vn_ref_options o = { .threads = 1 };
	float     bias[4096];

	CU_ASSERT_FATAL(vn_plan_clone(vn_model_plan(model), &plan, &err) == VN_OK);
	CU_ASSERT_FATAL(vn_policy_from_name(f->precision ? f->precision : "f32", &o.policy));
	vn_tensor *w = malloc((size_t)plan->n_weights * sizeof *w);
	memcpy(w, vn_model_weights(model), (size_t)plan->n_weights * sizeof *w);
	if (f->theta_of)
		CU_ASSERT_FATAL(vn_const_set(&plan->node[plan->value[vn_plan_find(plan, f->theta_of)].node], "theta", 500, &err)
		                == VN_OK);
	if (f->bias_of) {
		const int i = plan->node[plan->value[vn_plan_find(plan, f->bias_of)].node].w[1];
		const int64_t n = vn_shape_count(&w[i].shape);
		for (int64_t k = 0; k < n; k++)
			bias[k] = 0.5f;
		w[i] = (vn_tensor) { VN_F32, w[i].shape, bias };
	}
	for (int i = 0; i < TOKENS + DECODE; i++) {
		ids[i] = (i * 37 + 11) % 500;
		positions[i] = i;
	}
	if (f->first_id)
		ids[0] = f->first_id;
	vn_facts_set(&facts, "engine", "test");
	vn_facts_set(&facts, "precision", "%s", vn_policy_name(o.policy));
	vn_weight_row first = rows[0];
	if (f->other_weights)
		rows[0].digest.hex[0] = rows[0].digest.hex[0] == 'a' ? 'b' : 'a';

	/* A faulty engine files the plan that it was meant to run. */
	vn_status st = vn_store_create(at(name), true, vn_model_plan(model), &s, &err);
	if (!st)
		st = vn_store_run(s, &facts, ids, positions, TOKENS + f->decode, &err);
	if (!st && !f->no_plan)
		st = vn_store_model(s, model, rows, &err);
	if (!st && !(st = vn_ref_create(plan, w, &o, &ref, &err)))
		st = run_steps(s, ref, plan, f, ids, &err);
	if (!st && f->cut_off)
		vn_store_abandon(&s);
	else if (!st)
		st = vn_store_commit(&s, &err);
	if (st)
		printf("\n    %s\n", err.text);
	CU_ASSERT_EQUAL_FATAL(st, VN_OK);
	rows[0] = first;
	vn_ref_destroy(ref);
	vn_plan_destroy(plan);
	free(w);
}

/* ---- one comparison ------------------------------------------------------------ */

static const char strict[] = "version: 1\ndefaults: { nmse: 1.0e-9, norm_ratio: 1.0e-4 }\n";

static void compare(trial *t, const char *ref, const char *cand, const char *limits)
{
	judge(t, ref, cand, NULL, limits);
}

static const vn_checkpoint *point(const trial *t, const char *name, int step)
{
	for (int i = 0; i < t->c.n_points; i++)
		if (strcmp(t->c.point[i].name, name) == 0 && t->c.point[i].step == step)
			return &t->c.point[i];
	CU_FAIL("no such checkpoint");
	return &t->c.point[0];
}

static void starts_only_at(const trial *t, const char *name)
{
	CU_ASSERT_EQUAL(t->st, VN_OK);
	CU_ASSERT_FALSE(t->c.within);
	CU_ASSERT_EQUAL(t->c.n_origins, 1);
	if (t->c.n_origins)
		CU_ASSERT_STRING_EQUAL(t->c.point[t->c.origins[0]].name, name);
}

static void a_run_is_within_limits_of_itself(void)
{
	trial t = { 0 };
	record("good", &(fault) { 0 }); /* for all tests below, too */
	compare(&t, "good", "good", strict);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(t.c.within);
	CU_ASSERT_EQUAL(t.c.first, -1);
	CU_ASSERT(t.c.n_points > 30);
	for (int i = 0; i < t.c.n_points; i++)
		CU_ASSERT_EQUAL(t.c.point[i].m.value[VN_M_NMSE], 0.0);
	finish(&t);
}

static void a_wrong_theta_starts_at_its_rotation(void)
{
	trial t = { 0 };
	record("theta", &(fault) { .theta_of = "layer1.k_rope" });
	compare(&t, "good", "theta", strict);
	starts_only_at(&t, "layer1.k_rope");
	CU_ASSERT_STRING_EQUAL(t.c.point[t.c.first].name, "layer1.k_rope");
	CU_ASSERT_EQUAL(point(&t, "logits", 0)->status, VN_OUTSIDE);
	CU_ASSERT_EQUAL(point(&t, "layer1.q_rope", 0)->status, VN_WITHIN);
	finish(&t);
}

static void a_bad_v_is_not_the_fault_of_what_reads_it(void)
{
	trial t = { 0 };
	record("v", &(fault) { .bias_of = "layer0.v_proj" });
	compare(&t, "good", "v", strict);
	starts_only_at(&t, "layer0.v_proj");
	CU_ASSERT_EQUAL(point(&t, "layer0.attn_out", 0)->status, VN_OUTSIDE);
	CU_ASSERT_EQUAL(point(&t, "layer0.q_rope", 0)->status, VN_WITHIN);
	finish(&t);
}

static void what_was_not_recorded_is_looked_through(void)
{
	/* Without v_proj, attn_context is the nearest that shows it, and its recorded inputs are inside. */
	trial t = { .o = { .points = (const char *const[]) { "layer*.{q,k}_rope", "layer*.attn_*", "embed", "logits" },
	                   .n_points = 4 } };
	compare(&t, "good", "v", strict);
	starts_only_at(&t, "layer0.attn_context");
	int input[64];
	const int n = vn_inputs_of(&t.c, t.c.origins[0], input, 64);
	CU_ASSERT_EQUAL(n, 3); /* q_rope, k_rope, and attn_norm in place of v_proj */
	finish(&t);
}

static void put_outside(vn_checkpoint *p)
{
	p->status = VN_OUTSIDE;
	p->fails = true;
}

static void keys_of_an_earlier_step_are_inputs_too(void)
{
	trial t = { 0 };
	record("decode", &(fault) { .decode = DECODE });
	record("decode_v", &(fault) { .decode = DECODE, .bias_of = "layer1.v_proj" });
	compare(&t, "decode", "decode_v", strict);
	CU_ASSERT_EQUAL(t.c.n_origins, 1 + DECODE); /* v_proj itself, once a step */
	for (int i = 0; i < t.c.n_origins; i++)
		CU_ASSERT_STRING_EQUAL(t.c.point[t.c.origins[i]].name, "layer1.v_proj");
	CU_ASSERT_EQUAL(point(&t, "layer1.attn_context", 2)->status, VN_OUTSIDE);
	finish(&t);

	/* Only the prompt's values are bad, and a later step reads them. */
	trial u = { 0 };
	compare(&u, "decode", "decode", strict);
	for (int i = 0; i < u.c.n_points; i++)
		if ((u.c.point[i].step == 0 && strcmp(u.c.point[i].name, "layer1.v_proj") == 0)
		    || (u.c.point[i].step == 2 && strcmp(u.c.point[i].name, "layer1.attn_context") == 0))
			put_outside(&u.c.point[i]);
	CU_ASSERT_EQUAL(vn_localise(&u.c, &u.err), VN_OK);
	CU_ASSERT_EQUAL(u.c.n_origins, 1);
	CU_ASSERT_EQUAL(u.c.point[u.c.origins[0]].step, 0);
	finish(&u);
}

/* The cache is a checkpoint: where it goes wrong by itself, what reads it is not at fault, now or later. */
static void a_cache_that_went_wrong_is_the_origin(void)
{
	trial t = { 0 };
	record("cached", &(fault) { .decode = DECODE, .points = "*" });
	compare(&t, "cached", "cached", strict);
	CU_ASSERT_TRUE(t.c.within);
	for (int i = 0; i < t.c.n_points; i++) {
		const char *name = t.c.point[i].name;
		const int   step = t.c.point[i].step;
		if ((step >= 1 && strcmp(name, "layer1.v_cache") == 0) || (step == 2 && strcmp(name, "layer1.attn_context") == 0))
			put_outside(&t.c.point[i]);
	}
	CU_ASSERT_EQUAL(vn_localise(&t.c, &t.err), VN_OK);
	CU_ASSERT_EQUAL(t.c.n_origins, 1);
	CU_ASSERT_EQUAL(t.c.point[t.c.origins[0]].step, 1);
	CU_ASSERT_STRING_EQUAL(t.c.point[t.c.origins[0]].name, "layer1.v_cache");
	int input[8];
	CU_ASSERT_EQUAL(vn_inputs_of(&t.c, t.c.origins[0], input, 8), 2); /* v_proj, and the cache before */
	CU_ASSERT_STRING_EQUAL(t.c.point[input[0]].name, "layer1.v_proj");
	CU_ASSERT_STRING_EQUAL(t.c.point[input[1]].name, "layer1.v_cache");
	CU_ASSERT_EQUAL(t.c.point[input[1]].step, 0);
	finish(&t);
}

static void without_a_plan_only_the_order_is_known(void)
{
	trial t = { 0 };
	record("bare", &(fault) { .no_plan = true });
	record("bare_v", &(fault) { .no_plan = true, .bias_of = "layer0.v_proj" });
	compare(&t, "bare", "bare_v", strict);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT_STRING_EQUAL(t.c.point[t.c.first].name, "layer0.v_proj");
	CU_ASSERT_EQUAL(t.c.n_origins, 0);
	finish(&t);
}

static void one_nan_fails_on_either_side(void)
{
	trial t = { 0 }, u = { 0 }, both = { 0 };
	record("nan", &(fault) { .nan_in = "layer1.mlp_norm" });
	compare(&t, "good", "nan", "version: 1\ndefaults: { nmse: 1.0e-3 }\n");
	starts_only_at(&t, "layer1.mlp_norm");
	CU_ASSERT_EQUAL(t.c.n_fails, 1);
	CU_ASSERT_EQUAL(point(&t, "layer1.mlp_norm", 0)->m.bad_at, 0);
	compare(&u, "nan", "good", "version: 1\ndefaults: { nmse: 1.0e-3 }\n");
	CU_ASSERT_FALSE(u.c.within);
	compare(&both, "nan", "nan", "version: 1\ndefaults: { nmse: 1.0e-3 }\n");
	CU_ASSERT_FALSE(both.c.within);
	finish(&t);
	finish(&u);
	finish(&both);
}

static void missing_and_extra_fail_unless_allowed(void)
{
	trial t = { 0 }, u = { 0 }, v = { .o = { .allow = VN_ALLOW_MISSING } }, w = { 0 };
	trial x = { .o = { .points = (const char *const[]) { "layer0.*_proj" }, .n_points = 1 } };
	record("part", &(fault) { .points = "layer0.*_proj" });
	compare(&t, "good", "part", strict);
	CU_ASSERT_FALSE(t.c.within);
	CU_ASSERT(t.c.n_status[VN_MISSING] > 0 && t.c.n_fails == t.c.n_status[VN_MISSING]);
	compare(&u, "part", "good", strict);
	CU_ASSERT_FALSE(u.c.within);
	CU_ASSERT(u.c.n_status[VN_EXTRA] > 0 && u.c.n_fails == u.c.n_status[VN_EXTRA]);
	compare(&v, "good", "part", strict);
	CU_ASSERT_TRUE(v.c.within);
	compare(&w, "good", "part", "version: 1\ndefaults: { nmse: 1.0e-9, missing: allowed }\n");
	CU_ASSERT_TRUE(w.c.within);
	compare(&x, "good", "part", strict);
	CU_ASSERT_TRUE(x.c.within);
	finish(&t);
	finish(&u);
	finish(&v);
	finish(&w);
	finish(&x);
}

static void other_tokens_weights_and_cut_off_runs_are_refused(void)
{
	static const struct { const char *name; fault f; unsigned allow; const char *says; } bad[] = {
		{ "ids", { .first_id = 7 }, VN_ALLOW_TOKEN_IDS, "token ids: number 0 is 11 in the reference, 7" },
		{ "longer", { .decode = 1 }, VN_ALLOW_TOKEN_IDS, "token ids: 17 in the reference, 18" },
		{ "weights", { .other_weights = true }, VN_ALLOW_WEIGHTS, "holds other numbers" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		trial t = { 0 }, u = { .o = { .allow = bad[i].allow } };
		record(bad[i].name, &bad[i].f);
		compare(&t, "good", bad[i].name, strict);
		CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
		CU_ASSERT_EQUAL_FATAL(t.c.refusals.n, 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(t.c.refusals.line[0], bad[i].says));
		compare(&u, "good", bad[i].name, strict);
		CU_ASSERT_EQUAL(u.st, VN_OK);
		CU_ASSERT(u.c.notes.n > 0);
		finish(&t);
		finish(&u);
	}
	trial t = { 0 };
	record("cut", &(fault) { .cut_off = true });
	compare(&t, "good", "cut.partial", strict);
	CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.c.refusals.n ? t.c.refusals.line[0] : "", "incomplete"));
	finish(&t);
}

static void the_floor_is_the_same_from_a_file_and_from_a_run(void)
{
	static const char limits[] = "version: 1\ndefaults: { nmse_over_floor: 1.0 }\n";
	trial t = { 0 }, u = { .o = { .model = MODEL } }, v = { 0 };
	record("half", &(fault) { .precision = "f16" });
	compare(&t, "good", "half", limits);
	CU_ASSERT_FALSE(t.c.within); /* no floor is known: nothing can be judged */
	CU_ASSERT_EQUAL(t.c.n_fails, t.c.n_points);

	compare(&u, "good", "half", limits);
	CU_ASSERT_TRUE(u.c.within); /* it is its own floor, bit for bit */
	CU_ASSERT(point(&u, "logits", 0)->floor[VN_M_NMSE] > 0);

	v.c = (vn_comparison) { .options = &v.o };
	CU_ASSERT_EQUAL(vn_limits_parse("t.yaml", limits, strlen(limits), &v.c.limits, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("good"), &v.c.ref, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("half"), &v.c.cand, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("half"), &v.c.floor, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_compare(&v.c, &v.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(u.c.n_points, v.c.n_points);
	for (int i = 0; i < u.c.n_points; i++)
		CU_ASSERT_EQUAL(memcmp(u.c.point[i].floor, v.c.point[i].floor, VN_M_ARGMAX_AGREEMENT * sizeof(double)), 0); /* all have one */
	finish(&t);
	finish(&u);
	finish(&v);
}

/* layer1.input is layer0.output; an engine may file it once more all the same. */
static void every_name_of_a_value_has_a_floor(void)
{
	static const char limits[] = "version: 1\ndefaults: { nmse_over_floor: 1.0 }\n";
	trial t = { .o = { .model = MODEL } };
	record("linked", &(fault) { .link = "layer1.input" });
	record("half_copy", &(fault) { .precision = "f16", .copy = "layer1.input" });
	compare(&t, "linked", "half_copy", limits);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(point(&t, "layer0.output", 0)->has_floor);
	CU_ASSERT_TRUE(point(&t, "layer1.input", 0)->has_floor);
	CU_ASSERT_TRUE(t.c.within);
	finish(&t);
}

static void a_second_name_with_other_numbers_is_compared_too(void)
{
	trial t = { 0 }, u = { .o = { .points = (const char *const[]) { "layer1.input" }, .n_points = 1 } };
	record("bad_copy", &(fault) { .copy = "layer1.input", .nan_in_copy = true });
	compare(&t, "good", "bad_copy", strict); /* good knows that name from its plan alone */
	starts_only_at(&t, "layer1.input");
	CU_ASSERT_EQUAL(t.c.n_fails, 1);
	CU_ASSERT_EQUAL(point(&t, "layer0.output", 0)->status, VN_WITHIN);
	CU_ASSERT(t.c.first >= 0 && strcmp(t.c.point[t.c.first].name, "layer1.input") == 0);
	compare(&u, "good", "bad_copy", strict);
	CU_ASSERT_FALSE(u.c.within);
	CU_ASSERT_EQUAL(u.c.n_points, 1);
	finish(&t);
	finish(&u);
}

static void one_value_of_two_names_is_one_origin(void)
{
	trial t = { .o = { .points = (const char *const[]) { "layer*.output", "layer*.input" }, .n_points = 2 } };
	trial u = { 0 };
	record("v_copy", &(fault) { .bias_of = "layer0.v_proj", .copy = "layer1.input" });
	compare(&t, "linked", "v_copy", strict);
	CU_ASSERT_EQUAL(point(&t, "layer1.input", 0)->status, VN_OUTSIDE);
	starts_only_at(&t, "layer0.output");
	CU_ASSERT_STRING_EQUAL(t.c.point[t.c.first].name, "layer0.output");
	compare(&u, "v_copy", "linked", strict); /* the other way round: own tensors against a link */
	starts_only_at(&u, "layer0.v_proj");
	CU_ASSERT_EQUAL(point(&u, "layer1.input", 0)->status, VN_OUTSIDE);
	finish(&t);
	finish(&u);
}

static void a_pattern_that_matches_nothing_is_trouble(void)
{
	static const char *const bad[] = { "layer0.v_proj", "layer0.w_proj" }, *const good[] = { "layer0.v_proj", "layer1.input" };
	trial t = { .o = { .points = bad, .n_points = 2 } }, u = { .o = { .points = bad + 1, .n_points = 1 } };
	trial v = { .o = { .points = good, .n_points = 2 } }, w = { .o = { .points = good, .n_points = 2 } };
	compare(&t, "good", "good", strict);
	CU_ASSERT_EQUAL(t.st, VN_ERR_USAGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(t.err.text, "--points 'layer0.w_proj' matches no checkpoint"));
	compare(&u, "good", "good", strict);
	CU_ASSERT_EQUAL(u.st, VN_ERR_USAGE);
	compare(&v, "good", "good", strict); /* neither side has a tensor of that name */
	CU_ASSERT_EQUAL(v.st, VN_ERR_USAGE);
	compare(&w, "good", "linked", strict); /* one side has */
	CU_ASSERT_EQUAL(w.st, VN_OK);
	CU_ASSERT_TRUE(w.c.within);
	CU_ASSERT_EQUAL(w.c.n_points, 2);
	finish(&t);
	finish(&u);
	finish(&v);
	finish(&w);
}

static void a_floor_of_another_precision_is_refused(void)
{
	trial v = { 0 };
	v.c = (vn_comparison) { .options = &v.o };
	CU_ASSERT_EQUAL(vn_limits_parse("t.yaml", strict, strlen(strict), &v.c.limits, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("good"), &v.c.ref, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("half"), &v.c.cand, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("good"), &v.c.floor, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_compare(&v.c, &v.err), VN_ERR_MISMATCH);
	CU_ASSERT_PTR_NOT_NULL(strstr(v.c.refusals.n ? v.c.refusals.line[0] : "", "the floor was run in f32"));
	finish(&v);
}

static void a_floor_of_zero_allows_no_difference(void)
{
	vn_checkpoint p = { .name = "x", .ref = 0, .cand = 0, .worst = -1, .m = { .n = 1 } };
	trial t = { 0 };
	compare(&t, "good", "good", "version: 1\ndefaults: { nmse_over_floor: 4 }\n");
	vn_measured zero = { .n = 1 };
	zero.has[VN_M_NMSE] = p.m.has[VN_M_NMSE] = true;
	vn_floor_set(&p, &zero);
	CU_ASSERT_EQUAL(vn_judge(&t.c, &p, &t.err), VN_OK);
	CU_ASSERT_EQUAL(p.status, VN_WITHIN);
	free(p.check);
	p.n_checks = 0;
	p.m.value[VN_M_NMSE] = 1e-30;
	CU_ASSERT_EQUAL(vn_judge(&t.c, &p, &t.err), VN_OK);
	CU_ASSERT_EQUAL(p.status, VN_OUTSIDE);
	free(p.check);
	free(p.floor);
	finish(&t);
}

static void limits_that_judge_nothing_are_trouble(void)
{
	trial t = { 0 }, u = { 0 };
	compare(&t, "good", "good", "version: 1\nrules: [ { match: nothing, nmse: 1.0e-3, why: w } ]\n");
	CU_ASSERT_EQUAL(t.st, VN_ERR_USAGE);
	compare(&u, "good", "good", "version: 1\nrules: [ { match: embed, kl_mean: 1.0e-3, why: w } ]\n");
	CU_ASSERT_FALSE(u.c.within); /* only logits have that */
	finish(&t);
	finish(&u);
}

static void a_rule_that_matches_nothing_is_warned_about(void)
{
	trial t = { 0 };
	compare(&t, "good", "good", "version: 1\ndefaults: { nmse: 1.0e-3 }\nrules: [ { match: layer9.q_rop, nmse: 1.0e-3, why: w } ]\n");
	CU_ASSERT_EQUAL_FATAL(t.c.warnings.n, 1);
	CU_ASSERT_STRING_EQUAL(t.c.warnings.line[0], "t.yaml:3: no checkpoint matches 'layer9.q_rop'");
	finish(&t);
}

/* The caller's to free. */
static char *report_of(trial *t, const char *form)
{
	char  *text = NULL;
	size_t n = 0;
	FILE  *f = open_memstream(&text, &n);
	const vn_report_options o = { .limits_chosen = "test" };
	vn_story s;
	CU_ASSERT_EQUAL(vn_story_of(&t->c, 9, &s, &t->err), VN_OK);
	CU_ASSERT_EQUAL(vn_report_by_name(form)->write(&t->c, &s, &o, f, &t->err), VN_OK);
	vn_story_free(&s);
	fclose(f);
	return text;
}

static json_t *json_of(trial *t)
{
	char   *text = report_of(t, "json");
	json_t *j = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	CU_ASSERT_PTR_NOT_NULL(j);
	return j;
}

static void json_says_the_same_and_knows_no_nan(void)
{
	trial t = { 0 }, zero = { 0 };
	compare(&t, "good", "nan", strict);
	json_t *j = json_of(&t);
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "schema")), "vernier-compare/1");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "verdict")), "outside");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(j, "first_divergence")), "layer1.mlp_norm");
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "origins")), 1);
	CU_ASSERT_EQUAL(json_array_size(json_object_get(j, "checkpoints")), (size_t)t.c.n_points);
	const json_t *d = json_array_get(json_object_get(j, "divergences"), 0);
	const json_t *cand = json_object_get(d, "candidate");
	CU_ASSERT_STRING_EQUAL(json_string_value(json_array_get(json_object_get(cand, "first"), 0)), "nan");
	json_decref(j);

	/* 17 digits read back as the same double. */
	compare(&zero, "good", "v", strict);
	j = json_of(&zero);
	for (int i = 0; i < zero.c.n_points; i++) {
		const json_t *p = json_array_get(json_object_get(j, "checkpoints"), (size_t)i);
		CU_ASSERT_EQUAL(json_real_value(json_object_get(json_object_get(p, "metrics"), "nmse")),
		                zero.c.point[i].m.value[VN_M_NMSE]);
	}
	json_decref(j);
	finish(&t);
	finish(&zero);
}

static void the_text_names_origin_values_and_rule(void)
{
	trial t = { 0 };
	compare(&t, "good", "theta", strict);
	char *text = report_of(&t, "text");
	static const char top[] = "verdict    OUTSIDE limits: ", end[] = "\nOUTSIDE limits: ";
	CU_ASSERT_EQUAL(strncmp(text, top, sizeof top - 1), 0);
	char *table = strstr(text, "\n\n"), *last = strstr(text, end);
	CU_ASSERT_FATAL(table && last);
	CU_ASSERT_STRING_EQUAL(strchr(last + sizeof end, '\n'), "\n"); /* the last line, too */
	*table = 0; /* above it, without scrolling */
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "\nfirst      layer1.k_rope\nrule       "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "(t.yaml:2)"));
	*table = '\n';
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "first divergence and origin: layer1.k_rope   layer 1, point k_rope, op rope"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "(t.yaml:2)"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "worst element  token "));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "within limits: layer1.k_proj"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "It starts at layer1.k_rope"));
	CU_ASSERT_PTR_NULL(strchr(text, '\033')); /* no colour unless asked for */
	free(text);
	finish(&t);
}

static void a_value_just_beyond_its_limit_is_seen_to_be(void)
{
	static const struct { double value, limit; const char *says; } cases[] = {
		{ 0.01000001, 0.01, "norm_ratio 0.01000001 from 1, limit 0.01 (" },
		{ 0.02, 0.0123456, "norm_ratio 0.02 from 1, limit 0.0123456 (" },
		{ 0.0100000000000000019, 0.01, "norm_ratio 0.010000000000000002 from 1, limit 0.01 (" },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		trial t = { 0 };
		compare(&t, "good", "theta", strict);
		vn_checkpoint *p = &t.c.point[t.c.first];
		for (int k = 0; k < p->n_checks; k++)
			if (p->check[k].metric == VN_M_NORM_RATIO) {
				p->check[k].value = cases[i].value;
				p->check[k].limit = cases[i].limit;
				p->check[k].holds = false;
				p->worst = k;
			}
		char *text = report_of(&t, "text");
		int said = 0;
		for (const char *at_it = text; (at_it = strstr(at_it, cases[i].says)) != NULL; at_it++)
			said++;
		CU_ASSERT_EQUAL(said, 3); /* on top, in the table and in full */
		free(text);
		finish(&t);
	}
}

static void words_of_allow_are_checked(void)
{
	unsigned set = 0;
	CU_ASSERT_PTR_NULL(vn_allow_parse("token_ids,missing", &set));
	CU_ASSERT_EQUAL(set, VN_ALLOW_TOKEN_IDS | VN_ALLOW_MISSING);
	for (const char *word = vn_allow_names; word; word = strchr(word, '|') ? strchr(word, '|') + 1 : NULL) {
		char one[40];
		snprintf(one, sizeof one, "%.*s", (int)strcspn(word, "|"), word);
		CU_ASSERT_PTR_NULL(vn_allow_parse(one, &set)); /* each that is offered is known */
	}
	CU_ASSERT_STRING_EQUAL(vn_allow_parse("missing,everything", &set), "everything");
	CU_ASSERT_PTR_NOT_NULL(vn_allow_parse("miss", &set));
}

/* What a command says to --help: to a file in the folder, and back. */
static void help_of(int (*command)(int, char **), char *text, size_t room)
{
	char *args[] = { (char[]) { "x" }, (char[]) { "--help" }, NULL };
	const int screen = dup(STDOUT_FILENO);
	fflush(stdout);
	FILE *f = fopen(at("help"), "w+");
	CU_ASSERT_FATAL(screen >= 0 && f && dup2(fileno(f), STDOUT_FILENO) >= 0);
	CU_ASSERT_EQUAL(command(2, args), 0);
	fflush(stdout);
	dup2(screen, STDOUT_FILENO);
	close(screen);
	rewind(f);
	text[fread(text, 1, room - 1, f)] = 0;
	fclose(f);
}

static void the_manual_has_every_option_of_the_help(void)
{
	static const struct { const char *name; int (*run)(int, char **); } commands[] = {
		{ "capture", cmd_capture }, { "compare", cmd_compare }, { "evaluate", cmd_evaluate }, { "show", cmd_show }, { "points", cmd_points },
		{ "limits", cmd_limits }, { "selftest", cmd_selftest }, { "synth", cmd_synth },
	};
	static char page[1 << 16];
	FILE *f = fopen(VERNIER_SOURCE "/compare/vernier.1", "r");
	CU_ASSERT_FATAL(f != NULL);
	page[fread(page, 1, sizeof page - 1, f)] = 0;
	fclose(f);
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		char help[8192], begin[40];
		help_of(commands[i].run, help, sizeof help);
		CU_ASSERT_PTR_NOT_NULL(strstr(help, "usage: vernier "));
		/* its own section: from its name to the next command's */
		snprintf(begin, sizeof begin, ".BI \"%s ", commands[i].name);
		const char *from = strstr(page, begin), *to = NULL;
		CU_ASSERT_PTR_NOT_NULL_FATAL(from);
		if (i + 1 < sizeof commands / sizeof *commands) {
			snprintf(begin, sizeof begin, ".BI \"%s ", commands[i + 1].name);
			to = strstr(from, begin);
		} else {
			to = strstr(from, ".SH ");
		}
		CU_ASSERT_PTR_NOT_NULL_FATAL(to);
		for (const char *o = help; (o = strstr(o, "--")) != NULL; o += 2) {
			char option[40];
			snprintf(option, sizeof option, "%.*s", (int)(2 + strspn(o + 2, "abcdefghijklmnopqrstuvwxyz-")), o);
			const char *there = strstr(from, option);
			if (!there || there > to)
				printf("\n    %s: %s is not in the manual\n", commands[i].name, option);
			CU_ASSERT(there && there < to);
		}
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_run_is_within_limits_of_itself),
		TEST(a_wrong_theta_starts_at_its_rotation),
		TEST(a_bad_v_is_not_the_fault_of_what_reads_it),
		TEST(what_was_not_recorded_is_looked_through),
		TEST(keys_of_an_earlier_step_are_inputs_too),
		TEST(a_cache_that_went_wrong_is_the_origin),
		TEST(without_a_plan_only_the_order_is_known),
		TEST(one_nan_fails_on_either_side),
		TEST(missing_and_extra_fail_unless_allowed),
		TEST(other_tokens_weights_and_cut_off_runs_are_refused),
		TEST(the_floor_is_the_same_from_a_file_and_from_a_run),
		TEST(every_name_of_a_value_has_a_floor),
		TEST(a_second_name_with_other_numbers_is_compared_too),
		TEST(one_value_of_two_names_is_one_origin),
		TEST(a_pattern_that_matches_nothing_is_trouble),
		TEST(a_value_just_beyond_its_limit_is_seen_to_be),
		TEST(a_floor_of_another_precision_is_refused),
		TEST(a_floor_of_zero_allows_no_difference),
		TEST(limits_that_judge_nothing_are_trouble),
		TEST(a_rule_that_matches_nothing_is_warned_about),
		TEST(json_says_the_same_and_knows_no_nan),
		TEST(the_text_names_origin_values_and_rule),
		TEST(words_of_allow_are_checked),
		TEST(the_manual_has_every_option_of_the_help),
		CU_TEST_INFO_NULL,
	};
	vn_error err = { "" };

	if (!make_folder() || vn_model_open(MODEL, &model, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	rows = calloc((size_t)vn_model_plan(model)->n_weights, sizeof *rows);
	vn_model_table(model, 1, rows);
	const int failed = run_suite("compare", tests);
	vn_model_close(model);
	free(rows);
	return !remove_folder() || failed;
}
