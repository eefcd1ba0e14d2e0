/* propose_report.c: tensors that contradict their rules. */
#include "capture/names/propose_internal.h"
#include "capture/recording/numbers.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_NUMBERS = 4 << 20 };

/* The smallest and largest numbers of a tensor, and some between: they say nothing of their order.
 * rms 0: no evidence. */
enum { VN_RANK_ENDS = 8 };
typedef struct tensor_ranks {
	int64_t n;
	double  rms;
	float   low[VN_RANK_ENDS], middle[VN_RANK_ENDS], high[VN_RANK_ENDS];
} tensor_ranks;

VN_ORDER_BY(by_value, float, VN_ORDER(*x, *y))

static vn_status ranks_of(vn_recording *r, int entry, tensor_ranks *to, vn_error *err)
{
	const int64_t n = vn_shape_count(&vn_recording_entry(r, entry)->shape);
	double        squares = 0;
	vn_status     st = VN_OK;

	*to = (tensor_ranks) { .n = n };
	if (n < 4 * VN_RANK_ENDS || n > MOST_NUMBERS)
		return VN_OK;
	vn_numbers     *numbers = vn_numbers_open(r, entry, err);
	VN_FREED float *x = vn_alloc((size_t)n, sizeof *x);
	bool            finite = true;
	for (int64_t at = 0; !st && at < n; at += VN_NUMBERS) {
		const size_t m = vn_numbers_left(n, at);
		st = vn_numbers_read(numbers, at, m, err);
		for (size_t i = 0; !st && i < m; i++) {
			x[at + (int64_t)i] = (float)numbers->x[i];
			finite = finite && isfinite(numbers->x[i]);
			squares += numbers->x[i] * numbers->x[i];
		}
	}
	vn_numbers_close(numbers);
	if (!st && finite && squares > 0) {
		qsort(x, (size_t)n, sizeof *x, by_value);
		for (int i = 0; i < VN_RANK_ENDS; i++) {
			to->low[i] = x[i];
			to->high[i] = x[n - 1 - i];
			to->middle[i] = x[n * (i + 1) / (VN_RANK_ENDS + 1)];
		}
		to->rms = sqrt(squares / (double)n);
	}
	return st;
}

/* Of n normal numbers the 16 at the ends are some percent apart, so two other tensors do not agree
 * in all of them to one. */
static bool ranks_same(const tensor_ranks *a, const tensor_ranks *b)
{
	bool same = a->n == b->n && a->rms > 0 && b->rms > 0 && fabs(a->rms - b->rms) <= 0.01 * b->rms;
	for (int i = 0; same && i < VN_RANK_ENDS; i++)
		same = fabsf(a->low[i] - b->low[i]) <= 0.01f * fabsf(b->low[i]) &&
		       fabsf(a->high[i] - b->high[i]) <= 0.01f * fabsf(b->high[i]) &&
		       fabs((double)a->middle[i] - (double)b->middle[i]) <= 0.02 * b->rms;
	return same;
}

/* A tensor in a later step that has the numbers of the step before or after it. */
static vn_status report_step(vn_proposer *j, const vn_chosen_rule *c, const vn_tensor_name *x, int entry, int place)
{
	const vn_entry *e = vn_recording_entry(j->r, entry);
	double          own = 1, beside = 1;
	vn_status st = vn_spot_in_step(&j->places, j->r, entry, &(vn_in_step) { place, e->step, c->layout }, &own, j->err);
	for (int by = -1; !st && own > VN_NEAR_PLACE / 10 && by <= 1; by += 2) {
		st = vn_spot_in_step(&j->places, j->r, entry, &(vn_in_step) { place, e->step + by, c->layout }, &beside,
		                     j->err);
		if (!st && beside <= VN_NEAR_PLACE && beside * VN_NEAR_MARGIN <= own) {
			char says[2 * VN_NAME_MAX];
			vn_propose_place_name(j, place, says);
			vn_propose_add_line(&j->out->report, &j->out->n_reports,
			                    "%s in step %d: its numbers are those of %s in step %d; it is imported in its own step",
			                    x->name, e->step, says, e->step + by);
			return VN_OK;
		}
	}
	return st;
}

