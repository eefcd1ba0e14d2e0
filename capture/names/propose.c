/* propose.c: families of names become rules; see propose.h. */
#include "capture/names/propose_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors -------------------------------------------------------------------------------- */

VN_ORDER_BY(by_name_then_step, vn_tensor_name, strcmp(x->name, y->name), VN_ORDER(x->step, y->step))

/* Lists each name once, with its first tensor. */
static void list_names(vn_proposer *j)
{
	const int n = vn_recording_count(j->r);
	int       kept = 0;
	j->named = vn_alloc_zero((size_t)n, sizeof *j->named);
	for (int i = 0; i < n; i++) {
		const vn_entry *e = vn_recording_entry(j->r, i);
		j->named[i] = (vn_tensor_name) { .name = e->name, .entry = i, .step = e->step };
	}
	qsort(j->named, (size_t)n, sizeof *j->named, by_name_then_step);
	for (int i = 0; i < n; i++)
		if (!kept || strcmp(j->named[kept - 1].name, j->named[i].name) != 0)
			j->named[kept++] = j->named[i];
	j->n_named = kept;
}

static vn_status measure_all(vn_proposer *j)
{
	enum { MOST_PAIRS = 200000000 }; /* a minute */
	const vn_step *step;
	const int      n = vn_recording_steps(j->r, &step);
	vn_status      st = VN_OK;
	for (int s = 0; !st && s < n; s++) {
		bool needed = false;
		for (int i = 0; i < j->n_named && !needed; i++)
			needed = j->named[i].step == step[s].number;
		if (needed)
			st = vn_spots_add(&j->places, &step[s], j->err);
	}
	if (!st && j->places.n == 0)
		st = vn_fail(j->err, VN_ERR_MISMATCH, "%s: has no checkpoint in a step with the same tokens as %s",
		             vn_recording_path(j->like), vn_recording_path(j->r));
	if (!st && (int64_t)j->places.n * j->n_named > MOST_PAIRS)
		st = vn_fail(
			j->err, VN_ERR_UNSUPPORTED,
			"%s: %d names and %d checkpoints are too many to compare each with each: --like a recording of some "
			"layers",
			vn_recording_path(j->r), j->n_named, j->places.n);
	if (!st)
		vn_spots_sort(&j->places);
	for (int i = 0; !st && i < j->n_named; i++)
		st = vn_tensor_name_measure(&j->places, j->r, &j->named[i], j->err);
	return st;
}

/* ---- the proposal --------------------------------------------------------------------------- */

static void set_names(const vn_proposer *j, const vn_chosen_rule *c, vn_proposed_rule *to)
{
	const vn_name_family *f = &j->family[c->family];
	const int             layer = f->member[0].n >= 0 ? -2 : c->e.to.add;
	char                  name[2 * VN_NAME_MAX];
	snprintf(to->from, sizeof to->from, "%s", f->from);
	if (c->ignored)
		return;
	snprintf(to->axes, sizeof to->axes, "%s", c->layout);
	vn_propose_target_name(c->e.to.point, layer, c->e.to.add, name);
	const vn_fused *fused = c->e.to.point >= VN_N_POINTS ? &vn_fused_of[c->e.to.point - VN_N_POINTS] : NULL;
	if (!fused)
		snprintf(to->to, sizeof to->to, "%.*s", VN_NAME_MAX - 1, name);
	if (c->e.to.point == VN_POINT_C_ATTN && !vn_propose_has_parts(j, c, &vn_fused_of[0]))
		fused = &vn_fused_of[0];
	for (int i = 0; fused && i < fused->n; i++) {
		vn_propose_target_name((int)fused->part[i], layer, c->e.to.add, name);
		snprintf(to->parts[to->n_parts++], sizeof to->parts[0], "%.*s", VN_NAME_MAX - 1, name);
	}
	if (fused)
		snprintf(to->along, sizeof to->along, "%s", fused->along);
}

VN_ORDER_BY(by_order, vn_proposed_rule, VN_ORDER(x->order, y->order), strcmp(x->from, y->from))

static int order_of(const vn_proposer *j, const vn_chosen_rule *c)
{
	const vn_name_family *f = &j->family[c->family];
	for (int i = 0; !c->ignored && i < f->n; i++) {
		const int place = vn_propose_place_of(j, &f->member[i], c->e.to);
		if (place >= 0)
			return 4 * j->places.place[place].order + 2 + c->copy;
	}
	return 0;
}

