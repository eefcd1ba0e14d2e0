/* invariants.h: what must hold of any engine that keeps states between calls:
 * models.md, 7.3. Written once against a table of functions; test_invariants.c
 * runs it on the reference, test_gpu_invariants.c on every device. */
#pragma once

#include "libref/exec/eval.h"
#include "libref/model/model.h"
#include "libref/plan/engine.h"
#include "tests/support/toy_model.h"

#include <CUnit/Basic.h>
#include <math.h>

/* An engine, opened on one of the models. */
typedef struct any {
	void                *self;
	const vn_engine_ops *calls;
} any;

/* Defined by the suite: opens an engine of the kind under test, in float32 or float16. */
static any open_engine(const vn_plan *p, const vn_tensor *weights, vn_policy policy);

/* Defined by the suite; asked for each of the models of a test, which begins at this line. */
static bool is_subject_tried(int line);

static const vn_policy IN_F32 = { VN_F32, VN_F32, 0, { 0 } }, IN_F16 = { VN_F16, VN_F32, 0, { 0 } };

/* ---- the models --------------------------------------------------------------------- */

enum { N = 60, MODELS = 5 }; /* tokens of a sequence: the toy's context is 64 */

typedef struct subject {
	const char      *name;
	vn_plan         *plan;
	const vn_tensor *weights;
	int32_t          ids[N], other[N]; /* two sequences of tokens */
} subject;

static subject   subjects[MODELS];
static vn_model *opened_[MODELS];
static char      toy_dir_[256];

static void subject_of(subject *s, const char *name, const vn_model *m, int window)
{
	s->name = name;
	s->weights = vn_model_weights(m);
	if (vn_plan_clone(vn_model_plan(m), &s->plan, NULL))
		toy_die(name);
	for (int i = 0; i < s->plan->n_nodes; i++)
		if (window && s->plan->node[i].op == VN_OP_ATTENTION)
			s->plan->node[i].c.attention.window = window;
	for (int i = 0; i < N; i++) {
		s->ids[i] = (i * 37 + i * i % 7 + 11) % (s->plan->vocab - 2); /* the last two ids are for poison */
		s->other[i] = (i * 29 + i * i % 11 + 5) % (s->plan->vocab - 2);
	}
}

static bool open_models(void)
{
	toy_model m;
	vn_error  err = { "" };

	toy_directory(toy_dir_);
	toy_build(&m, VN_F32);
	toy_save(&m, toy_dir_, TOY_CONFIG);
	toy_free(&m);
	const struct {
		const char *name, *path;
		int         window;
	} row[MODELS] = {
		{ "toy, window 5", toy_dir_, 5 },
		{ "qwen2", VERNIER_SOURCE "/fixtures/qwen2-trained", 0 },
		{ "mistral, window 18", VERNIER_SOURCE "/fixtures/mistral-trained", 18 },
		{ "gpt2", VERNIER_SOURCE "/fixtures/gpt2-trained", 0 },            /* learned positions */
		{ "qwen3_5", VERNIER_SOURCE "/fixtures/qwen3_5_text-trained", 0 }, /* states of fixed size */
	};
	for (int i = 0; i < MODELS; i++) {
		if (vn_model_open(row[i].path, &opened_[i], &err)) {
			fprintf(stderr, "%s\n", err.text);
			return false;
		}
		subject_of(&subjects[i], row[i].name, opened_[i], row[i].window);
	}
	return true;
}

static void close_models(void)
{
	for (int i = 0; i < MODELS; i++) {
		vn_plan_destroy(subjects[i].plan);
		vn_model_close(opened_[i]);
	}
	toy_remove(toy_dir_);
}

/* ---- a sink that keeps every value as floats -------------------------------------------- */

typedef struct seen {
	int      n, open;
	vn_dtype dtype;
	struct {
		float   *x;
		size_t   n;
		vn_shape shape;
	} * value; /* of the last call that handed it over */
} seen;

