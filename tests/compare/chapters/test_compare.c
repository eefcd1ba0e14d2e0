/* test_compare.c: whole comparisons of runs of the trained model in fixtures/ with injected
 * faults. */
#include "tests/support/faulty_help.h"
#include "compare/chapters/compare.h"
#include "compare/comparison/checks.h"
#include "compare/judge/judge.h"
#include "compare/judge/localise.h"

static void starts_only_at(const trial *t, const char *name)
{
	CU_ASSERT_EQUAL(t->st, VN_OK);
	CU_ASSERT_FALSE(t->c.result.verdict.within);
	CU_ASSERT_EQUAL(t->c.result.localised.n_origins, 1);
	if (t->c.result.localised.n_origins)
		CU_ASSERT_STRING_EQUAL(t->c.result.checkpoints.of[t->c.result.localised.origins[0]].name, name);
}

static void a_run_is_within_limits_of_itself(void)
{
	trial t = { 0 };
	record("good", &(fault) { 0 }); /* for all tests below, too */
	compare(&t, "good", "good", strict);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	CU_ASSERT_EQUAL(t.c.result.localised.first, -1);
	CU_ASSERT(t.c.result.checkpoints.n > 30);
	for (int i = 0; i < t.c.result.checkpoints.n; i++)
		CU_ASSERT_EQUAL(t.c.result.checkpoints.of[i].m.value[VN_M_NMSE], 0.0);
	finish(&t);
}

static void a_wrong_theta_starts_at_its_rotation(void)
{
	trial t = { 0 };
	record("theta", &(fault) { .theta_of = "layer1.k_rope" });
	compare(&t, "good", "theta", strict);
	starts_only_at(&t, "layer1.k_rope");
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].name, "layer1.k_rope");
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
	/* Without v_proj, attn_context is the nearest that shows it, and its recorded
	 * inputs are inside. */
	trial t = { .o = { .points = (const char *const[]) { "layer*.{q,k}_rope", "layer*.attn_*", "embed", "logits" },
		               .n_points = 4 } };
	compare(&t, "good", "v", strict);
	starts_only_at(&t, "layer0.attn_context");
	int       input[64];
	const int n = vn_inputs_of(&t.c.opened, &t.c.result.checkpoints, &t.c.result.localised,
	                           t.c.result.localised.origins[0], input, 64);
	CU_ASSERT_EQUAL(n, 3); /* q_rope, k_rope, and attn_norm in place of v_proj */
	finish(&t);
}

static void what_is_equal_by_its_digest_is_read_only_without_trust(void)
{
	for (int trust = 0; trust < 2; trust++) {
		trial t = { .o = { .trust = trust } };
		compare(&t, "good", "v", strict);
		CU_ASSERT_EQUAL(t.st, VN_OK);
		CU_ASSERT_EQUAL(point(&t, "layer0.q_rope", 0)->status, trust ? VN_EQUAL : VN_WITHIN);
		CU_ASSERT_EQUAL(point(&t, "layer0.q_rope", 0)->m.n > 0, !trust);
		CU_ASSERT_TRUE(point(&t, "layer0.v_proj", 0)->fails);
		CU_ASSERT_TRUE(point(&t, "layer0.v_proj", 0)->m.n > 0);
		finish(&t);
	}
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
	CU_ASSERT_EQUAL(t.c.result.localised.n_origins, 1 + DECODE); /* v_proj itself, once a step */
	for (int i = 0; i < t.c.result.localised.n_origins; i++)
		CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[i]].name, "layer1.v_proj");
	CU_ASSERT_EQUAL(point(&t, "layer1.attn_context", 2)->status, VN_OUTSIDE);
	finish(&t);

	/* Only the prompt's values are bad, and a later step reads them. */
	trial u = { 0 };
	compare(&u, "decode", "decode", strict);
	for (int i = 0; i < u.c.result.checkpoints.n; i++)
		if ((u.c.result.checkpoints.of[i].step == 0 &&
		     strcmp(u.c.result.checkpoints.of[i].name, "layer1.v_proj") == 0) ||
		    (u.c.result.checkpoints.of[i].step == 2 &&
		     strcmp(u.c.result.checkpoints.of[i].name, "layer1.attn_context") == 0))
			put_outside(&u.c.result.checkpoints.of[i]);
	vn_localise(&u.c.opened, &u.c.result.checkpoints, &u.c.result.pools, &u.c.result.localised,
	            &u.c.result.remarks.warnings);
	CU_ASSERT_EQUAL(u.c.result.localised.n_origins, 1);
	CU_ASSERT_EQUAL(u.c.result.checkpoints.of[u.c.result.localised.origins[0]].step, 0);
	finish(&u);
}

