/* test_by_operation.c: the verdict by operations, on comparisons with numbers set by hand. */
#include "tests/support/plan_help.h"
#include "compare/comparison/checkpoint.h"
#include "compare/comparison/checks.h"
#include "compare/judge/pool_channels.h"
#include "compare/replay/by_operation.h"
#include "compare/replay/local.h"

#include <stdlib.h>
#include <string.h>

enum { STEPS = 2 };

static const char rules_text[] = "version: 1\nname: t\ndefaults:\n  nmse_over_floor: 4\n";

/* Every value of a toy plan in two steps, replayed and cleared;
 * the rules count as vernier's own. */
typedef struct fixture {
	vn_comparison c;
	vn_plan      *plan;
} fixture;

static void set_up(fixture *f, const char *limits)
{
	vn_error e;

	memset(f, 0, sizeof *f);
	f->plan = toy();
	f->c.opened.plan = f->plan;
	f->c.result.replayed = true;
	CU_ASSERT_EQUAL_FATAL(vn_limits_parse("t.yaml", limits, strlen(limits), &f->c.opened.request.limits, &e), VN_OK);
	for (int i = 0; i < f->c.opened.request.limits->n_rules; i++)
		f->c.opened.request.limits->rule[i]->shipped = true;
	f->c.result.checkpoints.n = STEPS * f->plan->n_values;
	f->c.result.checkpoints.of = calloc((size_t)f->c.result.checkpoints.n, sizeof *f->c.result.checkpoints.of);
	CU_ASSERT_PTR_NOT_NULL_FATAL(f->c.result.checkpoints.of);
	for (int i = 0; i < f->c.result.checkpoints.n; i++)
		f->c.result.checkpoints.of[i] = (vn_checkpoint) {
			.name = f->plan->value[i % f->plan->n_values].name,
			.step = i / f->plan->n_values,
			.value = i % f->plan->n_values,
			.pooled_logits = -1,
			.pooled_small = -1,
			.channels = -1,
			.worst = -1,
			.status = VN_WITHIN,
			.m.n = 4096,
			.replayed = true,
			.replay = { .independent_numbers = 4096,
			            .local = 1,
			            .floor = 1,
			            .local_token = 1,
			            .floor_token = 1,
			            .local_max = 1,
			            .floor_max = 1,
			            .span = 1,
			            .charged_to = -1 },
		};
}

static void tear_down(fixture *f)
{
	for (int i = 0; i < f->c.result.checkpoints.n; i++)
		vn_checks_drop(&f->c.result.checkpoints.of[i]);
	vn_terms_free(&f->c.result.checkpoints.terms);
	free(f->c.result.checkpoints.of);
	vn_limits_destroy(f->c.opened.request.limits);
	vn_plan_destroy(f->plan);
}

static vn_checkpoint *at(fixture *f, int step, const char *name)
{
	const int v = vn_plan_find(f->plan, name);
	CU_ASSERT_FATAL(v >= 0);
	return &f->c.result.checkpoints.of[step * f->plan->n_values + v];
}

/* Outside by five of its floors. */
static vn_checkpoint *breaks(fixture *f, int step, const char *name)
{
	vn_checkpoint *p = at(f, step, name);

	const vn_check k = { .metric = VN_M_NMSE,
		                 .form = VN_OVER_FLOOR,
		                 .limit = 4,
		                 .value = 5,
		                 .rule = f->c.opened.request.limits->rule[0],
		                 .line = 3 };

	vn_checks_keep(&f->c.result.checkpoints.terms, p, &k, 1);
	p->worst = 0;
	p->status = VN_OUTSIDE;
	p->fails = true;
	return p;
}

static void put_check(fixture *f, vn_checkpoint *p, const vn_check *k)
{
	vn_checks_set(&f->c.result.checkpoints.terms, p, 0, k);
}

static void judge(fixture *f)
{
	vn_replay_judge_operations(&f->c.opened, f->c.result.weights, &f->c.result.checkpoints, &f->c.result.pools,
	                           f->c.result.replayed);
}