static vn_status see_begin(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	seen *s = ctx;
	(void)err;
	s->open = value;
	s->dtype = dtype;
	free(s->value[value].x);
	s->value[value].x = malloc((size_t)vn_shape_count(shape) * sizeof(float) + 1);
	s->value[value].n = 0;
	s->value[value].shape = *shape;
	return VN_OK;
}

static vn_status see_write(void *ctx, const void *data, size_t n, vn_error *err)
{
	seen *s = ctx;
	(void)err;
	vn_to_f32(s->value[s->open].x + s->value[s->open].n, data, s->dtype, n);
	s->value[s->open].n += n;
	return VN_OK;
}

static vn_status see_end(void *ctx, vn_error *err)
{
	(void)ctx, (void)err;
	return VN_OK;
}

static seen see_nothing(const vn_plan *p)
{
	seen s = { .n = p->n_values };
	if (!(s.value = calloc((size_t)p->n_values, sizeof *s.value)))
		toy_die("calloc");
	return s;
}

static void forget(seen *s)
{
	for (int v = 0; v < s->n; v++)
		free(s->value[v].x);
	free(s->value);
	*s = (seen) { 0 };
}

static bool same(const seen *a, const seen *b, int v)
{
	return a->value[v].x && b->value[v].x && a->value[v].n == b->value[v].n &&
	       memcmp(a->value[v].x, b->value[v].x, a->value[v].n * sizeof(float)) == 0;
}

/* Counts the values of both that differ in a bit; names the first. */
static int differing(const subject *s, const seen *a, const seen *b)
{
	int bad = 0;
	for (int v = 0; v < a->n; v++)
		if ((a->value[v].x || b->value[v].x) && !same(a, b, v) && bad++ == 0)
			printf("\n  %s: %s differs ", s->name, s->plan->value[v].name);
	return bad;
}

/* ---- calls ------------------------------------------------------------------------------ */

static void must(vn_status st, const vn_error *err)
{
	CU_ASSERT_EQUAL(st, VN_OK);
	if (st)
		printf("\n  %s\n", err->text);
}

static bool *choice(const vn_plan *p, const char *glob)
{
	bool *want = calloc((size_t)p->n_values, sizeof *want);
	if (!want || vn_taps_choose(p, &glob, 1, NULL, want, NULL))
		toy_die(glob);
	return want;
}

/* Makes one call; matching values go to `to`, if not NULL. */
static void run_call(const subject *s, any e, const int32_t *ids, int64_t tokens, const char *glob, seen *to)
{
	bool    *want = choice(s->plan, glob ? glob : "logits");
	vn_taps  taps = { .want = want, .sink = { .ctx = to, .begin = see_begin, .write = see_write, .end = see_end } };
	vn_error err = { "" };

	must(e.calls->forward(e.self, ids, tokens, to ? &taps : NULL, &err), &err);
	free(want);
}

static const float *row_of(const seen *a, int v, int64_t row)
{
	const int64_t width = vn_shape_count(&a->value[v].shape) / a->value[v].shape.dim[0];
	return a->value[v].x + row * width;
}

/* The largest gap between two rows, in units of the largest number of the first
 * (of 1, if that is more); no number in one of them alone is as bad as can be. */
static double gap(const float *x, const float *y, int64_t n)
{
	double worst = 0.0, size = 1.0;
	for (int64_t i = 0; i < n; i++) {
		const double d = fabs((double)x[i] - (double)y[i]);
		if (isnan(d))
			return INFINITY;
		worst = fmax(worst, d);
		size = fmax(size, fabs((double)x[i]));
	}
	return worst / size;
}

/* The model keeps states of fixed size, which cannot be rewound and multiply roundings. */
static bool hybrid(const subject *s)
{
	for (int i = 0; i < s->plan->n_states; i++)
		if (s->plan->state[i].input < 0)
			return true;
	return false;
}

#define EACH(s) \
	for (const subject *s = subjects; s < subjects + MODELS; s++) \
		if (is_subject_tried(__LINE__))

/* ---- 1 and 2: prefill and steps --------------------------------------------------------- */