/* The cache is a checkpoint: if it goes wrong by itself, its readers are not at fault, in this step
 * or a later one. */
static void a_cache_that_went_wrong_is_the_origin(void)
{
	trial t = { 0 };
	record("cached", &(fault) { .decode = DECODE, .points = "*" });
	compare(&t, "cached", "cached", strict);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	for (int i = 0; i < t.c.result.checkpoints.n; i++) {
		const char *name = t.c.result.checkpoints.of[i].name;
		const int   step = t.c.result.checkpoints.of[i].step;
		if ((step >= 1 && strcmp(name, "layer1.v_cache") == 0) ||
		    (step == 2 && strcmp(name, "layer1.attn_context") == 0))
			put_outside(&t.c.result.checkpoints.of[i]);
	}
	vn_localise(&t.c.opened, &t.c.result.checkpoints, &t.c.result.pools, &t.c.result.localised,
	            &t.c.result.remarks.warnings);
	CU_ASSERT_EQUAL(t.c.result.localised.n_origins, 1);
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[0]].step, 1);
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.origins[0]].name, "layer1.v_cache");
	int input[8];
	CU_ASSERT_EQUAL(vn_inputs_of(&t.c.opened, &t.c.result.checkpoints, &t.c.result.localised,
	                             t.c.result.localised.origins[0], input, 8),
	                2); /* v_proj, and the cache before */
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[input[0]].name, "layer1.v_proj");
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[input[1]].name, "layer1.v_cache");
	CU_ASSERT_EQUAL(t.c.result.checkpoints.of[input[1]].step, 0);
	finish(&t);
}

typedef struct uses {
	const char *name;
	double      part;
} uses;

/* The number of origins if these checkpoints use these shares of their limits and all others use
 * none. last: the name of the last origin. */
static int origins_of(const uses *of, int n, char *last)
{
	trial t = { 0 };
	compare(&t, "good", "good", strict);
	for (int i = 0; i < n; i++) {
		vn_checkpoint *p = &t.c.result.checkpoints.of[point(&t, of[i].name, 0) - t.c.result.checkpoints.of];
		for (int k = 0; k < p->n_checks; k++)
			if (vn_check_at(p, k).metric == VN_M_NMSE) {
				vn_check x = vn_check_at(p, k);
				x.value = of[i].part * x.limit;
				x.holds = of[i].part <= 1;
				vn_checks_set(&t.c.result.checkpoints.terms, p, k, &x);
			}
		if (of[i].part > 1)
			put_outside(p);
	}
	vn_localise(&t.c.opened, &t.c.result.checkpoints, &t.c.result.pools, &t.c.result.localised,
	            &t.c.result.remarks.warnings);
	const int origins = t.c.result.localised.n_origins;
	strcpy(last, origins ? t.c.result.checkpoints.of[t.c.result.localised.origins[origins - 1]].name : "");
	finish(&t);
	return origins;
}

/* After a divergence an error continues near the limits, within and outside them. No origin starts
 * there. */
static void what_goes_on_near_the_limits_does_not_start_again(void)
{
	char       last[64];
	const uses on[] = {
		{ "layer0.v_proj", 30 }, { "layer0.attn_residual", 0.4 }, { "layer0.mlp_norm", 0.4 }, { "layer0.up_proj", 1.5 }
	};
	CU_ASSERT_EQUAL(origins_of(on, 4, last), 1);
	CU_ASSERT_STRING_EQUAL(last, "layer0.v_proj");

	/* The error is four times that of its input. */
	const uses anew[] = {
		{ "layer0.v_proj", 30 }, { "layer0.attn_residual", 0.4 }, { "layer0.mlp_norm", 0.4 }, { "layer0.up_proj", 1.7 }
	};
	CU_ASSERT_EQUAL(origins_of(anew, 4, last), 2);
	CU_ASSERT_STRING_EQUAL(last, "layer0.up_proj");

	/* The divergence does not reach it, whatever error its input has. */
	const uses beside[] = { { "layer0.attn_norm", 0.9 }, { "layer0.q_proj", 30 }, { "layer0.v_proj", 1.1 } };
	CU_ASSERT_EQUAL(origins_of(beside, 3, last), 2);
	CU_ASSERT_STRING_EQUAL(last, "layer0.v_proj");

	/* A growing error starts where it is first outside. */
	const uses grows[] = { { "embed", 0.6 }, { "layer0.attn_norm", 0.9 }, { "layer0.q_proj", 1.1 } };
	CU_ASSERT_EQUAL(origins_of(grows, 3, last), 1);
	CU_ASSERT_STRING_EQUAL(last, "layer0.q_proj");
}

