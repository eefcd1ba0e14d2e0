/* propose_copies.c: second tensors with the same numbers. */
#include "capture/names/propose_internal.h"
#include "capture/recording/numbers.h"
#include "libref/base/alloc.h"

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
	vn_tensor_sample   *s = vn_alloc(2, sizeof *s);
	const vn_spot_kind *k = &j->places.kind[j->places.place[place].kind];
	char                text[2][VN_LAYOUT_DIMS];
	bool                same = true;
	const int           named[2] = { a, b };
	for (int i = 0; same && i < 2; i++) {
		const vn_tensor_name *x = &j->named[named[i]];
		int                   near = -1;
		vn_propose_distance_from(j, x, place, &near);
		same = near >= 0 && j->places.place[x->near[near].place].kind == j->places.place[place].kind &&
		       vn_kind_layout(k, &vn_recording_entry(j->r, x->entry)->shape, x->near[near].layout, text[i]) &&
		       !vn_kind_sample(k, j->r, x->entry, text[i], &s[i], j->err) && s[i].n;
	}
	same = same && memcmp(s[0].x, s[1].x, (size_t)s[0].n * sizeof *s[0].x) == 0;
	free(s);
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

vn_likeness vn_propose_compare_families(const vn_proposer *j, const vn_chosen_rule *c)
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