static void error_that_accumulated_over_cleared_operations_does_not_fail(void)
{
	fixture f;
	set_up(&f, rules_text);
	const vn_checkpoint *p = breaks(&f, 1, "layer1.output");
	judge(&f);
	CU_ASSERT_EQUAL(p->status, VN_ACCUMULATED);
	CU_ASSERT_FALSE(p->fails);
	CU_ASSERT_EQUAL(p->n_checks, 1);
	tear_down(&f);
}

/* A long span with a floor of its own: what its size explains, a channel that its draws allow, and
 * a common factor that five degrees of freedom have by chance. */
static void at_the_end_of_a_cleared_span_what_chance_allows_is_forgiven(void)
{
	static const struct {
		vn_metric metric;
		double    value, freedom, channel; /* channel: over what chance allows */
		bool      forgiven;
	} of[] = {
		{ VN_M_NMSE, 0.04, 5, 2, true },
		{ VN_M_WORST_TOKEN_NMSE, 0.04, 400, 2, true },
		{ VN_M_SCALE, 0.1, 5, 2, true },    /* 6 sqrt(0.04 / 5) = 0.54 */
		{ VN_M_SCALE, 0.1, 400, 2, false }, /* 0.06 */
		{ VN_M_NORM_RATIO, 1.1, 5, 2, true },
		{ VN_M_NORM_RATIO, 1.1, 400, 2, false },
		{ VN_M_NORM_RATIO, 0.9, 400, 2, false },
		{ VN_M_WORST_CHANNEL_NMSE, 0.1, 5, 0.9, true },
		{ VN_M_WORST_CHANNEL_NMSE, 0.1, 5, 1.1, false },
		{ VN_M_WORST_CHANNEL_NMSE, 0.1, 5, INFINITY, false },
		{ VN_M_WORST_CHANNEL_SCALE, 0.1, 5, 0.9, false },
	};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		fixture f;
		set_up(&f, rules_text);
		vn_checkpoint *p = breaks(&f, 1, "layer1.output");
		vn_check       k = vn_check_at(p, 0);
		k.metric = of[i].metric;
		put_check(&f, p, &k);
		p->m.value[VN_M_NMSE] = 0.04;
		p->m.value[of[i].metric] = of[i].value;
		p->replay.span = 100;
		p->replay.slack = 1;
		p->replay.independent_numbers = (int64_t)of[i].freedom;
		p->replay.channel = of[i].channel;
		judge(&f);
		CU_ASSERT_EQUAL(p->status, of[i].forgiven ? VN_ACCUMULATED : VN_OUTSIDE);
		tear_down(&f);
	}
}

/* Step 0 is charged with a channel of a pool whose last row is of step 1. */
static void a_channel_of_several_steps_is_judged_when_all_its_steps_are_known(void)
{
	static const struct {
		double charged, last;
		bool   forgiven;
	} of[] = { { 0, 0.9, true }, { 0, 1.1, false }, { 0.5, 1.1, false }, { 0, 0, false } };
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		fixture f;
		set_up(&f, rules_text);
		vn_checkpoint  *p = breaks(&f, 0, "layer1.output"), *last = at(&f, 1, "layer1.output");
		vn_channel_pool pool = { .steps = 2,
			                     .rows = 2,
			                     .row = { { (int)(p - f.c.result.checkpoints.of), 0 },
			                              { (int)(last - f.c.result.checkpoints.of), 0 } } };
		vn_check        k = vn_check_at(p, 0);
		k.metric = VN_M_WORST_CHANNEL_NMSE;
		k.steps = 2;
		put_check(&f, p, &k);
		p->channels = last->channels = 0;
		f.c.result.pools.channel_pool = &pool;
		f.c.result.pools.n_channel_pools = 1;
		p->replay.span = last->replay.span = 100;
		p->replay.slack = last->replay.slack = 1;
		p->replay.channel_of_steps = of[i].charged;
		last->replay.channel_of_steps = of[i].last;
		judge(&f);
		CU_ASSERT_EQUAL(p->status, of[i].forgiven ? VN_ACCUMULATED : VN_OUTSIDE);
		tear_down(&f);
	}
}

