/* propose_rules.c: which families become rules. */
#include "capture/names/propose_internal.h"
#include "capture/recording/numbers.h"

#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Have the two tensors the same numbers in the same order? */
static bool same_numbers(const vn_proposer *j, int a, int b)
{
	const vn_entry   *x = vn_recording_entry(j->r, a), *y = vn_recording_entry(j->r, b);
	vn_numbers_differ d;
	return vn_shape_count(&x->shape) == vn_shape_count(&y->shape) &&
	       !vn_numbers_compare(j->r, a, j->r, b, &d, j->err) && !d.bits;
}

/* Are their samples the same numbers, each in its own layout? */
static bool same_samples(const vn_proposer *j, int a, int b, int place)
{
	VN_FREED vn_tensor_sample *s = vn_alloc(2, sizeof *s);
	const vn_spot_kind        *k = &j->places.kind[j->places.place[place].kind];
	char                       text[2][VN_LAYOUT_DIMS];
	bool                       same = true;
	const int                  named[2] = { a, b };
	for (int i = 0; same && i < 2; i++) {
		const vn_tensor_name *x = &j->named[named[i]];
		int                   near = -1;
		vn_propose_distance_from(j, x, place, &near);
		same = near >= 0 && j->places.place[x->near[near].place].kind == j->places.place[place].kind &&
		       vn_kind_layout(k, &vn_recording_entry(j->r, x->entry)->shape, x->near[near].layout, text[i]) &&
		       !vn_kind_sample(k, j->r, x->entry, (vn_stack_slice) { text[i], 0, 0 }, &s[i], j->err) && s[i].n;
	}
	same = same && memcmp(s[0].x, s[1].x, (size_t)s[0].n * sizeof *s[0].x) == 0;
	return same;
}

static void compare_pair(const vn_proposer *j, int a, int b, int place, vn_likeness *l)
{
	const vn_step *step;
	const int      n = vn_recording_steps(j->r, &step);
	for (int s = 0; s < n && !l->unlike; s++) {
		const int x = vn_recording_find(j->r, step[s].number, j->named[a].name),
				  y = vn_recording_find(j->r, step[s].number, j->named[b].name);
		if (x < 0 || y < 0)
			continue;
		const bool same = same_numbers(j, x, y), moved = !same && s == 0 && same_samples(j, a, b, place);
		l->same += s == 0 && (same || moved);
		l->other_layout += moved;
		if (!same && !moved && !l->other_layout)
			l->unlike = j->named[a].name;
	}
}

/* Compares with the rules that claim the family's places. */
static vn_likeness compare_families(const vn_proposer *j, const vn_chosen_rule *c)
{
	const vn_name_family *f = &j->family[c->family];
	vn_likeness           l = { .owner = -1 }, one;
	for (int i = 0; i < f->n; i++) {
		const int place = vn_propose_place_of(j, &f->member[i], c->e.to), owner = place < 0 ? -1 : j->claimed[place];
		if (owner < 0)
			continue;
		const vn_name_family *g = &j->family[j->rule[owner].family];
		int                   k = 0;
		while (k < g->n && vn_propose_place_of(j, &g->member[k], j->rule[owner].e.to) != place)
			k++;
		if (k == g->n)
			continue;
		one = (vn_likeness) { 0 };
		compare_pair(j, f->member[i].named, g->member[k].named, place, &one);
		l.owner = owner;
		l.same += one.same;
		l.other_layout += one.other_layout;
		l.unlike = l.unlike ? l.unlike : one.unlike;
	}
	return l;
}

/* Reports a family whose numbers are at one place and whose name says another. */
static void report_family(const vn_proposer *j, const vn_name_family *f, const vn_evidence *e, const char *why)
{
	char to[2 * VN_NAME_MAX];
	vn_propose_target_name(e->to.point, f->member[0].n < 0 ? e->to.add : -2, e->to.add, to);
	vn_propose_add_line(&j->out->report, &j->out->n_reports, "%s: its numbers are those of %s in %d of %d tensors, %s",
	                    f->from, to, e->count[VN_MEMBER_CONFIRMED], f->n, why);
}