/* models.md 7.3: 3e-6 in float32, 4e-5 with Gated DeltaNet. */
static void any_split_of_a_sequence_gives_the_logits_of_one_prefill(void)
{
	static const int split[] = { 1, 2, 7, 16, 31, 59 }; /* 1: step by step */
	EACH (s) {
		const int logits = vn_plan_find(s->plan, "logits");
		any       e = open_engine(s->plan, s->weights, IN_F32);
		seen      whole = see_nothing(s->plan), part = see_nothing(s->plan);
		double    worst = 0.0;
		run_call(s, e, s->ids, N, "logits", &whole);
		for (size_t k = 0; k < sizeof split / sizeof *split; k++) {
			e.calls->reset(e.self);
			for (int t = 0; t < N; t += split[k]) {
				const int n = N - t < split[k] ? N - t : split[k];
				run_call(s, e, s->ids + t, n, "logits", &part);
				CU_ASSERT_EQUAL(e.calls->position(e.self), t + n);
				for (int i = 0; i < n; i++)
					worst = fmax(worst, gap(row_of(&whole, logits, t + i), row_of(&part, logits, i), s->plan->vocab));
			}
		}
		forget(&whole), forget(&part);
		e.calls->destroy(e.self);
		CU_ASSERT(worst <= (hybrid(s) ? 4e-5 : 3e-6));
		printf("%s %.2g ", s->name, worst);
	}
}

/* ---- 3: causality ------------------------------------------------------------------------ */

static void changing_the_last_token_changes_no_bit_before_it(void)
{
	EACH (s) {
		any     e = open_engine(s->plan, s->weights, IN_F16);
		seen    a = see_nothing(s->plan), b = see_nothing(s->plan);
		int32_t ids[N];
		memcpy(ids, s->ids, sizeof ids);
		ids[N - 1] = (ids[N - 1] + 1) % s->plan->vocab;
		run_call(s, e, s->ids, N, "*", &a);
		e.calls->reset(e.self);
		run_call(s, e, ids, N, "*", &b);
		for (int v = 0; v < s->plan->n_values; v++) {
			const vn_value *x = &s->plan->value[v];
			const vn_shape *shape = &a.value[v].shape;
			const bool      keyed = x->size[x->rank - 1] == VN_S;          /* (H,T,S) */
			if (x->alias_of >= 0 || (x->state >= 0 && x->size[0] != VN_S)) /* the last token's own state */
				continue;
			const int64_t outer = keyed ? shape->dim[0] : 1, row = vn_shape_count(shape) / outer / N;
			int           bad = 0;
			for (int64_t o = 0; o < outer; o++)
				for (int64_t t = 0; t < N - 1; t++) /* scores against the last key are shown before the mask */
					bad += memcmp(a.value[v].x + (o * N + t) * row, b.value[v].x + (o * N + t) * row,
					              (size_t)(keyed ? N - 1 : row) * sizeof(float)) != 0;
			CU_ASSERT_EQUAL(bad, 0);
		}
		CU_ASSERT_FALSE(same(&a, &b, vn_plan_find(s->plan, "logits")));
		forget(&a), forget(&b);
		e.calls->destroy(e.self);
	}
}

/* ---- 5: a softmax knows no order ------------------------------------------------------------ */

enum { KEYS = 1, VALUES = 2 };

/* The first layer's attention for the last token when slots of the other tokens are exchanged:
 * their keys, their values, or both. */
