/* test_isolate.c: the search for operations that repair a run, with oracles that have known
 * answers. */
#include "compare/isolate/isolate.h"
#include "tests/support/suite.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 420, MOST_RUNS = 1000 };

/* What the oracle of the current search was asked about: it runs no set twice. */
static struct {
	bool on[MOST_RUNS][MOST], good[MOST_RUNS];
	int  n;
} past;

static bool recall(const bool *on, int n, bool *good)
{
	for (int i = 0; i < past.n; i++)
		if (memcmp(past.on[i], on, (size_t)n) == 0) {
			*good = past.good[i];
			return true;
		}
	return false;
}

static void remember(const bool *on, int n, bool good)
{
	CU_ASSERT_FATAL(past.n < MOST_RUNS);
	memcpy(past.on[past.n], on, (size_t)n);
	past.good[past.n++] = good;
}

/* An oracle: good if one of some sets is completely on. An empty first set is always on. */
typedef struct fake {
	int  n, sets, size[4], member[4][8];
	int  asked, fail_at, lie_at; /* -1: never */
	bool spoiled;                /* by toggle 0, whatever else is on */
} fake;

static vn_status answer(void *ctx, const bool *on, bool again, bool *good, vn_error *err)
{
	fake *f = ctx;

	if (!again && recall(on, f->n, good))
		return VN_OK;
	if (f->asked == f->fail_at)
		return vn_fail(err, VN_ERR_IO, "the engine is gone");
	*good = false;
	for (int s = 0; s < f->sets; s++) {
		bool all = true;
		for (int i = 0; i < f->size[s]; i++)
			all &= on[f->member[s][i]];
		*good |= all;
	}
	if (f->spoiled && on[0] && f->sets)
		*good = false;
	*good ^= f->asked++ == f->lie_at;
	remember(on, f->n, *good);
	return VN_OK;
}

static vn_status search(fake *f, const bool *const *hint, int n_hints, vn_isolated *x, vn_error *err)
{
	past.n = 0;
	return vn_isolate(&(vn_isolate_request) { .n = f->n, .ask = answer, .ctx = f, .hint = hint, .n_hints = n_hints }, x,
	                  err);
}

static vn_isolated isolate(fake *f)
{
	vn_isolated x;
	vn_error    err = { "" };
	CU_ASSERT_EQUAL(search(f, NULL, 0, &x, &err), VN_OK);
	return x;
}

static bool is_set(const vn_isolated *x, int at, int size, const int *member)
{
	if (at >= x->n_sets || x->size[at] != size)
		return false;
	int on = 0;
	for (int i = 0; i < x->n; i++)
		on += x->set[at][i];
	for (int i = 0; i < size; i++)
		on -= x->set[at][member[i]];
	return on == 0;
}

static fake oracle(int n)
{
	return (fake) { .n = n, .fail_at = -1, .lie_at = -1 };
}

static void a_correct_run_has_nothing_to_isolate(void)
{
	fake f = oracle(20);
	f.sets = 1; /* the empty one */
	vn_isolated x = isolate(&f);
	CU_ASSERT(x.good);
	CU_ASSERT_EQUAL(x.n_sets, 0);
	CU_ASSERT_EQUAL(f.asked, 1);
	vn_isolated_finish(&x);
}

static void where_nothing_helps_there_are_no_sets(void)
{
	fake        f = oracle(20);
	vn_isolated x = isolate(&f);
	CU_ASSERT_FALSE(x.good);
	CU_ASSERT_FALSE(x.helps);
	CU_ASSERT_EQUAL(x.n_sets, 0);
	CU_ASSERT_EQUAL(f.asked, 2);
	vn_isolated_finish(&x);
}

