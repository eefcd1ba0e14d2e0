/* propose_stacked.c: rules for tensors that hold all layers, one index of an axis for each; see
 * propose_internal.h. */
#include "capture/names/propose_internal.h"

#include "libref/base/alloc.h"

#include <math.h>
#include <string.h>

/* One tensor in one layout: how far each of its indices (n) is from each place of a kind. */
typedef struct stacked_layout {
	int                 named, n;
	const vn_spot_kind *kind;
	const char         *text;
	float              *distance; /* (n, n_places) */
} stacked_layout;

static vn_status measure_indices(const vn_proposer *j, stacked_layout *x)
{
	VN_FREED vn_tensor_sample *s = vn_alloc(1, sizeof *s);
	vn_status                  st = VN_OK;
	for (int i = 0; i < x->n && !st; i++) {
		const vn_stack_slice in = { x->text, x->n, i };
		if ((st = vn_kind_sample(x->kind, j->r, j->named[x->named].entry, in, s, j->err)))
			break;
		for (int k = 0; k < x->kind->n_places; k++)
			x->distance[i * x->kind->n_places + k] = s->n ? (float)vn_tensor_sample_distance(
																s, &j->places.place[x->kind->place[k]].sample)
			                                              : 1;
	}
	return st;
}

/* What index i says of a target: as vn_propose_judge_member. Sets the place that is nearest. */
static vn_member_verdict judge_index(const vn_proposer *j, const stacked_layout *x, int i, vn_target to,
                                     vn_member_near *d)
{
	const int place = vn_spots_find(&j->places, j->named[x->named].step, to.point, i + to.add);
	*d = (vn_member_near) { .own = 1, .other = 1, .nearest = -1 };
	if (place < 0)
		return VN_MEMBER_OUT;
	for (int k = 0; k < x->kind->n_places; k++) {
		const int    at = x->kind->place[k];
		const double is = x->distance[i * x->kind->n_places + k];
		if (j->places.place[at].group == j->places.place[place].group) {
			d->own = is < d->own ? is : d->own;
		} else if (is < d->other) {
			d->other = is;
			d->nearest = at;
		}
	}
	return vn_propose_verdict(d->own, d->other);
}

static vn_evidence weigh_stack(const vn_proposer *j, const stacked_layout *x, vn_target to)
{
	vn_evidence e = { .to = to, .worst = -1, .next = -1 };
	for (int i = 0; i < x->n; i++) {
		vn_member_near          d;
		const vn_member_verdict v = judge_index(j, x, i, to, &d);
		e.count[v]++;
		e.sum += v == VN_MEMBER_OUT ? 0 : d.own;
		if (v != VN_MEMBER_CONFIRMED)
			continue;
		e.worst = d.own > e.worst ? d.own : e.worst;
		e.next = e.next < 0 || d.other < e.next ? d.other : e.next;
	}
	return e;
}

/* Has some index a place of this kind there, and no other tensor any of them? */
static bool is_free(const vn_proposer *j, const stacked_layout *x, vn_target to)
{
	bool some = false;
	for (int i = 0; i < x->n; i++) {
		const int place = vn_spots_find(&j->places, j->named[x->named].step, to.point, i + to.add);
		if (place >= 0 && (j->claimed[place] >= 0 || &j->places.kind[j->places.place[place].kind] != x->kind))
			return false;
		some = some || place >= 0;
	}
	return some;
}

/* Is a better than b, for the same tensor? */
static bool is_better(const vn_evidence *a, const vn_evidence *b)
{
	for (int v = VN_MEMBER_CONFIRMED; v >= VN_MEMBER_LIKELY; v--)
		if (a->count[v] != b->count[v])
			return a->count[v] > b->count[v];
	return fabs(a->sum - b->sum) > 1e-9 ? a->sum < b->sum : a->taste > b->taste;
}

/* Is some index near to its place, and most of them or the name for it too? In a faulty run, one
 * index of two may be near to what it is not. */
static bool is_of_most(const vn_evidence *e, bool says)
{
	const int near = e->count[VN_MEMBER_CONFIRMED] + e->count[VN_MEMBER_LIKELY];
	return e->count[VN_MEMBER_CONFIRMED] && (says || near > e->count[VN_MEMBER_SILENT] + e->count[VN_MEMBER_AGAINST]);
}

/* Tries each point of the layout's kind; keeps the best in *c. wrong: the run is faulty, so that
 * the words of the name count where numbers say nothing. */