vn_status vn_propose_report_steps(vn_proposer *j)
{
	const vn_step *step;
	const int      n = vn_recording_steps(j->r, &step);
	vn_status      st = VN_OK;
	for (int k = 0; !st && k < j->n_rules; k++) {
		const vn_name_family *f = &j->family[j->rule[k].family];
		for (int i = 0; !st && !j->rule[k].ignored && !j->rule[k].stack && i < f->n; i++) {
			const vn_tensor_name *x = &j->named[f->member[i].named];
			const int             place = vn_propose_place_of(j, &f->member[i], j->rule[k].e.to);
			for (int s = 0; !st && place >= 0 && s < n; s++) {
				const int entry = vn_recording_find(j->r, step[s].number, x->name);
				if (entry >= 0 && entry != x->entry)
					st = report_step(j, &j->rule[k], x, entry, place);
			}
		}
	}
	return st;
}

void vn_propose_report_members(vn_proposer *j)
{
	for (int k = 0; k < j->n_rules; k++) {
		const vn_chosen_rule *c = &j->rule[k];
		const vn_name_family *f = &j->family[c->family];
		for (int i = 0; !c->ignored && !c->stack && i < f->n; i++) {
			double own, other;
			char   is[2 * VN_NAME_MAX], says[2 * VN_NAME_MAX];
			if (vn_propose_judge_member(j, &f->member[i], c->e.to, &own, &other) != VN_MEMBER_AGAINST)
				continue;
			const int place = vn_propose_place_of(j, &f->member[i], c->e.to);
			vn_propose_place_name(j, place, says);
			vn_propose_place_name(j, vn_propose_nearest_other(j, &j->named[f->member[i].named], place)->place, is);
			vn_propose_add_line(&j->out->report, &j->out->n_reports,
			                    "%s: its numbers are those of %s; as its rule says, it is imported as %s",
			                    j->named[f->member[i].named].name, is, says);
		}
	}
}

/* Finds the place in the same layer whose numbers this tensor has in another order; -1: none. */
static vn_status find_reordered(vn_proposer *j, const vn_member *m, int *place)
{
	const vn_tensor_name *x = &j->named[m->named];
	const int64_t         n = vn_shape_count(&vn_recording_entry(j->r, x->entry)->shape);
	tensor_ranks          mine, theirs;
	vn_status             st = ranks_of(j->r, x->entry, &mine, j->err);
	*place = -1;
	for (int i = 0; !st && mine.rms > 0 && *place < 0 && i < j->places.n; i++) {
		const vn_spot *p = &j->places.place[i];
		if (p->step != x->step || p->n_entries != 1 || (m->n >= 0 && p->layer != m->n + j->add) ||
		    vn_shape_count(&vn_recording_entry(j->like, p->entry[0])->shape) != n)
			continue;
		if (!(st = ranks_of(j->like, p->entry[0], &theirs, j->err)) && ranks_same(&mine, &theirs))
			*place = i;
	}
	return st;
}

/* Of tensors that are near to nothing: those that are only in another order. */
vn_status vn_propose_report_reordered(vn_proposer *j)
{
	enum { MOST = 64 }; /* tensors that are sorted */
	vn_status st = VN_OK;
	int       n = 0;
	for (int f = 0; !st && f < j->n_families; f++)
		for (int i = 0; !st && n < MOST && i < j->family[f].n; i++) {
			const vn_member      *m = &j->family[f].member[i];
			const vn_tensor_name *x = &j->named[m->named];
			char                  is[2 * VN_NAME_MAX];
			int                   place = -1;
			if (vn_recording_entry(j->r, x->entry)->dtype == VN_I32 ||
			    (x->n_near && x->near[0].distance <= VN_NEAR_PLACE))
				continue;
			n++;
			if ((st = find_reordered(j, m, &place)) || place < 0)
				continue;
			vn_propose_place_name(j, place, is);
			vn_propose_add_line(&j->out->report, &j->out->n_reports, "%s: it has the numbers of %s in another order%s",
			                    x->name, is, j->owner[m->named] < 0 ? ": not mapped" : "");
		}
	return st;
}