static void one_culprit_of_many_is_found_in_a_few_runs(void)
{
	for (int at = 0; at < 360; at += 7) {
		fake f = oracle(360);
		f.sets = f.size[0] = 1;
		f.member[0][0] = at;
		vn_isolated x = isolate(&f);
		CU_ASSERT(x.helps);
		CU_ASSERT_EQUAL(x.n_sets, 1);
		CU_ASSERT(is_set(&x, 0, 1, &at));
		CU_ASSERT(f.asked <= 22); /* 2 log2(360) and four */
		vn_isolated_finish(&x);
	}
}

static void two_that_only_help_together_are_one_set(void)
{
	for (int a = 0; a < 60; a += 5)
		for (int b = a + 1; b < 60; b += 7) {
			const int both[] = { a, b };
			fake      f = oracle(60);
			f.sets = 1;
			f.size[0] = 2;
			memcpy(f.member[0], both, sizeof both);
			vn_isolated x = isolate(&f);
			CU_ASSERT_EQUAL(x.n_sets, 1);
			CU_ASSERT(is_set(&x, 0, 2, both));
			CU_ASSERT(f.asked <= 60);
			vn_isolated_finish(&x);
		}
}

static void either_of_several_is_a_set_each_and_the_smaller_comes_first(void)
{
	const int one[] = { 31 }, three[] = { 2, 7, 11 };
	fake      f = oracle(40);
	f.sets = 2;
	f.size[0] = 3;
	f.size[1] = 1;
	memcpy(f.member[0], three, sizeof three);
	memcpy(f.member[1], one, sizeof one);
	vn_isolated x = isolate(&f);
	CU_ASSERT_EQUAL(x.n_sets, 2);
	CU_ASSERT(is_set(&x, 0, 1, one));
	CU_ASSERT(is_set(&x, 1, 3, three));
	CU_ASSERT_FALSE(x.more);
	vn_isolated_finish(&x);
}

/* Replacing one more can make it worse: two wrongs. */
static void a_toggle_that_spoils_what_others_repair_is_left_out(void)
{
	const int need[] = { 9 };
	fake      f = oracle(16);
	f.sets = f.size[0] = 1;
	f.member[0][0] = need[0];
	vn_isolated x = isolate(&f);
	CU_ASSERT(is_set(&x, 0, 1, need));
	vn_isolated_finish(&x);
	f.spoiled = true;
	f.asked = 0;
	bool hint[16] = { false };
	memset(hint + 8, 1, 4);
	const bool *const hints[] = { hint };
	CU_ASSERT_EQUAL(search(&f, hints, 1, &x, NULL), VN_OK);
	CU_ASSERT_FALSE(x.helps); /* all of them do not */
	vn_isolated_finish(&x);
}

static void a_good_hint_saves_runs_and_a_bad_one_costs_one(void)
{
	bool              hint[2][MOST] = { { false } };
	const bool *const hints[] = { hint[0], hint[1] };
	const int         at = 201;
	vn_isolated       x;

	hint[0][3] = true;
	hint[1][at] = hint[1][5] = true;
	fake f = oracle(MOST);
	f.sets = f.size[0] = 1;
	f.member[0][0] = at;
	CU_ASSERT_EQUAL(search(&f, hints, 2, &x, NULL), VN_OK);
	CU_ASSERT(is_set(&x, 0, 1, &at));
	CU_ASSERT(f.asked <= 9);
	vn_isolated_finish(&x);
}

static void more_sets_than_are_looked_for_is_said(void)
{
	fake        f = oracle(40);
	vn_isolated x;
	f.sets = 4;
	for (int s = 0; s < 4; s++) {
		f.size[s] = 1;
		f.member[s][0] = 9 * s;
	}
	x = isolate(&f);
	CU_ASSERT_EQUAL(x.n_sets, 4);
	CU_ASSERT_FALSE(x.more);
	vn_isolated_finish(&x);
}

