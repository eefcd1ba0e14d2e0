/* propose.c: families of names become rules; see propose.h. */
#include "capture/names/propose_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/say.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is there a sign that the run is faulty: a tensor that is not near the place of its rule, or
 * nothing near the end of the model? */
static bool looks_faulty(const vn_proposer *j)
{
	int last = -1;
	for (int k = 0; k < j->n_rules; k++)
		if (!j->rule[k].ignored && (j->rule[k].e.count[VN_MEMBER_SILENT] || j->rule[k].e.count[VN_MEMBER_LIKELY]))
			return true;
	for (int i = 0; i < j->places.n; i++)
		if (j->claimed[i] >= 0 && j->places.place[i].layer > last)
			last = j->places.place[i].layer;
	return last < vn_recording_layers(j->like) - 1;
}

/* A family without a rule, and a target whose places nothing has. */
typedef struct rest_pair {
	int         family;
	vn_evidence e;
	double      mean; /* distance */
} rest_pair;

VN_ORDER_BY(by_mean, rest_pair, VN_ORDER(x->mean, y->mean))

static bool is_free(const vn_proposer *j, const vn_name_family *f, vn_target to)
{
	int free = 0;
	for (int i = 0; i < f->n; i++) {
		const int place = vn_propose_place_of(j, &f->member[i], to);
		if (j->owner[f->member[i].named] >= 0 || (place >= 0 && j->claimed[place] >= 0))
			return false;
		free += place >= 0;
	}
	return free == f->n;
}

static void list_pairings(const vn_proposer *j, rest_pair **list, int *n)
{
	for (int f = 0; f < j->n_families; f++) {
		const vn_name_family *family = &j->family[f];
		for (int point = 0; point < VN_N_POINTS + VN_FUSED; point++) {
			const vn_target to = { point, family->member[0].n < 0 ? -1 : j->add };
			if (vn_words_contradict(family->words, point) || !is_free(j, family, to))
				continue;
			const vn_evidence e = vn_propose_weigh(j, family, to);
			if (!(e.sum < VN_NEAR_PERHAPS * family->n))
				continue;
			*list = vn_alloc_grown(*list, (size_t)*n, sizeof **list);
			(*list)[(*n)++] = (rest_pair) { f, e, e.sum / family->n };
		}
	}
}

/* Are these two families at the same distance from one target? Then they have the same numbers. */
static bool are_twins(const rest_pair *a, const rest_pair *b)
{
	return a->e.to.point == b->e.to.point && fabs(a->mean - b->mean) < 1e-9;
}

/* Is a pair nearer by a fifth than all others of its family, and of its target? */
static bool stands_out(const rest_pair *list, int n, int i)
{
	for (int k = 0; k < n; k++)
		if (k != i && (list[k].family == list[i].family || list[k].e.to.point == list[i].e.to.point) &&
		    !are_twins(&list[k], &list[i]) && list[k].mean < 1.2 * list[i].mean)
			return false;
	return true;
}

/* Downstream of a fault tensors are far from their places, and may be as near to another: what is
 * left of the families goes to what is left of the places, if that is clear. */
static void match_rest(vn_proposer *j)
{
	bool more = looks_faulty(j);
	while (more) {
		VN_FREED rest_pair *list = NULL;
		int                 n = 0, best = -1;
		list_pairings(j, &list, &n);
		if (n)
			qsort(list, (size_t)n, sizeof *list, by_mean);
		for (int i = 0; best < 0 && i < n; i++)
			best = stands_out(list, n, i) ? i : -1;
		more = best >= 0;
		const int before = j->n_rules;
		for (int i = 0; more && i < n; i++)
			if (are_twins(&list[i], &list[best])) {
				vn_chosen_rule c = { .family = list[i].family, .e = list[i].e };
				vn_propose_accept_rule(j, &c);
			}
		more = more && j->n_rules > before;
	}
}

