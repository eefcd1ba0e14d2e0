/* floor_near.c: rejects a floor that is far from the floors of neighbouring operations.
 *
 * A number format moves a value about as far as its inputs and its readers: errors of a sharp
 * softmax are large, and so are those of the context after it. A tensor that is wrong in only one
 * of the two files (captured at the wrong place, changed afterwards) is far from the other file,
 * and neither its inputs nor its readers are.
 */
#include "compare/floor/floor_check.h"
#include "compare/comparison/checkpoint.h"
#include "compare/judge/localise.h"

#include "libref/plan/point.h"
#include "libref/base/alloc.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A floor may exceed all floors of its inputs and of the operations that read it by at most this
 * factor, in nmse and in worst-token nmse. Measured on correct runs: up to 13. */
#define NEIGHBOURS 100.0

enum { N_KINDS = 2 };

static const vn_metric kind[N_KINDS] = { VN_M_NMSE, VN_M_WORST_TOKEN_NMSE };

/* By what factor a floor may exceed those around it. The floor of few numbers varies by chance. An
 * error in a score becomes a factor in a probability, and where the values are alike, as for one
 * repeated token, none of it reaches the context: a ratio of 45 was measured there, without an
 * upper bound. */
static double allowed_floor(const vn_opened *o, const vn_checkpoint *p)
{
	const bool probs = vn_entry_point(vn_recording_entry(o->ref, p->ref)) == vn_point_get(VN_POINT_ATTN_PROBS);
	return NEIGHBOURS * (p->m.n < VN_SMALL_SAMPLE ? 4 : 1) * (probs ? 100 : 1);
}

typedef struct around {
	double most[N_KINDS];
	int    n;
} around;

static void add_neighbour(around *a, const vn_checkpoint *other)
{
	a->n++;
	for (int k = 0; k < N_KINDS; k++)
		a->most[k] = fmax(a->most[k], other->floor[kind[k]]);
}

static void look_around(const vn_floor_parts *f, const vn_localised *here, around *near, int *input)
{
	for (int i = 0; i < f->all->n; i++) {
		const vn_checkpoint *p = &f->all->of[i];
		const int n = p->has_floor && p->value >= 0 ? vn_inputs_of(f->o, f->all, here, i, input, f->all->n) : 0;
		for (int k = 0; k < n; k++) {
			const vn_checkpoint *q = &f->all->of[input[k]];
			if (!q->has_floor || input[k] == i)
				continue;
			add_neighbour(&near[i], q);
			add_neighbour(&near[input[k]], p);
		}
	}
}

void vn_floor_check_near(const vn_floor_parts *f, double rounding)
{
	vn_localised here = { 0 };

	if (!f->o->plan)
		return;
	vn_graph_build(f->o, f->all, &here);
	if (!here.graph)
		return;
	around *near = vn_alloc_zero((size_t)f->all->n, sizeof *near);
	int    *input = vn_alloc((size_t)f->all->n, sizeof *input);
	look_around(f, &here, near, input);
	for (int i = 0; i < f->all->n; i++) {
		vn_checkpoint *p = &f->all->of[i];
		for (int k = 0; p->has_floor && near[i].n && k < N_KINDS; k++) {
			const double most = fmax(near[i].most[k], rounding);
			if (p->floor[kind[k]] <= allowed_floor(f->o, p) * most)
				continue;
			vn_floor_reject(
				f, p,
				"the floor is not a run of this reference: %s %.3g, but at the neighbouring checkpoints at most %.3g",
				vn_metric_get(kind[k])->name, p->floor[kind[k]], near[i].most[k]);
		}
	}
	free(near);
	free(input);
	vn_localise_drop_graph(&here);
}

void vn_floor_reject(const vn_floor_parts *f, vn_checkpoint *p, const char *format, ...)
{
	char    why[200];
	va_list args;
	f->found->n_invalid++;
	if (f->found->first_invalid < 0)
		f->found->first_invalid = (int)(p - f->all->of);
	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	vn_checkpoint_say(p, "%s", why);
	if (f->o->request.options->allow & VN_ALLOW_FLOOR)
		return;
	p->invalid_floor = true;
	p->has_floor = false;
}