static void an_oracle_that_fails_or_changes_its_mind_is_an_error(void)
{
	vn_isolated x;
	int         refused = 0, runs = 12;

	for (int at = 0; at < runs; at++) {
		vn_error err = { "" };
		fake     f = oracle(12);
		f.sets = f.size[0] = 1;
		f.member[0][0] = 7;
		if (at == 0) {
			x = isolate(&f);
			runs = f.asked;
			vn_isolated_finish(&x);
			f.asked = 0;
		}
		f.fail_at = at;
		CU_ASSERT_EQUAL(search(&f, NULL, 0, &x, &err), VN_ERR_IO);
		vn_isolated_finish(&x);
		f = oracle(12);
		f.sets = f.size[0] = 1;
		f.member[0][0] = 7;
		f.lie_at = at;
		refused += search(&f, NULL, 0, &x, &err) == VN_ERR_UNSUPPORTED;
		vn_isolated_finish(&x);
	}
	CU_ASSERT(refused > 0);
}

static uint64_t seed = 3;

static int draw(int n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)((seed >> 33) % (unsigned)n);
}

static void any_set_that_is_found_is_good_and_none_of_it_can_be_left_out(void)
{
	for (int trial = 0; trial < 400; trial++) {
		fake f = oracle(1 + draw(45));
		f.sets = 1 + draw(4);
		for (int s = 0; s < f.sets; s++) {
			f.size[s] = 1 + draw(f.n < 6 ? f.n : 6);
			for (int i = 0; i < f.size[s]; i++)
				f.member[s][i] = draw(f.n);
		}
		vn_isolated x = isolate(&f);
		CU_ASSERT(x.n_sets >= 1);
		for (int k = 0; k < x.n_sets; k++) {
			bool good;
			answer(&f, x.set[k], false, &good, NULL);
			CU_ASSERT(good);
			for (int i = 0; i < f.n; i++)
				if (x.set[k][i]) {
					x.set[k][i] = false;
					answer(&f, x.set[k], false, &good, NULL);
					CU_ASSERT_FALSE(good);
					x.set[k][i] = true;
				}
		}
		vn_isolated_finish(&x);
	}
}

/* ---- a deep model ---------------------------------------------------------------------- */

enum { LAYERS = 24, COMPONENTS = 17, DEEP = LAYERS * COMPONENTS + 3 };

/* An oracle: good if all wrong toggles are replaced. */
typedef struct deep {
	bool wrong[DEEP];
	int  component[DEEP], layer[DEEP];
	int  runs, confirmed;
} deep;

static deep d;

static vn_status answer_deep(void *ctx, const bool *on, bool again, bool *good, vn_error *err)
{
	(void)ctx;
	(void)err;
	d.confirmed += again;
	if (!again && recall(on, DEEP, good))
		return VN_OK;
	d.runs++;
	*good = true;
	for (int i = 0; i < DEEP; i++)
		*good &= on[i] || !d.wrong[i];
	remember(on, DEEP, *good);
	return VN_OK;
}

static void make_deep(void)
{
	memset(&d, 0, sizeof d);
	for (int i = 0; i < DEEP; i++) {
		const bool outside = i == 0 || i >= DEEP - 2; /* embed, final_norm, logits */
		d.layer[i] = outside ? -1 : (i - 1) / COMPONENTS;
		d.component[i] = outside ? COMPONENTS + (i ? i - DEEP + 3 : 0) : (i - 1) % COMPONENTS;
	}
}

static void spoil(int component, int layer)
{
	d.wrong[1 + layer * COMPONENTS + component] = true;
}

/* The number of runs of a search, which must find exactly the wrong toggles. */
static int search_deep(void)
{
	vn_isolated              x;
	const vn_isolate_request q = { .n = DEEP, .component = d.component, .layer = d.layer, .ask = answer_deep };

	past.n = 0;
	CU_ASSERT_EQUAL(vn_isolate(&q, &x, NULL), VN_OK);
	CU_ASSERT_EQUAL(x.n_sets, 1);
	CU_ASSERT(x.n_sets == 1 && memcmp(x.set[0], d.wrong, sizeof d.wrong) == 0);
	CU_ASSERT_EQUAL(d.confirmed, 1);
	vn_isolated_finish(&x);
	return d.runs;
}

