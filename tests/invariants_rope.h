/* invariants_rope.h: the exceptions of models.md 7.4: a RoPE that depends on the length of the
 * sequence. Cached keys keep the rotation of their own call, whose length decides the frequencies.
 * So beyond the length that the model was made for, a prefill and single steps are different
 * computations, and only equal calls give equal numbers. */
#ifndef VN_TESTS_INVARIANTS_ROPE_H
#define VN_TESTS_INVARIANTS_ROPE_H

#include "tests/invariants.h"

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
static double turned_wrong(const subject *s, const seen *x, const char *name, int past)
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
	any      e = open_engine(s.plan, s.weights, IN_F32), fresh = open_engine(s.plan, s.weights, IN_F32);
	seen     a = see_nothing(s.plan), b = see_nothing(s.plan), c = see_nothing(s.plan), d = see_nothing(s.plan);
	double   worst = 0.0, far = 0.0;
	vn_error err = { "" };

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
	CU_ASSERT(turned_wrong(&s, &a, "layer0.q_rope", 0) <= 1e-4);
	CU_ASSERT(turned_wrong(&s, &a, "layer0.k_rope", 0) <= 1e-4);
	CU_ASSERT(turned_wrong(&s, &b, "layer0.q_rope", FIRST) <= 1e-4);
	CU_ASSERT(turned_wrong(&s, &b, "layer0.k_rope", FIRST) <= 1e-4);
	CU_ASSERT_EQUAL_FATAL(b.value[cache].n, a.value[k].n + b.value[k].n);
	CU_ASSERT_EQUAL(memcmp(b.value[cache].x, a.value[k].x, a.value[k].n * sizeof(float)), 0);
	CU_ASSERT_EQUAL(memcmp(b.value[cache].x + a.value[k].n, b.value[k].x, b.value[k].n * sizeof(float)), 0);

	/* so one prefill of all is another computation */
	e.calls->reset(e.self);
	run_call(&s, e, s.ids, ALL, "*", &c);
	CU_ASSERT(turned_wrong(&s, &c, "layer0.k_rope", 0) <= 1e-4);
	for (int t = FIRST; t < ALL; t++)
		far = fmax(far, gap(row_of(&c, logits, t), row_of(&b, logits, t - FIRST), s.plan->vocab));
	CU_ASSERT(far > 1e-3);

	/* equal calls give equal bits after another prompt or a rewind */
	both_calls(&s, fresh, &c, &d);
	CU_ASSERT_EQUAL(differing(&s, &b, &d), 0);
	both_calls(&s, e, &a, &b);
	CU_ASSERT_EQUAL(differing(&s, &a, &c) + differing(&s, &b, &d), 0);
	must(e.calls->rewind(e.self, FIRST, &err), &err);
	run_call(&s, e, s.other, 1, "*", &b);
	fresh.calls->reset(fresh.self);
	run_call(&s, fresh, s.ids, FIRST, "*", &c);
	run_call(&s, fresh, s.other, 1, "*", &d);
	CU_ASSERT_EQUAL(differing(&s, &b, &d), 0);

	printf("up to there %.2g, beyond %.2g ", worst, far);
	forget(&a), forget(&b), forget(&c), forget(&d);
	e.calls->destroy(e.self), fresh.calls->destroy(fresh.self);
	vn_plan_destroy(s.plan);
}

static void dynamic_rope_turns_each_call_by_its_own_length(void)
{
	length_decides(VN_ROPE_DYNAMIC);
}
static void longrope_turns_each_call_by_its_own_length(void)
{
	length_decides(VN_ROPE_LONGROPE);
}

#define ROPE_INVARIANTS \
	{ "dynamic RoPE turns each call by its own length", dynamic_rope_turns_each_call_by_its_own_length }, \
	{ \
		"longrope turns each call by its own length", longrope_turns_each_call_by_its_own_length \
	}

#endif