static void last_context(const subject *s, any e, int exchanged, seen *to)
{
	const vn_plan *p = s->plan;
	const int      context = vn_plan_find(p, "layer0.attn_context"), node = p->value[context].node;
	bool          *want = choice(p, "layer0.attn_context");
	const vn_taps  taps = { .want = want,
		                    .sink = { .ctx = to, .begin = see_begin, .write = see_write, .end = see_end } };
	vn_error       err = { "" };

	e.calls->reset(e.self);
	must(e.calls->begin(e.self, s->ids, N - 1, NULL, &err), &err);
	must(e.calls->run(e.self, 0, node, &err), &err);
	for (int i = 0; i < 2; i++) {
		const int     value = p->node[node].in[i ? VN_ATTN_V : VN_ATTN_K];
		const int64_t row = vn_value_row(&p->value[value]);
		float        *x = malloc((size_t)(2 * N * row) * sizeof *x), *y = x + N * row;
		must(e.calls->read(e.self, value, x, &err), &err);
		for (int64_t t = 0; t < N - 1; t++)
			memcpy(y + t * row, x + (t * 7 + 3) % (N - 1) * row, (size_t)row * sizeof *x);
		if (exchanged & (i ? VALUES : KEYS))
			must(e.calls->write(e.self, value, y, &err), &err);
		free(x);
	}
	must(e.calls->run(e.self, node, p->n_nodes, &err), &err);
	must(e.calls->end(e.self, true, &err), &err);
	must(e.calls->begin(e.self, s->ids + N - 1, 1, &taps, &err), &err);
	must(e.calls->run(e.self, 0, node + 1, &err), &err);
	must(e.calls->end(e.self, false, &err), &err);
	free(want);
}

/* The last query sees every key, so exchanging whole slots changes only the order of its sums.
 * Exchanging only keys or only values changes the result. */
static void exchanged_pairs_of_keys_and_values_change_only_the_rounding(void)
{
	double worst = 0.0;
	int    tried = 0;

	for (const subject *s = subjects; s < subjects + MODELS; s++) {
		const int v = vn_plan_find(s->plan, "layer0.attn_context");
		if (v < 0 || s->plan->node[s->plan->value[v].node].c.attention.window || !is_subject_tried(__LINE__))
			continue; /* a first layer that does not attend, or not to every key */
		any  e = open_engine(s->plan, s->weights, IN_F32);
		seen straight = see_nothing(s->plan), mixed = see_nothing(s->plan);
		last_context(s, e, 0, &straight);
		CU_ASSERT_FATAL(straight.value[v].n > 0);
		last_context(s, e, KEYS | VALUES, &mixed);
		worst = fmax(worst, gap(straight.value[v].x, mixed.value[v].x, (int64_t)straight.value[v].n));
		for (int only = KEYS; only <= VALUES; only++) {
			last_context(s, e, only, &mixed);
			CU_ASSERT(gap(straight.value[v].x, mixed.value[v].x, (int64_t)straight.value[v].n) > 1e-3);
		}
		tried++;
		forget(&straight), forget(&mixed);
		e.calls->destroy(e.self);
	}
	CU_ASSERT(tried > 0);
	CU_ASSERT(worst <= 1e-6);
	printf("worst %.2g ", worst);
}

/* ---- 6: positions ------------------------------------------------------------------------- */

/* The logits of the sequence with all positions increased: rotations are computed here, the rest by
 * the engine. */
static void run_shifted(const subject *s, any e, int64_t by, seen *to)
{
	const vn_plan *p = s->plan;
	bool          *want = choice(p, "logits");
	const vn_taps  taps = { .want = want,
		                    .sink = { .ctx = to, .begin = see_begin, .write = see_write, .end = see_end } };
	vn_error       err = { "" };
	int            next = 0;

	e.calls->reset(e.self);
	must(e.calls->begin(e.self, s->ids, N, &taps, &err), &err);
	for (int i = 0; i < p->n_nodes; i++) {
		const vn_node  *n = &p->node[i];
		const vn_value *y = &p->value[n->out[0]];
		if (n->op != VN_OP_ROPE)
			continue;
		const int64_t row = vn_value_row(y);
		float        *x = malloc((size_t)(N * row) * sizeof *x), *out = malloc((size_t)(N * row) * sizeof *out);
		const vn_args a = { .policy = IN_F32, .threads = 1, .past = by, .tokens = N, .in = { x } };
		must(e.calls->run(e.self, next, i, &err), &err);
		must(e.calls->read(e.self, n->in[0], x, &err), &err);
		must(vn_eval_for(IN_F32)->node(n, &a, row, y->size[2], out, &err), &err);
		must(e.calls->write(e.self, n->out[0], out, &err), &err);
		next = i + 1;
		free(x);
		free(out);
	}
	must(e.calls->run(e.self, next, p->n_nodes, &err), &err);
	must(e.calls->end(e.self, true, &err), &err);
	free(want);
}