/* Layers of one pattern of k: evenly apart, side by side, or by chance. */
static void choose_layers(int k, int pattern, int first, bool layer[LAYERS])
{
	memset(layer, 0, LAYERS * sizeof *layer);
	for (int i = 0, at; i < k; i++) {
		if (pattern == 0)
			at = (first + i * LAYERS / k) % LAYERS;
		else if (pattern == 1)
			at = (first + i) % LAYERS;
		else
			do
				at = draw(LAYERS);
			while (layer[at]);
		layer[at] = true;
	}
}

typedef struct cost {
	int    most;
	double sum, n;
} cost;

static void count_runs(cost *c)
{
	const int runs = search_deep();
	c->most = runs > c->most ? runs : c->most;
	c->sum += runs;
	c->n++;
}

/* The second component is wrong in the same layers, or in others by chance. */
static cost cost_of(int components, int k)
{
	cost c = { 0 };

	for (int pattern = 0; pattern < 4; pattern++)
		for (int first = 0; first < LAYERS; first++)
			for (int a = 0; a < COMPONENTS; a += components) {
				bool layer[2][LAYERS];
				make_deep();
				choose_layers(k, pattern, first, layer[0]);
				memcpy(layer[1], layer[0], sizeof layer[0]);
				if (pattern == 3)
					choose_layers(k, pattern, first, layer[1]);
				for (int which = 0; which < components; which++)
					for (int l = 0; l < LAYERS; l++)
						if (layer[which][l])
							spoil((a + 5 * which) % COMPONENTS, l);
				count_runs(&c);
			}
	return c;
}

static void a_component_of_24_layers_costs_at_most_60_runs_and_two_at_most_120(void)
{
	static const int layers[] = { 1, 2, 4, 8, 12, 24 };

	printf("\n\t%d toggles in %d layers; runs, most and mean\n\t%10s %8s %8s %8s %8s\n", DEEP, LAYERS, "in layers",
	       "one", "", "two", "");
	for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
		const cost one = cost_of(1, layers[i]), two = cost_of(2, layers[i]);
		printf("\t%10d %8d %8.1f %8d %8.1f\n", layers[i], one.most, one.sum / one.n, two.most, two.sum / two.n);
		CU_ASSERT(one.most <= 60);
		CU_ASSERT(two.most <= 120);
	}
}

static void a_whole_layer_that_is_wrong_is_narrowed_by_layer(void)
{
	for (int l = 0; l < LAYERS; l++) {
		make_deep();
		for (int c = 0; c < COMPONENTS; c++)
			spoil(c, l);
		CU_ASSERT(search_deep() <= 70);
	}
}

int main(void)
{
	static CU_TestInfo tests[] = {
		TEST(a_correct_run_has_nothing_to_isolate),
		TEST(where_nothing_helps_there_are_no_sets),
		TEST(one_culprit_of_many_is_found_in_a_few_runs),
		TEST(two_that_only_help_together_are_one_set),
		TEST(either_of_several_is_a_set_each_and_the_smaller_comes_first),
		TEST(a_toggle_that_spoils_what_others_repair_is_left_out),
		TEST(a_good_hint_saves_runs_and_a_bad_one_costs_one),
		TEST(more_sets_than_are_looked_for_is_said),
		TEST(an_oracle_that_fails_or_changes_its_mind_is_an_error),
		TEST(any_set_that_is_found_is_good_and_none_of_it_can_be_left_out),
		TEST(a_component_of_24_layers_costs_at_most_60_runs_and_two_at_most_120),
		TEST(a_whole_layer_that_is_wrong_is_narrowed_by_layer),
		CU_TEST_INFO_NULL,
	};
	return run_suite("isolate", tests);
}
