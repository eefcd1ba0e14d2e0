/* propose_rest.c: what is decided downstream of a fault: by the smallest distance, or by shape. */
#include "capture/names/propose_internal.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <math.h>
#include <stdlib.h>


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
void vn_propose_match_rest(vn_proposer *j)
{
	bool more = looks_faulty(j);
	while (more) {
		rest_pair *list = NULL;
		int        n = 0, best = -1;
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
		free(list);
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
void vn_propose_match_shapes(vn_proposer *j)
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
