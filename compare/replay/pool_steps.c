/* pool_steps.c: see pool_steps.h. */
#include "compare/replay/pool_steps.h"

#include "compare/replay/local.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <stdlib.h>
#include <string.h>

/* A step of a tensor. */
typedef struct pooled_step {
	vn_checkpoint *p;
	bool           breaks; /* it makes consecutive steps break the limit */
} pooled_step;

static bool is_member(const vn_opened *o, const vn_checkpoint *p)
{
	if (!p->replayed || p->replay.bad || p->replay.not_measured || p->replay.slack > 0 ||
	    p->replay.span > VN_SPAN_CLEARED || p->replay.charged_to >= 0)
		return false;
	const vn_step *s = vn_recording_step(o->ref, p->step);
	return s && s->rows == 1;
}

bool vn_replay_pools_step(const vn_opened *o, const vn_checkpoint *p)
{
	return is_member(o, p) && !(vn_local_ratio(&p->replay) <= VN_LOCAL_LIMIT);
}

VN_ORDER_BY(compare_steps, pooled_step, strcmp(x->p->name, y->p->name), VN_ORDER(x->p->step, y->p->step))

static int compare_ratios(const void *a, const void *b)
{
	const vn_replayed *x = &(*(pooled_step *const *)a)->p->replay, *y = &(*(pooled_step *const *)b)->p->replay;
	const double       p = vn_local_ratio(x), q = vn_local_ratio(y);
	return (p > q) - (p < q);
}

/* Judges n consecutive steps together. The steps with the smallest ratios that stay within the
 * limit do not break it. sorted: (n), scratch. */
static void judge_window(pooled_step *s, int n, pooled_step **sorted)
{
	double local = 0, floor = 0;

	for (int i = 0; i < n; i++) {
		sorted[i] = &s[i];
		local += s[i].p->replay.local;
		floor += s[i].p->replay.floor;
	}
	if (local <= VN_LOCAL_LIMIT * floor)
		return;
	qsort(sorted, (size_t)n, sizeof(pooled_step *), compare_ratios);
	local = floor = 0;
	for (int i = 0; i < n; i++) {
		local += sorted[i]->p->replay.local;
		floor += sorted[i]->p->replay.floor;
		sorted[i]->breaks = sorted[i]->breaks || !(local <= VN_LOCAL_LIMIT * floor);
	}
}

/* A step that is far off by chance stands alone. */
static void narrow_limits(pooled_step *s, int n)
{
	for (int i = 0; i < n; i++)
		if (s[i].breaks && ((i > 0 && s[i - 1].breaks) || (i + 1 < n && s[i + 1].breaks)) && !vn_local_beyond(s[i].p))
			s[i].p->replay.not_widened = true;
}

/* The steps of one tensor: all together, and as few as have the numbers. */
static void judge_tensor(pooled_step *s, int n, pooled_step **sorted)
{
	int64_t numbers = 0;
	int     from = 0;

	for (int to = 0; to < n; to++) {
		numbers += s[to].p->replay.independent_numbers;
		while (numbers - s[from].p->replay.independent_numbers >= 2 * VN_SMALL_SAMPLE)
			numbers -= s[from++].p->replay.independent_numbers;
		if (numbers >= 2 * VN_SMALL_SAMPLE)
			judge_window(s + from, to + 1 - from, sorted);
	}
	if (from == 0 && numbers >= VN_SMALL_SAMPLE)
		judge_window(s, n, sorted);
	narrow_limits(s, n);
}

void vn_replay_pool_steps(const vn_opened *o, vn_checkpoints *all)
{
	const size_t           most = (size_t)all->n;
	VN_FREED pooled_step  *s = vn_alloc(most, sizeof *s);
	VN_FREED pooled_step **sorted = vn_alloc(most, sizeof *sorted);
	int                    n = 0;

	for (int i = 0; i < all->n; i++)
		if (is_member(o, &all->of[i]))
			s[n++] = (pooled_step) { &all->of[i], false };
	if (n)
		qsort(s, (size_t)n, sizeof *s, compare_steps);
	for (int from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(s[to].p->name, s[from].p->name) == 0; to++)
			;
		judge_tensor(s + from, to - from, sorted);
	}
}