static void moving_all_positions_changes_only_the_rounding(void)
{
	double worst = 0.0;

	EACH (s) {
		const int logits = vn_plan_find(s->plan, "logits");
		if (vn_plan_find(s->plan, "layer0.q_rope") < 0 && vn_plan_find(s->plan, "layer3.q_rope") < 0)
			continue; /* learned positions cannot be moved */
		any  e = open_engine(s->plan, s->weights, IN_F32);
		seen here = see_nothing(s->plan), there = see_nothing(s->plan);
		run_shifted(s, e, 0, &here);
		run_shifted(s, e, 37, &there);
		CU_ASSERT_FALSE(same(&here, &there, logits));
		for (int t = 0; t < N; t++)
			worst = fmax(worst, gap(row_of(&here, logits, t), row_of(&there, logits, t), s->plan->vocab));
		forget(&here), forget(&there);
		e.calls->destroy(e.self);
	}
	CU_ASSERT(worst <= 1e-5); /* an angle near 100 is off by 4e-6 in float32 */
	printf("worst %.2g ", worst);
}

/* ---- stale context --------------------------------------------------------------------------- */

/* The other prompt may hold anything, NaN even: the embedding of the last id is NaN. */
static void nothing_of_another_prompt_is_left_after_a_reset(void)
{
	EACH (s) {
		const int64_t D = s->plan->weight[0].shape.dim[1], last = s->plan->vocab - 1;
		vn_tensor    *w = malloc((size_t)s->plan->n_weights * sizeof *w);
		float        *table = malloc((size_t)vn_shape_count(&s->plan->weight[0].shape) * sizeof *table);
		int32_t       poison[N];
		memcpy(w, s->weights, (size_t)s->plan->n_weights * sizeof *w);
		vn_to_f32(table, w[0].data, w[0].dtype, (size_t)vn_shape_count(&w[0].shape));
		for (int64_t d = 0; d < D; d++)
			table[last * D + d] = NAN;
		w[0] = (vn_tensor) { VN_F32, w[0].shape, table };
		for (int i = 0; i < N; i++)
			poison[i] = (int32_t)last;

		any  used = open_engine(s->plan, w, IN_F16), fresh = open_engine(s->plan, w, IN_F16);
		seen a = see_nothing(s->plan), b = see_nothing(s->plan);
		for (int turn = 0; turn < 2; turn++) { /* fresh only at first; then both were used, in different ways */
			used.calls->reset(used.self);
			run_call(s, used, turn ? poison : s->other, N, NULL, NULL);
			used.calls->reset(used.self), fresh.calls->reset(fresh.self);
			CU_ASSERT_EQUAL(used.calls->position(used.self), 0);
			for (int t = 0; t < 12; t += t ? 1 : 7) { /* seven tokens, then step by step */
				const int n = t ? 1 : 7;
				run_call(s, used, s->ids + t, n, "{layer*,final_norm}", &a);
				run_call(s, fresh, s->ids + t, n, "{layer*,final_norm}", &b);
				CU_ASSERT_EQUAL(differing(s, &a, &b), 0);
			}
		}
		used.calls->destroy(used.self), fresh.calls->destroy(fresh.self);
		forget(&a), forget(&b);
		free(table);
		free(w);
	}
}

/* ---- calls that do not count ----------------------------------------------------------------- */

static vn_status full(void *ctx, int value, vn_dtype dtype, const vn_shape *shape, vn_error *err)
{
	(void)ctx, (void)value, (void)dtype, (void)shape;
	return vn_fail(err, VN_ERR_IO, "the sink is full");
}