static void what_is_not_on_its_way_does_not_matter(void)
{
	fixture f;
	set_up(&f, rules_text);
	const vn_checkpoint *p = breaks(&f, 1, "layer1.output");
	at(&f, 0, "layer1.output")->replayed = at(&f, 0, "logits")->replayed = at(&f, 1, "logits")->replayed = false;
	judge(&f);
	CU_ASSERT_EQUAL(p->status, VN_ACCUMULATED);
	tear_down(&f);
}

/* With one difference to the test above, the checkpoint stays outside. */
static void stays_outside(const char *limits, void (*change)(fixture *f, vn_checkpoint *p))
{
	fixture f;
	set_up(&f, limits);
	vn_checkpoint *p = breaks(&f, 1, "layer1.output");
	if (change)
		change(&f, p);
	judge(&f);
	CU_ASSERT_EQUAL(p->status, VN_OUTSIDE);
	CU_ASSERT_TRUE(p->fails);
	tear_down(&f);
}

static void not_replayed(fixture *f, vn_checkpoint *p)
{
	(void)p;
	at(f, 1, "layer0.q_proj")->replayed = false;
}
static void not_before(fixture *f, vn_checkpoint *p)
{
	(void)p;
	at(f, 0, "layer0.q_proj")->replayed = false;
}
static void not_itself(fixture *f, vn_checkpoint *p)
{
	(void)f;
	p->replayed = false;
}
static void a_long_chain(fixture *f, vn_checkpoint *p)
{
	(void)p;
	at(f, 1, "layer0.q_proj")->replay.span = VN_SPAN_CLEARED + 1;
}
static void another_capture(fixture *f, vn_checkpoint *p)
{
	(void)p;
	at(f, 1, "layer0.q_proj")->replay.recorder_fault = true;
}
static void a_fault(fixture *f, vn_checkpoint *p)
{
	(void)p;
	at(f, 1, "layer0.q_proj")->replay.local = 50;
}
static void a_persons_rule(fixture *f, vn_checkpoint *p)
{
	(void)p;
	f->c.opened.request.limits->rule[0]->shipped = false;
}
static void a_nonfinite(fixture *f, vn_checkpoint *p)
{
	vn_check k = vn_check_at(p, 0);
	k.metric = VN_M_NONFINITE;
	put_check(f, p, &k);
}

static void an_invalid_floor(fixture *f, vn_checkpoint *p)
{
	(void)f;
	p->invalid_floor = true;
}
static void no_rule(fixture *f, vn_checkpoint *p)
{
	vn_check k = vn_check_at(p, 0);
	k.rule = NULL;
	put_check(f, p, &k);
}

static void a_pool_with_a_step_not_cleared(fixture *f, vn_checkpoint *p)
{
	vn_check k = vn_check_at(p, 0);
	k.steps = 2;
	put_check(f, p, &k);
	at(f, 0, "layer1.output")->replayed = false; /* no later step reads it, so that p alone would be let go */
}

static void an_operation_on_the_way_that_was_not_replayed_keeps_it_outside(void)
{
	stays_outside(rules_text, not_replayed);
	stays_outside(rules_text, not_before);
	stays_outside(rules_text, not_itself);
	stays_outside(rules_text, a_long_chain);
	stays_outside(rules_text, another_capture);
	stays_outside(rules_text, a_fault);
	stays_outside(rules_text, a_pool_with_a_step_not_cleared);
}

static void a_cleared_step_does_not_fail_for_another_one(void)
{
	fixture f;
	set_up(&f, rules_text);
	vn_checkpoint *p = breaks(&f, 0, "layer1.output");
	vn_check       k = vn_check_at(p, 0);
	k.steps = 2;
	put_check(&f, p, &k);
	at(&f, 1, "layer1.output")->replay.local = 50;
	judge(&f);
	CU_ASSERT_EQUAL(p->status, VN_ACCUMULATED);
	CU_ASSERT_FALSE(p->fails);
	CU_ASSERT_TRUE(at(&f, 1, "layer1.output")->fails);
	tear_down(&f);
}