/* Chooses the layout that most confirmed tensors have. */
static void choose_layout(const vn_proposer *j, vn_chosen_rule *c)
{
	const vn_name_family *f = &j->family[c->family];
	char                  seen[8][VN_LAYOUT_DIMS], text[VN_LAYOUT_DIMS];
	double                weight[8], most = -1;
	int                   n = 0;
	for (int i = 0; i < f->n; i++) {
		const vn_tensor_name *x = &j->named[f->member[i].named];
		const int             place = vn_propose_place_of(j, &f->member[i], c->e.to);
		int                   near = -1, k = 0;
		if (place < 0)
			continue;
		const double d = vn_propose_distance_from(j, x, place, &near);
		if (near < 0 || !vn_kind_layout(&j->places.kind[j->places.place[x->near[near].place].kind],
		                                &vn_recording_entry(j->r, x->entry)->shape, x->near[near].layout, text))
			continue;
		while (k < n && strcmp(seen[k], text) != 0)
			k++;
		if (k == 8)
			continue;
		if (k == n) {
			strcpy(seen[n], text);
			weight[n++] = 0;
		}
		weight[k] += 1 / (d + 1e-6);
	}
	for (int k = 0; k < n; k++)
		if (weight[k] > most) {
			most = weight[k];
			strcpy(c->layout, seen[k]);
		}
}

/* Does a rule have a part of this fused product, in some layer? */
bool vn_propose_has_parts(const vn_proposer *j, const vn_chosen_rule *c, const vn_fused *fused)
{
	const vn_name_family *f = &j->family[c->family];
	for (int i = 0; i < f->n; i++)
		for (int k = 0; k < fused->n; k++) {
			const int place = vn_propose_place_of(j, &f->member[i], (vn_target) { (int)fused->part[k], c->e.to.add });
			if (place >= 0 && j->claimed[place] >= 0)
				return true;
		}
	return false;
}

void vn_propose_take_places(vn_proposer *j, const vn_chosen_rule *c, int at)
{
	const vn_name_family *f = &j->family[c->family];
	for (int i = 0; i < f->n; i++) {
		const int place = vn_propose_place_of(j, &f->member[i], c->e.to);
		if (place < 0)
			continue;
		j->owner[f->member[i].named] = at;
		if (j->claimed[place] < 0)
			j->claimed[place] = at;
	}
	j->rule[at] = *c;
}

void vn_propose_accept_rule(vn_proposer *j, vn_chosen_rule *c)
{
	if (c->e.to.point >= VN_N_POINTS && vn_propose_has_parts(j, c, &vn_fused_of[c->e.to.point - VN_N_POINTS]))
		return;
	const vn_name_family *f = &j->family[c->family];
	const vn_likeness     l = compare_families(j, c);
	if (l.owner >= 0) {
		/* near, but never the same: another tensor, as a product before its bias */
		if (!l.same)
			return;
		if (l.unlike) {
			vn_propose_add_line(&j->out->report, &j->out->n_reports,
			                    "%s: has the numbers of %s in some layers or steps, but %s differs: left out", f->from,
			                    j->family[j->rule[l.owner].family].from, l.unlike);
			return;
		}
		c->copy = true;
		c->other_layout = l.other_layout > 0;
	}
	choose_layout(j, c);
	if (*c->layout)
		vn_propose_take_places(j, c, j->n_rules++);
}

/* A fused product comes behind its parts. */
VN_ORDER_BY(by_evidence, vn_chosen_rule, VN_ORDER(x->e.to.point >= VN_N_POINTS, y->e.to.point >= VN_N_POINTS),
            VN_ORDER(y->e.count[VN_MEMBER_CONFIRMED], x->e.count[VN_MEMBER_CONFIRMED]),
            VN_ORDER(y->e.taste, x->e.taste), VN_ORDER(x->e.sum, y->e.sum), VN_ORDER(x->family, y->family))

/* If nothing fits at the layer that the names say: does another layer's? */
static void look_at_other_layers(const vn_proposer *j, const vn_name_family *f)
{
	for (int k = -2; k <= 2; k++) {
		bool              ambiguous;
		const vn_evidence e = vn_propose_best_target(j, f, k, &ambiguous);
		if (k != j->add && f->member[0].n >= 0 && 2 * e.count[VN_MEMBER_CONFIRMED] >= f->n && f->n > 1) {
			report_family(j, f, &e, "of another layer than its name says: not mapped");
			return;
		}
	}
}

/* If nothing fits what the name says: does something else fit most of its tensors? */
static bool look_past_words(const vn_proposer *j, const vn_name_family *f)
{
	bool           ambiguous;
	vn_name_family silent = *f;
	silent.words = 0;
	const vn_evidence e = vn_propose_best_target(j, &silent, j->add, &ambiguous);
	if (!isfinite(e.sum) || 2 * e.count[VN_MEMBER_CONFIRMED] < f->n || !vn_words_contradict(f->words, e.to.point))
		return false;
	report_family(j, f, &e, "which its name contradicts: not mapped");
	return true;
}

/* Lists the families that may become rules, and reports those that contradict themselves. Returns
 * how many may. */