static void a_call_that_failed_or_was_not_kept_leaves_no_trace(void)
{
	EACH (s) {
		any      a = open_engine(s->plan, s->weights, IN_F16), b = open_engine(s->plan, s->weights, IN_F16);
		seen     went = see_nothing(s->plan), fresh = see_nothing(s->plan);
		bool    *want = choice(s->plan, "layer1.{v_cache,gdn_state}");
		vn_taps  taps = { .want = want, .sink = { .begin = full, .write = see_write, .end = see_end } };
		vn_error err = { "" };
		run_call(s, a, s->ids, 9, NULL, NULL);
		run_call(s, b, s->ids, 9, NULL, NULL);
		must(a.calls->begin(a.self, s->other, 40, NULL, &err), &err); /* larger than its room, too */
		must(a.calls->run(a.self, 0, s->plan->n_nodes, &err), &err);
		must(a.calls->end(a.self, false, &err), &err);
		CU_ASSERT_EQUAL(a.calls->forward(a.self, s->other, 5, &taps, &err), VN_ERR_IO);
		CU_ASSERT_EQUAL(a.calls->position(a.self), 9);
		run_call(s, a, s->ids + 9, 2, "*", &went);
		run_call(s, b, s->ids + 9, 2, "*", &fresh);
		CU_ASSERT_EQUAL(differing(s, &went, &fresh), 0);
		a.calls->destroy(a.self), b.calls->destroy(b.self);
		forget(&went), forget(&fresh);
		free(want);
	}
}

/* ---- the cache as a checkpoint --------------------------------------------------------------- */

/* It shows the rows that were given to it, of all calls, and is read as it is tapped. */
static void the_cache_is_what_was_put_into_it(void)
{
	EACH (s) {
		any  e = open_engine(s->plan, s->weights, IN_F32);
		seen part = see_nothing(s->plan);
		for (int t = 0; t < 20; t += t ? 1 : 13) {
			const int    n = t ? 1 : 13;
			static float all[8][20 * 64], now[20 * 64];
			run_call(s, e, s->ids + t, n, "layer*.{k_rope,k_proj,v_proj,k_cache,v_cache}", &part);
			for (int i = 0; i < s->plan->n_states; i++) {
				const vn_state *x = &s->plan->state[i];
				if (x->input < 0)
					continue;
				const int64_t row = vn_state_row(x);
				const int     in = s->plan->node[x->node].in[x->input];
				memcpy(all[i] + t * row, part.value[in].x, (size_t)(n * row) * sizeof(float));
				CU_ASSERT_EQUAL_FATAL(part.value[x->value].n, (size_t)((t + n) * row));
				CU_ASSERT_EQUAL(memcmp(part.value[x->value].x, all[i], (size_t)((t + n) * row) * sizeof(float)), 0);
			}
			/* and read in the midst of a call that does not count */
			vn_error        err = { "" };
			const vn_state *x = &s->plan->state[s->plan->n_states - 1];
			must(e.calls->begin(e.self, s->ids + t + n, 1, NULL, &err), &err);
			must(e.calls->run(e.self, 0, x->node + 1, &err), &err);
			must(e.calls->read(e.self, x->value, now, &err), &err);
			CU_ASSERT_EQUAL(
				memcmp(now, all[s->plan->n_states - 1], (size_t)((t + n) * vn_state_row(x)) * sizeof(float)), 0);
			must(e.calls->end(e.self, false, &err), &err);
		}
		forget(&part);
		e.calls->destroy(e.self);
	}
}

/* The invariants that depend on where keys and values are kept. */
#define CACHE_INVARIANTS \
	{ "any split of a sequence gives the logits of one prefill", \
	  any_split_of_a_sequence_gives_the_logits_of_one_prefill }, \
		{ "nothing of another prompt is left after a reset", nothing_of_another_prompt_is_left_after_a_reset }, \
		{ "a call that failed or was not kept leaves no trace", a_call_that_failed_or_was_not_kept_leaves_no_trace }, \
	{ \
		"the cache is what was put into it", the_cache_is_what_was_put_into_it \
	}

/* The invariants that do not. */
#define INVARIANTS \
	CACHE_INVARIANTS, \
		{ "changing the last token changes no bit before it", changing_the_last_token_changes_no_bit_before_it }, \
		{ "exchanged pairs of keys and values change only the rounding", \
		  exchanged_pairs_of_keys_and_values_change_only_the_rounding }, \
	{ \
		"moving all positions changes only the rounding", moving_all_positions_changes_only_the_rounding \
	}