static void write_rules(vn_proposer *j)
{
	j->out->rule = vn_alloc_zero((size_t)j->n_rules, sizeof *j->out->rule);
	for (int k = 0; k < j->n_rules; k++) {
		const vn_chosen_rule *c = &j->rule[k];
		vn_proposed_rule     *to = &j->out->rule[j->out->n++];
		set_names(j, c, to);
		to->copy = c->copy && !c->other_layout;
		to->fallback = c->other_layout;
		to->by_shape = c->by_shape;
		to->confirmed = c->e.count[VN_MEMBER_CONFIRMED];
		to->likely = c->e.count[VN_MEMBER_LIKELY];
		to->against = c->e.count[VN_MEMBER_AGAINST];
		to->n = c->ignored ? 1 : j->family[c->family].n - c->e.count[VN_MEMBER_OUT];
		to->worst = c->e.worst;
		to->next = c->e.next;
		to->order = order_of(j, c);
		if (c->outside) {
			const int family = order_of(j, &j->rule[c->outside - 1]) - 1;
			to->order = family < to->order || c->ignored ? family : to->order;
		}
	}
	qsort(j->out->rule, (size_t)j->out->n, sizeof *j->out->rule, by_order);
}

static int own_entry(const vn_proposer *j, int entry)
{
	const int same = vn_recording_entry(j->like, entry)->same_as;
	return same >= 0 ? same : entry;
}

/* A product that is a checkpoint, and also cut into its parts. */
static void mark_parts(const vn_proposer *j, const vn_chosen_rule *c, bool *has)
{
	const vn_name_family *f = &j->family[c->family];
	char                  name[VN_NAME_MAX];
	for (int i = 0; c->e.to.point == VN_POINT_C_ATTN && i < f->n; i++)
		for (int k = 0; k < vn_fused_of[0].n; k++) {
			snprintf(name, sizeof name, "layer%d.%s", f->member[i].n < 0 ? c->e.to.add : f->member[i].n + c->e.to.add,
			         vn_point_get(vn_fused_of[0].part[k])->name);
			const int entry = vn_recording_find(j->like, j->named[f->member[i].named].step, name);
			if (entry >= 0)
				has[own_entry(j, entry)] = true;
		}
}

static void list_rest(vn_proposer *j)
{
	bool *has = vn_alloc_zero((size_t)vn_recording_count(j->like), sizeof *has);
	for (int i = 0; i < j->places.n; i++)
		for (int k = 0; j->claimed[i] >= 0 && k < j->places.place[i].n_entries; k++)
			has[own_entry(j, j->places.place[i].entry[k])] = true;
	for (int k = 0; k < j->n_rules; k++)
		mark_parts(j, &j->rule[k], has);
	for (int i = 0; i < j->n_named; i++)
		if (j->owner[i] < 0)
			vn_propose_add_line(&j->out->left, &j->out->n_left, "%s", j->named[i].name);
	for (int e = 0; e < vn_recording_count(j->like) && vn_recording_entry(j->like, e)->step == 0; e++)
		if (!has[own_entry(j, e)])
			vn_propose_add_line(&j->out->absent, &j->out->n_absent, "%s", vn_recording_entry(j->like, e)->name);
	free(has);
	j->out->names = j->n_named;
}

vn_status vn_propose(vn_recording *r, vn_recording *like, vn_proposal *p, vn_error *err)
{
	vn_proposer j = { .r = r, .like = like, .out = p, .err = err, .places = { .like = like } };
	vn_status   st;
	*p = (vn_proposal) { .n = 0 };
	list_names(&j);
	if (!(st = measure_all(&j))) {
		j.family = vn_families_of(j.named, j.n_named, &j.n_families);
		j.add = vn_propose_choose_add(&j);
		vn_propose_make_rules(&j);
		vn_propose_split_outside(&j);
		vn_propose_split_families(&j);
		vn_propose_match_rest(&j);
		vn_propose_match_shapes(&j);
		vn_propose_report_members(&j);
		if (!(st = vn_propose_report_steps(&j)) && !(st = vn_propose_report_reordered(&j))) {
			write_rules(&j);
			list_rest(&j);
		}
	}
	vn_spots_finish(&j.places);
	vn_families_free(j.family, j.n_families);
	free(j.named);
	free(j.rule);
	free(j.claimed);
	free(j.owner);
	if (st)
		vn_proposal_finish(p);
	return st;
}

static void free_lines(char **list, int n)
{
	for (int i = 0; i < n; i++)
		free(list[i]);
	free(list);
}

void vn_proposal_finish(vn_proposal *p)
{
	free(p->rule);
	free_lines(p->report, p->n_reports);
	free_lines(p->left, p->n_left);
	free_lines(p->absent, p->n_absent);
	*p = (vn_proposal) { .n = 0 };
}
