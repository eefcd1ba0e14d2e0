/* conclude.c: what follows from wrong results: see judge_results.h. */
#include "compare/replayed/judge_results.h"

#include "libref/base/alloc.h"
#include "libref/base/intern.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A wrong result, or a tensor in its region, which is charged with it. */
typedef struct charged_tensor {
	const char *name; /* kept */
	int         step, result;
} charged_tensor;

typedef struct charged_list {
	charged_tensor *of;
	size_t          n;
} charged_list;

/* Returns the name in "step.2/NAME" or "NAME", and sets *step if it says one. */
static const char *name_and_step(const json_t *text, int *step)
{
	const char *name = json_string_value(text);
	int         said, chars = 0;

	if (sscanf(name, "step.%d/%n", &said, &chars) != 1 || chars == 0)
		return name;
	*step = said;
	return name + chars;
}

static int find_charged(const charged_list *l, int step, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->of[i].step == step && strcmp(l->of[i].name, name) == 0)
			return l->of[i].result;
	return -1;
}

static void add_charged(charged_list *l, const char *name, int step, int result)
{
	l->of = vn_alloc_grown(l->of, l->n, sizeof *l->of);
	l->of[l->n++] = (charged_tensor) { vn_alloc_check(vn_intern(name)), step, result };
}

/* ---- the second round ------------------------------------------------------------------------ */

/* Is result i wrong if the wrong ones before it are computed, not taken? A result without numbers
 * of that round is as it was, or was itself taken out. */
static bool remains_wrong(const vn_replayed_file *f, const vn_replayed_findings *j, int i)
{
	return j->of[i].again ? j->of[i].wrong_again : j->of[i].wrong && vn_replayed_is_result(f->result[i].name);
}

/* Which results are still accused: those in the region of one that remains wrong, and that one if
 * it was wrong. accused: (n). */
static void accuse(const vn_replayed_file *f, const vn_replayed_findings *j, bool *accused)
{
	for (int i = 0; i < j->n; i++) {
		if (!remains_wrong(f, j, i))
			continue;
		json_t *line = vn_alloc_check(vn_replayed_line(f, i)), *region = vn_json_field(line, "again_region");
		accused[i] = j->of[i].wrong;
		for (int k = 0; !region && k < j->n; k++)
			accused[k] = true; /* any of them */
		for (size_t k = 0; k < json_array_size(region); k++) {
			int         step = f->result[i].step;
			const char *name = name_and_step(json_array_get(region, k), &step);
			const int   of = vn_replayed_find(f, step, name);
			if (of >= 0)
				accused[of] = true;
		}
		json_decref(line);
	}
}

static void clear_other_orders(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j)
{
	bool *accused = vn_alloc_zero((size_t)j->n, sizeof *accused);

	accuse(o->replayed, j, accused);
	for (int i = 0; i < j->n; i++) {
		if (!j->of[i].wrong || accused[i])
			continue;
		all->of[j->of[i].checkpoint].replay.another_order = true;
		j->of[i].wrong = false;
	}
	free(accused);
}

/* ---- regions --------------------------------------------------------------------------------- */

/* The root of the sum of the squared relative errors of what a region was given; NaN: not known. */
static double error_of_inputs(const vn_opened *o, const vn_checkpoints *all, const vn_replayed_findings *j, int step,
                              const json_t *reads)
{
	double sum = 0;
	int    known = 0;

	for (size_t i = 0; i < json_array_size(reads); i++) {
		int         at = step;
		const char *name = name_and_step(json_array_get(reads, i), &at);
		const int   of = vn_replayed_find(o->replayed, at, name);
		const int   p = of >= 0 ? j->of[of].checkpoint : -1;
		if (p < 0 || !all->of[p].m.n)
			continue;
		sum += all->of[p].m.value[VN_M_NMSE];
		known++;
	}
	return known ? sqrt(sum) : (double)NAN;
}

static void set_region(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j, int i, charged_list *charged)
{
	const vn_judged_result *r = &o->replayed->result[i];
	vn_checkpoint          *p = &all->of[j->of[i].checkpoint];
	json_t                 *line = vn_alloc_check(vn_replayed_line(o->replayed, i));
	const json_t           *region = vn_json_field(line, "region");
	const double            in = error_of_inputs(o, all, j, r->step, vn_json_field(line, "reads"));

	p->replay.span = r->span ? r->span : 1 + (int)json_array_size(region);
	if (p->replay.span > VN_SPAN_CLEARED)
		p->replay.slack = vn_local_slack(p->replay.independent_numbers); /* its floor is measured */
	p->replay.gain = in > 0 ? sqrt(p->replay.inherited) / in : (double)NAN;
	for (size_t k = 0; j->of[i].wrong && k < json_array_size(region); k++) {
		int         step = r->step;
		const char *name = name_and_step(json_array_get(region, k), &step);
		const int   before = find_charged(charged, step, name);
		if (before >= 0 && p->replay.charged_to < 0)
			p->replay.charged_to = j->of[before].checkpoint;
	}
	for (size_t k = 0; j->of[i].wrong && p->replay.charged_to < 0 && k < json_array_size(region); k++) {
		int         step = r->step;
		const char *name = name_and_step(json_array_get(region, k), &step);
		add_charged(charged, name, step, i);
	}
	if (j->of[i].wrong && p->replay.charged_to < 0) /* where it was computed for others, not given to them */
		add_charged(charged, r->name, r->step, i);
	json_decref(line);
}

void vn_replayed_conclude(const vn_opened *o, vn_checkpoints *all, vn_replayed_findings *j)
{
	charged_list charged = { 0 };

	if (o->replayed->again)
		clear_other_orders(o, all, j);
	for (int i = 0; i < j->n; i++)
		if (j->of[i].checkpoint >= 0)
			set_region(o, all, j, i, &charged);
	free(charged.of);
}