/* ---- a RoPE that depends on the length of the sequence --------------------------------------- */

/* The exceptions of models.md 7.3. Cached keys keep the rotation of their own call, whose length
 * decides the frequencies. So beyond the length that the model was made for, a prefill and single
 * steps are different computations, and only equal calls give equal numbers. */

enum { MADE_FOR = 20, FIRST = 18, ALL = 23 }; /* tokens: of the model, before the second call, behind it */

static const double STRETCH = 2.5;

/* Divisors of pair i in a sequence longer than MADE_FOR. */
static double long_divisor(int i)
{
	return 1.0 + i * i / 2.0;
}

static void depend_on_length(subject *s, vn_rope_type type)
{
	float few[64], many[64];
	int   n = 0;

	*s = subjects[1]; /* qwen2 */
	if (vn_plan_clone(subjects[1].plan, &s->plan, NULL))
		toy_die(s->name);
	for (int i = 0; i < s->plan->n_nodes; i++)
		if (s->plan->node[i].op == VN_OP_ROPE)
			n = s->plan->node[i].c.rope.rope.rotary_dim / 2;
	for (int i = 0; i < n; i++)
		few[i] = 1.0f, many[i] = (float)long_divisor(i);
	const int by_few = vn_list_add(s->plan, n, few), by_many = vn_list_add(s->plan, n, many);
	for (int i = 0; i < s->plan->n_nodes; i++)
		if (s->plan->node[i].op == VN_OP_ROPE) {
			vn_rope *r = &s->plan->node[i].c.rope.rope;
			*r = (vn_rope) { .type = type,
				             .theta = r->theta,
				             .rotary_dim = r->rotary_dim,
				             .factor = STRETCH,
				             .max_context = MADE_FOR,
				             .original_context = MADE_FOR,
				             .pow_block = r->pow_block };
			if (type == VN_ROPE_LONGROPE)
				r->short_factor = by_few, r->long_factor = by_many;
		}
}

/* The angle of pair i at a position of a sequence of that length, and the factor of cosine and
 * sine: models.md 1.6, in double. */
static double angle(const vn_rope *r, int i, int position, int length, double *af)
{
	const double R = r->rotary_dim;
	double       base = r->theta, divisor = 1.0;

	*af = 1.0;
	if (r->type == VN_ROPE_DYNAMIC)
		base *= pow(STRETCH * fmax(length, MADE_FOR) / MADE_FOR - (STRETCH - 1.0), R / (R - 2.0));
	else {
		divisor = length > MADE_FOR ? long_divisor(i) : 1.0;
		*af = sqrt(1.0 + log(STRETCH) / log(MADE_FOR));
	}
	return position * pow(base, -2.0 * i / R) / divisor;
}

/* The largest error of rows of a rotated value against its input, for a call that began behind
 * `past`. */
static double rotation_error(const subject *s, const seen *x, const char *name, int past)
{
	const int      v = vn_plan_find(s->plan, name);
	const vn_node *n = &s->plan->node[s->plan->value[v].node];
	const vn_rope *r = &n->c.rope.rope;
	const int K = (int)s->plan->value[v].size[2], half = r->rotary_dim / 2, row = (int)vn_value_row(&s->plan->value[v]);
	const int rows = (int)(x->value[v].n / (size_t)row);
	double    worst = 0.0, af;

	CU_ASSERT_FATAL(rows > 0 && x->value[n->in[0]].n == x->value[v].n);
	for (int t = 0; t < rows; t++)
		for (int h = 0; h < row; h += K)
			for (int i = 0; i < half; i++) {
				const float *in = x->value[n->in[0]].x + t * row + h, *out = x->value[v].x + t * row + h;
				const double a = angle(r, i, past + t, past + rows, &af), c = cos(a) * af, sn = sin(a) * af;
				worst = fmax(worst, fabs((double)out[i] - (in[i] * c - in[i + half] * sn)));
				worst = fmax(worst, fabs((double)out[i + half] - (in[i + half] * c + in[i] * sn)));
			}
	return worst;
}

