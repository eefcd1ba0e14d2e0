/* propose_named.c: rules for names that say which checkpoint they are, where the numbers of a
 * faulty run do not; see propose_internal.h. */
#include "capture/names/propose_internal.h"

#include <math.h>
#include <string.h>

/* Has the reference this point in a step, in any layer? */
static bool has_point(const vn_proposer *j, int point)
{
	for (int i = 0; i < j->places.n; i++)
		if (j->places.place[i].point == point)
			return true;
	return false;
}

/* The layout of the tensor of a member at its place; false: its shape is another. */
static bool layout_at(const vn_proposer *j, const vn_member *m, vn_target to, char text[VN_LAYOUT_DIMS])
{
	const vn_tensor_name *x = &j->named[m->named];
	for (int i = 0; i < j->places.n; i++) {
		const vn_spot *p = &j->places.place[i];
		if (p->point == to.point && p->layer == (m->n < 0 ? to.add : m->n + to.add) && p->step == x->step &&
		    vn_kind_layout(&j->places.kind[p->kind], &vn_recording_entry(j->r, x->entry)->shape, 0, text))
			return true;
	}
	return false;
}

/* Has each member a place that no other tensor has, and its shape? */
static bool fits_shapes(const vn_proposer *j, const vn_name_family *f, vn_target to, char text[VN_LAYOUT_DIMS])
{
	bool fits = true;
	for (int i = 0; i < f->n && fits; i++) {
		const int place = vn_propose_place_of(j, &f->member[i], to);
		fits = place >= 0 && j->claimed[place] < 0 && layout_at(j, &f->member[i], to, text);
	}
	return fits;
}

/* The point that the words of a family's name say; false: none, or another tensor is there, or it
 * may be two that the numbers do not tell apart. */
static bool target_by_words(const vn_proposer *j, const vn_name_family *f, vn_target *to, char text[VN_LAYOUT_DIMS])
{
	const bool   layers = f->member[0].n >= 0;
	vn_named_row row = { .at = -1 };
	double       best = -1, next = INFINITY;
	while (vn_words_next(f->words, layers, &row)) {
		const vn_target one = { row.point, layers ? j->add : -1 };
		char            layout[VN_LAYOUT_DIMS];
		if ((row.unless >= 0 && has_point(j, row.unless)) || (best >= 0 && one.point == to->point) ||
		    !fits_shapes(j, f, one, layout))
			continue;
		const double sum = vn_propose_weigh(j, f, one).sum;
		if (best < 0 || sum < best) {
			next = best < 0 ? next : best;
			best = sum;
			*to = one;
			memcpy(text, layout, VN_LAYOUT_DIMS);
		} else {
			next = sum < next ? sum : next;
		}
	}
	return best >= 0 && (isinf(next) || best < 0.8 * next);
}

/* Is the last tensor in the order of execution, of those that a rule or a name places, far from
 * its place? Then so may be those before it. */
bool vn_propose_ends_wrong(const vn_proposer *j)
{
	int  last = -1;
	bool wrong = false;
	for (int f = 0; f < j->n_families; f++)
		for (int i = 0; i < j->family[f].n; i++) {
			const vn_member *m = &j->family[f].member[i];
			const int        owner = j->owner[m->named];
			char             text[VN_LAYOUT_DIMS];
			vn_target        to = { 0, 0 };
			double           own, other;
			if (owner >= 0 ? j->rule[owner].family != f || j->rule[owner].ignored
			               : !target_by_words(j, &j->family[f], &to, text))
				continue;
			to = owner >= 0 ? j->rule[owner].e.to : to;
			const int place = vn_propose_place_of(j, m, to);
			if (place < 0 || j->places.place[place].order < last)
				continue;
			last = j->places.place[place].order;
			wrong = vn_propose_judge_member(j, m, to, &own, &other) != VN_MEMBER_CONFIRMED;
		}
	return wrong;
}

/* Is this family without a rule, or a copy of another's numbers? Without rotation, what is called
 * "rotated" has the numbers of the projection. */
static bool may_move(const vn_proposer *j, int family)
{
	const vn_name_family *f = &j->family[family];
	const int             k = j->owner[f->member[0].named];
	bool                  free = true;
	for (int i = 0; i < f->n; i++)
		free = free && j->owner[f->member[i].named] == k;
	return free && (k < 0 || (j->rule[k].copy && j->rule[k].family == family));
}

void vn_propose_by_words(vn_proposer *j)
{
	if (!vn_propose_ends_wrong(j))
		return;
	for (int i = 0; i < j->n_families; i++) {
		const vn_name_family *f = &j->family[i];
		vn_chosen_rule        c = { .family = i, .by_words = true };
		if (!may_move(j, i) || !target_by_words(j, f, &c.e.to, c.layout))
			continue;
		c.e = vn_propose_weigh(j, f, c.e.to);
		const int k = j->owner[f->member[0].named];
		vn_propose_take_places(j, &c, k < 0 ? j->n_rules++ : k);
	}
}