static void what_is_no_measure_of_an_error_and_a_persons_limits_stand(void)
{
	stays_outside(rules_text, a_persons_rule);
	stays_outside(rules_text, a_nonfinite);
	stays_outside(rules_text, an_invalid_floor);
	stays_outside(rules_text, no_rule);
	stays_outside("version: 1\nname: t\ndefaults:\n  nmse_over_floor: 4\n  accumulated: fail\n", NULL);
}

static void an_operation_beyond_its_floor_is_outside_within_its_limits(void)
{
	fixture f;
	set_up(&f, rules_text);
	vn_checkpoint *p = at(&f, 0, "layer0.mlp_act"), *token = at(&f, 0, "layer0.gate_proj"),
				  *most = at(&f, 0, "layer0.up_proj"), *behind = at(&f, 0, "layer0.q_proj");
	p->replay.local = 38;
	token->replay.local_token = 20;
	most->replay.local_max = 5;
	behind->replay.local = 38;
	behind->replay.charged_to = 0; /* an operation before it explains it */
	judge(&f);
	CU_ASSERT(p->fails && p->status == VN_OUTSIDE && p->worst == 0 && p->n_checks == 1);
	CU_ASSERT(vn_check_at(p, 0).form == VN_OF_OPERATION && vn_check_at(p, 0).metric == VN_M_NMSE &&
	          vn_check_at(p, 0).value == 38 && vn_check_at(p, 0).limit == VN_LOCAL_LIMIT);
	CU_ASSERT(token->fails && vn_check_at(token, 0).metric == VN_M_WORST_TOKEN_NMSE &&
	          vn_check_at(token, 0).value == 20 && vn_check_at(token, 0).limit == VN_PEAK_LIMIT);
	CU_ASSERT(most->fails && vn_check_at(most, 0).metric == VN_M_MAX_ABS && vn_check_at(most, 0).value == 5 &&
	          vn_check_at(most, 0).limit == 4);
	CU_ASSERT_FALSE(behind->fails);
	CU_ASSERT_FALSE(at(&f, 0, "layer1.mlp_act")->fails);
	tear_down(&f);
}

static void a_rule_allows_an_operation_by_name(void)
{
	fixture f;
	set_up(&f,
	       "version: 1\nname: t\ndefaults:\n  nmse_over_floor: 4\nrules:\n  - match: \"layer0.*\"\n    why: known\n    "
	       "operation: allowed\n");
	at(&f, 0, "layer0.mlp_act")->replay.local = 38;
	at(&f, 0, "layer1.mlp_act")->replay.local = 38;
	judge(&f);
	CU_ASSERT_FALSE(at(&f, 0, "layer0.mlp_act")->fails);
	CU_ASSERT_TRUE(at(&f, 0, "layer1.mlp_act")->fails);
	tear_down(&f);
}

static void nothing_is_judged_without_a_replay(void)
{
	fixture f;
	set_up(&f, rules_text);
	const vn_checkpoint *p = breaks(&f, 1, "layer1.output");
	at(&f, 0, "layer0.mlp_act")->replay.local = 38;
	f.c.result.replayed = false;
	judge(&f);
	CU_ASSERT_TRUE(p->fails);
	CU_ASSERT_FALSE(at(&f, 0, "layer0.mlp_act")->fails);
	tear_down(&f);
}

int main(void)
{
	CU_TestInfo tests[] = {
		TEST(error_that_accumulated_over_cleared_operations_does_not_fail),
		TEST(at_the_end_of_a_cleared_span_what_chance_allows_is_forgiven),
		TEST(a_channel_of_several_steps_is_judged_when_all_its_steps_are_known),
		TEST(what_is_not_on_its_way_does_not_matter),
		TEST(an_operation_on_the_way_that_was_not_replayed_keeps_it_outside),
		TEST(a_cleared_step_does_not_fail_for_another_one),
		TEST(what_is_no_measure_of_an_error_and_a_persons_limits_stand),
		TEST(an_operation_beyond_its_floor_is_outside_within_its_limits),
		TEST(a_rule_allows_an_operation_by_name),
		TEST(nothing_is_judged_without_a_replay),
		CU_TEST_INFO_NULL,
	};
	return run_suite("by_operation", tests);
}