static void both_calls(const subject *s, any e, seen *first, seen *second)
{
	e.calls->reset(e.self);
	run_call(s, e, s->ids, FIRST, "*", first);
	run_call(s, e, s->ids + FIRST, ALL - FIRST, "*", second);
}

static void length_decides(vn_rope_type type)
{
	subject s;
	depend_on_length(&s, type);
	const int logits = vn_plan_find(s.plan, "logits"), k = vn_plan_find(s.plan, "layer0.k_rope"),
			  cache = vn_plan_find(s.plan, "layer0.k_cache");
	any    e = open_engine(s.plan, s.weights, IN_F32), fresh = open_engine(s.plan, s.weights, IN_F32);
	seen   a = see_nothing(s.plan), b = see_nothing(s.plan), c = see_nothing(s.plan), d = see_nothing(s.plan);
	double worst = 0.0, far = 0.0;

	/* up to that length: as any other RoPE */
	run_call(&s, e, s.ids, MADE_FOR, "logits", &c);
	e.calls->reset(e.self);
	for (int t = 0; t < MADE_FOR; t++) {
		run_call(&s, e, s.ids + t, 1, "logits", &d);
		worst = fmax(worst, gap(row_of(&c, logits, t), row_of(&d, logits, 0), s.plan->vocab));
	}
	CU_ASSERT(worst <= 3e-6);

	/* beyond: each call by its own length; cached keys stay as they were */
	both_calls(&s, e, &a, &b);
	CU_ASSERT(rotation_error(&s, &a, "layer0.q_rope", 0) <= 1e-4);
	CU_ASSERT(rotation_error(&s, &a, "layer0.k_rope", 0) <= 1e-4);
	CU_ASSERT(rotation_error(&s, &b, "layer0.q_rope", FIRST) <= 1e-4);
	CU_ASSERT(rotation_error(&s, &b, "layer0.k_rope", FIRST) <= 1e-4);
	CU_ASSERT_EQUAL_FATAL(b.value[cache].n, a.value[k].n + b.value[k].n);
	CU_ASSERT_EQUAL(memcmp(b.value[cache].x, a.value[k].x, a.value[k].n * sizeof(float)), 0);
	CU_ASSERT_EQUAL(memcmp(b.value[cache].x + a.value[k].n, b.value[k].x, b.value[k].n * sizeof(float)), 0);

	/* so one prefill of all is another computation */
	e.calls->reset(e.self);
	run_call(&s, e, s.ids, ALL, "*", &c);
	CU_ASSERT(rotation_error(&s, &c, "layer0.k_rope", 0) <= 1e-4);
	for (int t = FIRST; t < ALL; t++)
		far = fmax(far, gap(row_of(&c, logits, t), row_of(&b, logits, t - FIRST), s.plan->vocab));
	CU_ASSERT(far > 1e-3);

	/* equal calls give equal bits after another prompt */
	both_calls(&s, fresh, &c, &d);
	CU_ASSERT_EQUAL(differing(&s, &b, &d), 0);
	both_calls(&s, e, &a, &b);
	CU_ASSERT_EQUAL(differing(&s, &a, &c) + differing(&s, &b, &d), 0);
	printf("up to there %.2g, beyond %.2g ", worst, far);
	forget(&a), forget(&b), forget(&c), forget(&d);
	e.calls->destroy(e.self), fresh.calls->destroy(fresh.self);
	vn_plan_destroy(s.plan);
}

static void dynamic_rope_rotates_each_call_by_its_own_length(void)
{
	length_decides(VN_ROPE_DYNAMIC);
}
static void longrope_rotates_each_call_by_its_own_length(void)
{
	length_decides(VN_ROPE_LONGROPE);
}

#define ROPE_INVARIANTS \
	{ "dynamic RoPE rotates each call by its own length", dynamic_rope_rotates_each_call_by_its_own_length }, \
	{ \
		"longrope rotates each call by its own length", longrope_rotates_each_call_by_its_own_length \
	}