static int choose_targets(vn_proposer *j, vn_chosen_rule *list)
{
	int n = 0;
	for (int f = 0; f < j->n_families; f++) {
		bool              ambiguous;
		const vn_evidence e = vn_propose_best_target(j, &j->family[f], j->add, &ambiguous);
		if (!isfinite(e.sum) || !vn_propose_is_enough(&e)) {
			if (!look_past_words(j, &j->family[f]))
				look_at_other_layers(j, &j->family[f]);
		} else if (e.blocked) {
			if (e.count[VN_MEMBER_CONFIRMED])
				report_family(j, &j->family[f], &e, "which its name contradicts: not mapped");
		} else if (ambiguous) {
			report_family(j, &j->family[f], &e, "and as often those of another checkpoint: not mapped");
		} else {
			list[n++] = (vn_chosen_rule) { .family = f, .e = e };
		}
	}
	return n;
}

/* Is the number of this family a layer's? It is if a rule has the same text before it. */
static bool counts_layers(const vn_proposer *j, const vn_name_family *f)
{
	const char *at = strstr(f->from, "{n}");
	for (int k = 0; k < j->n_rules; k++) {
		const vn_name_family *g = &j->family[j->rule[k].family];
		if (g->member[0].n >= 0 && strncmp(g->from, f->from, (size_t)(at - f->from) + 3) == 0)
			return true;
	}
	return false;
}

/* Adds a family of one member of another. */
static vn_name_family *add_single(vn_proposer *j, int family, int member)
{
	j->family = vn_alloc_resized(j->family, (size_t)j->n_families + 1, sizeof *j->family);
	j->rule = vn_alloc_resized(j->rule, (size_t)j->n_families + 2, sizeof *j->rule);
	vn_name_family *own = &j->family[j->n_families++];
	own->member = vn_alloc(1, sizeof *own->member);
	own->n = 1;
	own->words = j->family[family].words;
	own->member[0] = (vn_member) { -1, j->family[family].member[member].named };
	vn_name_glob(j->named[own->member[0].named].name, own->from);
	return own;
}

/* Tries a single name. in_layers: it may be a checkpoint of a layer. */
static void try_single(vn_proposer *j, vn_chosen_rule *c, bool in_layers)
{
	bool ambiguous;
	c->e = vn_propose_best_target(j, &j->family[c->family], j->add, &ambiguous);
	if (isfinite(c->e.sum) && vn_propose_is_enough(&c->e) && !c->e.blocked && !ambiguous &&
	    (c->e.to.add < 0 || in_layers))
		vn_propose_accept_rule(j, c);
}

/* Names that differ in a number which is not a layer's, as those outside the layers may. */
void vn_propose_split_families(vn_proposer *j)
{
	const int n = j->n_families;
	for (int f = 0; f < n; f++) {
		bool owned = j->family[f].n == 1;
		for (int i = 0; i < j->family[f].n && !owned; i++)
			owned = j->owner[j->family[f].member[i].named] >= 0;
		if (owned)
			continue;
		for (int i = 0; !counts_layers(j, &j->family[f]) && i < j->family[f].n; i++) {
			vn_chosen_rule c = { .family = j->n_families };
			add_single(j, f, i);
			try_single(j, &c, true);
		}
	}
}

void vn_propose_make_rules(vn_proposer *j)
{
	const size_t             families = (size_t)j->n_families + 1;
	VN_FREED vn_chosen_rule *list = vn_alloc_zero(families, sizeof *list);
	j->rule = vn_alloc_zero(families, sizeof *j->rule);
	j->claimed = vn_alloc((size_t)j->places.n, sizeof *j->claimed);
	j->owner = vn_alloc((size_t)j->n_named, sizeof *j->owner);
	for (int i = 0; i < j->places.n; i++)
		j->claimed[i] = -1;
	for (int i = 0; i < j->n_named; i++)
		j->owner[i] = -1;
	const int n = choose_targets(j, list);
	qsort(list, (size_t)n, sizeof *list, by_evidence);
	for (int i = 0; i < n; i++)
		vn_propose_accept_rule(j, &list[i]);
}

/* Members of a rule for which the reference has no layer, such as the last of hidden_states.{n}:
 * names of their own. */
void vn_propose_split_outside(vn_proposer *j)
{
	const int rules = j->n_rules;
	for (int k = 0; k < rules; k++) {
		const vn_chosen_rule c = j->rule[k];
		const vn_name_family f = j->family[c.family];
		for (int i = 0; f.n > 1 && i < f.n; i++) {
			if (vn_propose_place_of(j, &f.member[i], c.e.to) >= 0)
				continue;
			vn_chosen_rule  single = { .family = j->n_families, .outside = k + 1 };
			vn_name_family *own = add_single(j, c.family, i);
			try_single(j, &single, false);
			if (j->owner[own->member[0].named] < 0) { /* its family's rule must not take it */
				single.ignored = true;
				j->rule[j->n_rules++] = single;
			}
		}
	}
}