static void without_a_plan_only_the_order_is_known(void)
{
	trial t = { 0 };
	record("bare", &(fault) { .no_plan = true });
	record("bare_v", &(fault) { .no_plan = true, .bias_of = "layer0.v_proj" });
	compare(&t, "bare", "bare_v", strict);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].name, "layer0.v_proj");
	CU_ASSERT_EQUAL(t.c.result.localised.n_origins, 0);
	finish(&t);
}

static void one_nan_fails_on_either_side(void)
{
	trial t = { 0 }, u = { 0 }, both = { 0 };
	record("nan", &(fault) { .nan_in = "layer1.mlp_norm" });
	compare(&t, "good", "nan", "version: 1\ndefaults: { nmse: 1.0e-3 }\n");
	starts_only_at(&t, "layer1.mlp_norm");
	CU_ASSERT_EQUAL(t.c.result.verdict.n_fails, 1);
	CU_ASSERT_EQUAL(point(&t, "layer1.mlp_norm", 0)->m.bad_at, 0);
	compare(&u, "nan", "good", "version: 1\ndefaults: { nmse: 1.0e-3 }\n");
	CU_ASSERT_FALSE(u.c.result.verdict.within);
	compare(&both, "nan", "nan", "version: 1\ndefaults: { nmse: 1.0e-3 }\n");
	CU_ASSERT_FALSE(both.c.result.verdict.within);
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
	CU_ASSERT_FALSE(t.c.result.verdict.within);
	CU_ASSERT(t.c.result.verdict.n_status[VN_MISSING] > 0 &&
	          t.c.result.verdict.n_fails == t.c.result.verdict.n_status[VN_MISSING]);
	compare(&u, "part", "good", strict);
	CU_ASSERT_FALSE(u.c.result.verdict.within);
	CU_ASSERT(u.c.result.verdict.n_status[VN_EXTRA] > 0 &&
	          u.c.result.verdict.n_fails == u.c.result.verdict.n_status[VN_EXTRA]);
	compare(&v, "good", "part", strict);
	CU_ASSERT_TRUE(v.c.result.verdict.within);
	compare(&w, "good", "part", "version: 1\ndefaults: { nmse: 1.0e-9, missing: allowed }\n");
	CU_ASSERT_TRUE(w.c.result.verdict.within);
	compare(&x, "good", "part", strict);
	CU_ASSERT_TRUE(x.c.result.verdict.within);
	finish(&t);
	finish(&u);
	finish(&v);
	finish(&w);
	finish(&x);
}

static void other_tokens_weights_and_cut_off_runs_are_refused(void)
{
	static const struct {
		const char *name;
		fault       f;
		unsigned    allow;
		const char *says;
	} bad[] = {
		{ "ids", { .first_id = 7 }, VN_ALLOW_TOKEN_IDS, "token ids: number 0 is 11 in the reference, 7" },
		{ "longer", { .decode = 1 }, VN_ALLOW_TOKEN_IDS, "token ids: 17 in the reference, 18" },
		{ "weights", { .other_weights = true }, VN_ALLOW_WEIGHTS, " differ" },
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		trial t = { 0 }, u = { .o = { .allow = bad[i].allow } };
		record(bad[i].name, &bad[i].f);
		compare(&t, "good", bad[i].name, strict);
		CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
		CU_ASSERT_FATAL(t.c.result.remarks.refusals.n >= 1);
		CU_ASSERT_PTR_NOT_NULL(strstr(t.c.result.remarks.refusals.line[0], bad[i].says));
		compare(&u, "good", bad[i].name, strict);
		CU_ASSERT_EQUAL(u.st, VN_OK);
		CU_ASSERT(u.c.result.remarks.notes.n > 0);
		finish(&t);
		finish(&u);
	}
	trial t = { 0 };
	record("cut", &(fault) { .cut_off = true });
	compare(&t, "good", "cut.partial", strict);
	CU_ASSERT_EQUAL(t.st, VN_ERR_MISMATCH);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(t.c.result.remarks.refusals.n ? t.c.result.remarks.refusals.line[0] : "", "incomplete"));
	finish(&t);
}