/* Is this the only tensor without a rule that has the shape of the place? */
static int only_tensor(const vn_proposer *j, int place, int *layout)
{
	const vn_spot *p = &j->places.place[place];
	char           text[VN_LAYOUT_DIMS];
	int            found = -1;
	*layout = 0;
	for (int i = 0; i < j->n_named; i++) {
		const vn_entry *e = vn_recording_entry(j->r, j->named[i].entry);
		if (j->owner[i] >= 0 || e->dtype == VN_I32 || e->step != p->step ||
		    !vn_kind_layout(&j->places.kind[p->kind], &e->shape, 0, text))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

/* Downstream of a fault logits may be near to nothing, but nothing else has their shape. */
static void match_shapes(vn_proposer *j)
{
	for (int i = 0; i < j->places.n; i++) {
		const vn_spot      *p = &j->places.place[i];
		const vn_spot_kind *k = &j->places.kind[p->kind];
		int                 layout;
		if (p->layer >= 0 || j->claimed[i] >= 0 || k->n_places != 1)
			continue;
		const int named = only_tensor(j, i, &layout);
		int       family = 0;
		while (named >= 0 && family < j->n_families &&
		       !(j->family[family].n == 1 && j->family[family].member[0].named == named))
			family++;
		if (named < 0 || family == j->n_families || vn_words_contradict(j->family[family].words, p->point))
			continue;
		vn_chosen_rule *c = &j->rule[j->n_rules];
		*c = (vn_chosen_rule) { .family = family, .by_shape = true };
		c->e = vn_propose_weigh(j, &j->family[family], (vn_target) { p->point, p->layer });
		vn_kind_layout(k, &vn_recording_entry(j->r, j->named[named].entry)->shape, layout, c->layout);
		j->owner[named] = j->claimed[i] = j->n_rules++;
	}
}

/* "4 of 4 confirmed (error 3e-07, next 0.91)" */
static const char *evidence_text(const vn_proposed_rule *r, char text[160])
{
	int n = 0;
	if (r->by_shape)
		return snprintf(text, 160, "by its shape alone"), text;
	n += snprintf(text, 160, "%s%d of %d confirmed", r->by_words ? "by the words of the name, " : "", r->confirmed,
	              r->n);
	if (r->confirmed)
		n += snprintf(text + n, (size_t)(160 - n), ", distance %.1g, the next %.1g", r->worst < 0 ? 0 : r->worst,
		              r->next);
	if (r->likely)
		n += snprintf(text + n, (size_t)(160 - n), ", %d likely", r->likely);
	if (r->against)
		snprintf(text + n, (size_t)(160 - n), ", %d elsewhere", r->against);
	return text;
}

static void write_rule(FILE *to, const vn_proposed_rule *r)
{
	char text[160];
	vn_say(to, "  - { from: \"%s\", ", r->from);
	if (*r->to)
		vn_say(to, "to: \"%s\", ", r->to);
	for (int i = 0; i < r->n_parts; i++)
		vn_say(to, "%s\"%s\"%s", i ? ", " : "parts: [", r->parts[i], i == r->n_parts - 1 ? "], " : "");
	if (r->n_parts)
		vn_say(to, "along: %s, ", r->along);
	if (r->stacked)
		vn_say(to, "each: layer%s, ", r->beyond ? ", in_model: true" : "");
	if (*r->axes)
		vn_say(to, "axes: \"%s\"%s }  # %s\n", r->axes,
		       r->copy       ? ", copy: true"
		       : r->fallback ? ", fallback: true"
		                     : "",
		       evidence_text(r, text));
	else
		vn_say(to, "ignore: true }\n");
}

void vn_proposal_write(const vn_proposal *p, const char *source, FILE *to)
{
	vn_say(to, "# Proposed by the numbers of %s.\nversion: 1\nname: proposed\nrules:\n", source);
	for (int i = 0; i < p->n; i++)
		write_rule(to, &p->rule[i]);
	if (!p->n)
		vn_say(to, "  []\n");
}

static void print_list(FILE *to, const char *what, char *const *list, int n)
{
	enum { SHOWN = 6 };
	if (!n)
		return;
	vn_say(to, "%s: %d: ", what, n);
	for (int i = 0; i < n && i < SHOWN; i++)
		vn_say(to, "%s%s", i ? ", " : "", list[i]);
	vn_say(to, "%s\n", n > SHOWN ? "..." : "");
}

void vn_proposal_print(const vn_proposal *p, FILE *to)
{
	char text[160];
	vn_say(to, "proposed by the numbers: %d rule%s\n", p->n, p->n == 1 ? "" : "s");
	for (int i = 0; i < p->n; i++) {
		const vn_proposed_rule *r = &p->rule[i];
		vn_say(to, "  %-44s ", r->from);
		if (!*r->axes) {
			vn_say(to, "ignored\n");
			continue;
		}
		for (int k = 0; !*r->to && k < r->n_parts; k++)
			vn_say(to, "%s%s", k ? " + " : "", r->parts[k]);
		if (*r->to)
			vn_say(to, "%-22s", r->to);
		vn_say(to, "  '%s'  %s%s\n", r->axes, r->copy || r->fallback ? "copy, " : "", evidence_text(r, text));
	}
	print_list(to, "no counterpart, left out", p->left, p->n_left);
	print_list(to, "checkpoints without a tensor", p->absent, p->n_absent);
	for (int i = 0; i < p->n_reports; i++)
		vn_say(to, "contradiction: %s\n", p->report[i]);
}

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
	const int             layer = f->member[0].n >= 0 || c->stack ? -2 : c->e.to.add;
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
		to->by_words = c->by_words;
		to->confirmed = c->e.count[VN_MEMBER_CONFIRMED];
		to->likely = c->e.count[VN_MEMBER_LIKELY];
		to->against = c->e.count[VN_MEMBER_AGAINST];
		to->n = c->ignored ? 1 : (c->stack ? c->stack : j->family[c->family].n) - c->e.count[VN_MEMBER_OUT];
		to->stacked = c->stack > 0;
		to->beyond = c->e.count[VN_MEMBER_OUT] > 0;
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
		vn_propose_by_words(&j);
		match_rest(&j);
		match_shapes(&j);
		vn_propose_report_members(&j);
		if (!(st = vn_propose_stacked(&j)) && !(st = vn_propose_report_steps(&j)) &&
		    !(st = vn_propose_report_reordered(&j))) {
			write_rules(&j);
			list_rest(&j);
		}
	}
	vn_spots_finish(&j.places);
	vn_families_free(j.family, j.n_families);
	VN_FREE(j.named, j.rule, j.claimed, j.owner);
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