static void try_points(const vn_proposer *j, const stacked_layout *x, bool wrong, vn_chosen_rule *c)
{
	const unsigned words = j->family[c->family].words;
	const int      extra = x->n - vn_recording_layers(j->like);
	for (int point = 0; point < VN_N_POINTS + VN_FUSED; point++)
		for (int add = 0; add >= -extra; add--) {
			const vn_target to = { point, add };
			if (vn_words_contradict(words, point) || !is_free(j, x, to))
				continue;
			vn_evidence e = weigh_stack(j, x, to);
			const bool  says = vn_words_say(words, point, true);
			e.taste = says;
			const bool by_words = wrong && says && !e.count[VN_MEMBER_AGAINST] && !vn_propose_is_enough(&e);
			if (!by_words && !(vn_propose_is_enough(&e) && is_of_most(&e, says)))
				continue;
			if (*c->layout && (c->by_words != by_words ? by_words : !is_better(&e, &c->e)))
				continue;
			c->e = e;
			c->by_words = by_words;
			c->stack = x->n;
			c->kind = (int)(x->kind - j->places.kind);
			strcpy(c->layout, x->text);
		}
}

/* Is this axis part of a group, such as "(token layer)"? A map takes indices of whole axes only. */
static bool grouped(const char *layout, const char *axis)
{
	const char *at = strstr(layout, axis), *close = at ? strchr(at, ')') : NULL, *open = at ? strchr(at, '(') : NULL;
	return close && (!open || close < open);
}

static vn_status try_stack(vn_proposer *j, int n, bool wrong, vn_chosen_rule *c)
{
	const int       named = j->family[c->family].member[0].named;
	const vn_shape *shape = &vn_recording_entry(j->r, j->named[named].entry)->shape;
	vn_status       st = VN_OK;
	for (int k = 0; !st && k < j->places.n_kinds; k++) {
		const vn_spot_kind *kind = &j->places.kind[k];
		vn_axis_length      axis[VN_MAX_RANK];
		char                list[VN_LAYOUTS][VN_LAYOUT_DIMS];
		if (kind->step != j->named[named].step || !kind->n || kind->n_axes == VN_MAX_RANK)
			continue;
		axis[0] = (vn_axis_length) { "layer", n };
		memcpy(axis + 1, kind->axis, (size_t)kind->n_axes * sizeof *axis);
		const int layouts = vn_layouts(shape, axis, kind->n_axes + 1, list);
		for (int l = 0; !st && l < layouts; l++) {
			VN_FREED float *distance = vn_alloc((size_t)n * (size_t)kind->n_places, sizeof *distance);
			stacked_layout  x = { named, n, kind, list[l], distance };
			if (!grouped(list[l], "layer") && !(st = measure_indices(j, &x)))
				try_points(j, &x, wrong, c);
		}
	}
	return st;
}

/* Claims the places, and reports indices with the numbers of another one, or without a place. */
static vn_status take_stack(vn_proposer *j, const vn_chosen_rule *c)
{
	const int           named = j->family[c->family].member[0].named, n = c->stack;
	const vn_spot_kind *kind = &j->places.kind[c->kind];
	VN_FREED float     *distance = vn_alloc((size_t)n * (size_t)kind->n_places, sizeof *distance);
	stacked_layout      x = { named, n, kind, c->layout, distance };
	const vn_status     st = measure_indices(j, &x);
	for (int i = 0; !st && i < n; i++) {
		const int      place = vn_spots_find(&j->places, j->named[named].step, c->e.to.point, i + c->e.to.add);
		vn_member_near d;
		char           is[2 * VN_NAME_MAX], says[2 * VN_NAME_MAX];
		if (place < 0) {
			vn_propose_add_line(&j->out->left, &j->out->n_left, "%s, index %d", j->named[named].name, i);
			continue;
		}
		j->claimed[place] = j->n_rules;
		if (judge_index(j, &x, i, c->e.to, &d) != VN_MEMBER_AGAINST)
			continue;
		vn_propose_place_name(j, d.nearest, is);
		vn_propose_place_name(j, place, says);
		vn_propose_add_line(&j->out->report, &j->out->n_reports,
		                    "%s, index %d: its numbers are those of %s; as its rule says, it is imported as %s",
		                    j->named[named].name, i, is, says);
	}
	j->owner[named] = j->n_rules;
	j->rule[j->n_rules++] = *c;
	return st;
}

vn_status vn_propose_stacked(vn_proposer *j)
{
	const int  layers = vn_recording_layers(j->like), families = j->n_families;
	const bool wrong = vn_propose_ends_wrong(j);
	vn_status  st = VN_OK;
	/* of several with the same numbers, the one whose name says the point goes first */
	for (int f = 0; !st && layers > 1 && f < 2 * families; f++) {
		const vn_name_family *x = &j->family[f % families];
		vn_chosen_rule        c = { .family = f % families };
		if (x->n > 1 || j->owner[x->member[0].named] >= 0 ||
		    vn_recording_entry(j->r, j->named[x->member[0].named].entry)->dtype == VN_I32)
			continue;
		for (int n = layers; !st && n <= layers + 1; n++)
			st = try_stack(j, n, wrong, &c);
		if (!st && *c.layout && (f >= families || vn_words_say(x->words, c.e.to.point, true)))
			st = take_stack(j, &c);
	}
	return st;
}