static void the_floor_is_the_same_from_a_file_and_from_a_run(void)
{
	static const char limits[] = "version: 1\ndefaults: { nmse_over_floor: 1.0 }\n";
	trial             t = { 0 }, u = { .o = { .model = MODEL } }, v = { 0 };
	record("half", &(fault) { .precision = "f16" });
	record("again", &(fault) { .precision = "f16" });
	compare(&t, "good", "half", limits);
	CU_ASSERT_FALSE(t.c.result.verdict.within); /* no floor is known: nothing can be judged */
	CU_ASSERT_EQUAL(t.c.result.verdict.n_fails, t.c.result.checkpoints.n);

	compare(&u, "good", "half", limits);
	CU_ASSERT_TRUE(u.c.result.verdict.within); /* it is its own floor, bit for bit */
	CU_ASSERT(point(&u, "logits", 0)->floor[VN_M_NMSE] > 0);

	v.o.allow = VN_ALLOW_FLOOR; /* of the candidate's own engine, with its bits */
	v.c = (vn_comparison) { .opened.request.options = &v.o };
	CU_ASSERT_EQUAL(vn_limits_parse("t.yaml", limits, strlen(limits), &v.c.opened.request.limits, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("good"), &v.c.opened.ref, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("half"), &v.c.opened.cand, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("again"), &v.c.opened.floor, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_compare(&v.c, &v.err), VN_OK);
	CU_ASSERT_EQUAL_FATAL(u.c.result.checkpoints.n, v.c.result.checkpoints.n);
	for (int i = 0; i < u.c.result.checkpoints.n; i++)
		CU_ASSERT_EQUAL(memcmp(u.c.result.checkpoints.of[i].floor, v.c.result.checkpoints.of[i].floor,
		                       VN_M_ARGMAX_AGREEMENT * sizeof(double)),
		                0); /* all have one */
	finish(&t);
	finish(&u);
	finish(&v);
}

/* layer1.input is layer0.output; an engine may file it once more all the same. */
static void every_name_of_a_value_has_a_floor(void)
{
	static const char limits[] = "version: 1\ndefaults: { nmse_over_floor: 1.0 }\n";
	trial             t = { .o = { .model = MODEL } };
	record("linked", &(fault) { .link = "layer1.input" });
	record("half_copy", &(fault) { .precision = "f16", .copy = "layer1.input" });
	compare(&t, "linked", "half_copy", limits);
	CU_ASSERT_EQUAL(t.st, VN_OK);
	CU_ASSERT_TRUE(point(&t, "layer0.output", 0)->has_floor);
	CU_ASSERT_TRUE(point(&t, "layer1.input", 0)->has_floor);
	CU_ASSERT_TRUE(t.c.result.verdict.within);
	finish(&t);
}

static void a_second_name_with_other_numbers_is_compared_too(void)
{
	trial t = { 0 }, u = { .o = { .points = (const char *const[]) { "layer1.input" }, .n_points = 1 } };
	record("bad_copy", &(fault) { .copy = "layer1.input", .nan_in_copy = true });
	compare(&t, "good", "bad_copy", strict); /* good knows that name from its plan alone */
	starts_only_at(&t, "layer1.input");
	CU_ASSERT_EQUAL(t.c.result.verdict.n_fails, 1);
	CU_ASSERT_EQUAL(point(&t, "layer0.output", 0)->status, VN_WITHIN);
	CU_ASSERT(t.c.result.localised.first >= 0 &&
	          strcmp(t.c.result.checkpoints.of[t.c.result.localised.first].name, "layer1.input") == 0);
	compare(&u, "good", "bad_copy", strict);
	CU_ASSERT_FALSE(u.c.result.verdict.within);
	CU_ASSERT_EQUAL(u.c.result.checkpoints.n, 1);
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
	CU_ASSERT_STRING_EQUAL(t.c.result.checkpoints.of[t.c.result.localised.first].name, "layer0.output");
	compare(&u, "v_copy", "linked", strict); /* the other way round: own tensors against a link */
	starts_only_at(&u, "layer0.v_proj");
	CU_ASSERT_EQUAL(point(&u, "layer1.input", 0)->status, VN_OUTSIDE);
	finish(&t);
	finish(&u);
}

static void a_pattern_that_matches_nothing_is_trouble(void)
{
	static const char *const bad[] = { "layer0.v_proj", "layer0.w_proj" }, *const good[] = { "layer0.v_proj",
		                                                                                     "layer1.input" };
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
	CU_ASSERT_TRUE(w.c.result.verdict.within);
	CU_ASSERT_EQUAL(w.c.result.checkpoints.n, 2);
	finish(&t);
	finish(&u);
	finish(&v);
	finish(&w);
}

static void a_floor_of_another_precision_is_refused(void)
{
	trial v = { 0 };
	v.c = (vn_comparison) { .opened.request.options = &v.o };
	CU_ASSERT_EQUAL(vn_limits_parse("t.yaml", strict, strlen(strict), &v.c.opened.request.limits, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("good"), &v.c.opened.ref, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("half"), &v.c.opened.cand, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_recording_open(at("good"), &v.c.opened.floor, &v.err), VN_OK);
	CU_ASSERT_EQUAL(vn_compare(&v.c, &v.err), VN_ERR_MISMATCH);
	CU_ASSERT_PTR_NOT_NULL(
		strstr(v.c.result.remarks.refusals.n ? v.c.result.remarks.refusals.line[0] : "", "the floor was run in f32"));
	finish(&v);
}

static void a_floor_of_zero_allows_no_difference(void)
{
	vn_checkpoint p = { .name = "x", .pooled_logits = -1, .pooled_small = -1, .channels = -1, .worst = -1 };
	trial         t = { 0 };
	p.m.n = p.m.finite = 1;
	compare(&t, "good", "good", "version: 1\ndefaults: { nmse_over_floor: 4 }\n");
	vn_measured zero = { .n = 1 };
	zero.has[VN_M_NMSE] = p.m.has[VN_M_NMSE] = true;
	vn_judge_floor_set(&p, &zero);
	vn_judge(&t.c.opened, &t.c.result.checkpoints, &t.c.result.pools, &t.c.result.remarks.warnings, &p);
	CU_ASSERT_EQUAL(p.status, VN_WITHIN);
	vn_checks_drop(&p);
	p.m.value[VN_M_NMSE] = 1e-30;
	vn_judge(&t.c.opened, &t.c.result.checkpoints, &t.c.result.pools, &t.c.result.remarks.warnings, &p);
	CU_ASSERT_EQUAL(p.status, VN_OUTSIDE);
	vn_checks_drop(&p);
	free(p.floor);
	finish(&t);
}

static void limits_that_judge_nothing_are_trouble(void)
{
	trial t = { 0 }, u = { 0 };
	compare(&t, "good", "good", "version: 1\nrules: [ { match: nothing, nmse: 1.0e-3, why: w } ]\n");
	CU_ASSERT_EQUAL(t.st, VN_ERR_USAGE);
	compare(&u, "good", "good", "version: 1\nrules: [ { match: embed, kl_mean: 1.0e-3, why: w } ]\n");
	CU_ASSERT_FALSE(u.c.result.verdict.within); /* only logits have that */
	finish(&t);
	finish(&u);
}

static void a_rule_that_matches_nothing_is_warned_about(void)
{
	trial t = { 0 };
	compare(&t, "good", "good",
	        "version: 1\ndefaults: { nmse: 1.0e-3 }\nrules: [ { match: layer9.q_rop, nmse: 1.0e-3, why: w } ]\n");
	CU_ASSERT_EQUAL_FATAL(t.c.result.remarks.warnings.n, 1);
	CU_ASSERT_STRING_EQUAL(t.c.result.remarks.warnings.line[0], "t.yaml:3: no checkpoint matches 'layer9.q_rop'");
	finish(&t);
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_run_is_within_limits_of_itself),
		TEST(a_wrong_theta_starts_at_its_rotation),
		TEST(a_bad_v_is_not_the_fault_of_what_reads_it),
		TEST(what_was_not_recorded_is_looked_through),
		TEST(what_is_equal_by_its_digest_is_read_only_without_trust),
		TEST(keys_of_an_earlier_step_are_inputs_too),
		TEST(a_cache_that_went_wrong_is_the_origin),
		TEST(what_goes_on_near_the_limits_does_not_start_again),
		TEST(without_a_plan_only_the_order_is_known),
		TEST(one_nan_fails_on_either_side),
		TEST(missing_and_extra_fail_unless_allowed),
		TEST(other_tokens_weights_and_cut_off_runs_are_refused),
		TEST(the_floor_is_the_same_from_a_file_and_from_a_run),
		TEST(every_name_of_a_value_has_a_floor),
		TEST(a_second_name_with_other_numbers_is_compared_too),
		TEST(one_value_of_two_names_is_one_origin),
		TEST(a_pattern_that_matches_nothing_is_trouble),
		TEST(a_floor_of_another_precision_is_refused),
		TEST(a_floor_of_zero_allows_no_difference),
		TEST(limits_that_judge_nothing_are_trouble),
		TEST(a_rule_that_matches_nothing_is_warned_about),
		CU_TEST_INFO_NULL,
	};
	return run_faulty("compare", tests);
}
