/* propose_evidence.c: what the tensors of a family say of a target. */
#include "capture/names/propose_internal.h"

#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void vn_propose_add_line(char ***list, int *n, const char *format, ...)
{
	char    text[5 * VN_NAME_MAX];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	*list = vn_alloc_grown(*list, (size_t)*n, sizeof **list);
	(*list)[(*n)++] = vn_alloc_text(text);
}

/* The place that a target is for a member; -1: none. */
int vn_propose_place_of(const vn_proposer *j, const vn_member *m, vn_target to)
{
	return vn_spots_find(&j->places, j->named[m->named].step, to.point, m->n < 0 ? to.add : m->n + to.add);
}

/* The distance from a place, or another with its numbers; 1: it is none of the nearest. */
double vn_propose_distance_from(const vn_proposer *j, const vn_tensor_name *x, int place, int *layout)
{
	for (int i = 0; i < x->n_near; i++) {
		const vn_spot *p = &j->places.place[x->near[i].place], *q = &j->places.place[place];
		if (p->point == q->point && p->layer == q->layer && p->step == q->step) {
			if (layout)
				*layout = i;
			return x->near[i].distance;
		}
	}
	for (int i = 0; i < x->n_near; i++)
		if (j->places.place[x->near[i].place].group == j->places.place[place].group)
			return x->near[i].distance;
	return 1;
}

/* The nearest place with other numbers than this one; NULL: none is known. */
const vn_near *vn_propose_nearest_other(const vn_proposer *j, const vn_tensor_name *x, int place)
{
	for (int i = 0; i < x->n_near; i++)
		if (place < 0 || j->places.place[x->near[i].place].group != j->places.place[place].group)
			return &x->near[i];
	return NULL;
}

vn_member_verdict vn_propose_verdict(double own, double other)
{
	if (own <= VN_NEAR_PLACE && own * VN_NEAR_MARGIN <= other)
		return VN_MEMBER_CONFIRMED;
	if (other <= VN_NEAR_PLACE && other * VN_NEAR_MARGIN <= own)
		return VN_MEMBER_AGAINST;
	return own <= VN_NEAR_PERHAPS && own * VN_NEAR_TWICE <= other ? VN_MEMBER_LIKELY : VN_MEMBER_SILENT;
}

vn_member_verdict vn_propose_judge_member(const vn_proposer *j, const vn_member *m, vn_target to, double *own,
                                          double *other)
{
	const vn_tensor_name *x = &j->named[m->named];
	const int             place = vn_propose_place_of(j, m, to);
	if (place < 0)
		return VN_MEMBER_OUT;
	const vn_near *near = vn_propose_nearest_other(j, x, place);
	*own = vn_propose_distance_from(j, x, place, NULL);
	*other = near ? near->distance : 1;
	return vn_propose_verdict(*own, *other);
}

static bool has_name(const vn_proposer *j, const vn_member *m, int place)
{
	return strcmp(j->named[m->named].name, j->places.place[place].name) == 0;
}

vn_evidence vn_propose_weigh(const vn_proposer *j, const vn_name_family *f, vn_target to)
{
	vn_evidence e = { .to = to, .worst = -1, .next = -1, .blocked = vn_words_contradict(f->words, to.point) };
	for (int i = 0; i < f->n; i++) {
		double                  own = 1, other = 1;
		const int               place = vn_propose_place_of(j, &f->member[i], to);
		const vn_member_verdict v = vn_propose_judge_member(j, &f->member[i], to, &own, &other);
		e.count[v]++;
		if (v == VN_MEMBER_OUT)
			continue;
		e.sum += own;
		e.worst = v == VN_MEMBER_CONFIRMED && own > e.worst ? own : e.worst;
		e.next = v == VN_MEMBER_CONFIRMED && (e.next < 0 || other < e.next) ? other : e.next;
		e.taste += has_name(j, &f->member[i], place) ? 8 : 0;
	}
	const unsigned is = vn_point_words(to.point);
	e.taste += vn_words_say(f->words, to.point, f->member[0].n >= 0) ? 4 : 0;
	e.taste -= 4 * (((f->words ^ is) & VN_SAYS_CACHE) != 0) + 2 * (((f->words ^ is) & VN_SAYS_IN) != 0);
	e.taste -= f->member[0].n < 0 && to.add >= 0; /* a single name is rather a checkpoint outside the layers */
	return e;
}

/* Is a the better target for one family? A target that the words contradict counts only if no other
 * is confirmed. */
static bool is_better(const vn_evidence *a, const vn_evidence *b)
{
	const bool x = a->blocked && b->count[VN_MEMBER_CONFIRMED], y = b->blocked && a->count[VN_MEMBER_CONFIRMED];
	if (x != y)
		return y;
	for (int v = VN_MEMBER_CONFIRMED; v >= VN_MEMBER_LIKELY; v--)
		if (a->count[v] != b->count[v])
			return a->count[v] > b->count[v];
	if (a->count[VN_MEMBER_AGAINST] != b->count[VN_MEMBER_AGAINST])
		return a->count[VN_MEMBER_AGAINST] < b->count[VN_MEMBER_AGAINST];
	if (fabs(a->sum - b->sum) > 1e-9)
		return a->sum < b->sum;
	return a->taste > b->taste;
}

static bool same_numbers_everywhere(const vn_proposer *j, const vn_name_family *f, vn_target a, vn_target b)
{
	for (int i = 0; i < f->n; i++) {
		const int x = vn_propose_place_of(j, &f->member[i], a), y = vn_propose_place_of(j, &f->member[i], b);
		if (x >= 0 && y >= 0 && j->places.place[x].group != j->places.place[y].group)
			return false;
	}
	return true;
}

/* Calls for each target that a tensor of the family is near to. */
vn_evidence vn_propose_best_target(const vn_proposer *j, const vn_name_family *f, int add, bool *ambiguous)
{
	vn_evidence best = { .sum = INFINITY };
	bool        any = false, weighed[VN_N_POINTS + VN_FUSED] = { false };
	*ambiguous = false;
	for (int i = 0; i < f->n; i++) {
		const vn_tensor_name *x = &j->named[f->member[i].named];
		for (int k = 0; k < x->n_near; k++) {
			const vn_spot  *p = &j->places.place[x->near[k].place];
			const int       n = f->member[i].n;
			const vn_target to = { p->point, n < 0 ? p->layer : p->layer - n };
			if (n >= 0 && (p->layer < 0 || to.add != add || weighed[p->point]))
				continue;
			weighed[p->point] = true;
			const vn_evidence e = vn_propose_weigh(j, f, to);
			if (any && e.to.point == best.to.point && e.to.add == best.to.add)
				continue;
			const bool tie = any && e.count[VN_MEMBER_CONFIRMED] &&
			                 e.count[VN_MEMBER_CONFIRMED] == best.count[VN_MEMBER_CONFIRMED] &&
			                 e.blocked == best.blocked && e.count[VN_MEMBER_AGAINST] && best.count[VN_MEMBER_AGAINST] &&
			                 !same_numbers_everywhere(j, f, e.to, best.to);
			if (!any || is_better(&e, &best)) {
				best = e;
				*ambiguous = tie;
			} else if (tie) {
				*ambiguous = true;
			}
			any = true;
		}
	}
	return best;
}

/* The layers of an engine may count from 1: the number that most families agree on. */
int vn_propose_choose_add(const vn_proposer *j)
{
	int best = 0, most = -1;
	for (int k = 0; k < 3; k++) {
		const int add = (const int[]) { 0, -1, 1 }[k];
		int       sum = 0;
		for (int f = 0; f < j->n_families; f++) {
			bool ambiguous;
			if (j->family[f].member[0].n >= 0)
				sum += vn_propose_best_target(j, &j->family[f], add, &ambiguous).count[VN_MEMBER_CONFIRMED];
		}
		if (sum > most) {
			most = sum;
			best = add;
		}
	}
	return best;
}

bool vn_propose_is_enough(const vn_evidence *e)
{
	const int in = e->count[VN_MEMBER_SILENT] + e->count[VN_MEMBER_LIKELY] + e->count[VN_MEMBER_CONFIRMED] +
	               e->count[VN_MEMBER_AGAINST];
	if (e->count[VN_MEMBER_CONFIRMED])
		return e->count[VN_MEMBER_CONFIRMED] + e->count[VN_MEMBER_LIKELY] >= e->count[VN_MEMBER_AGAINST];
	/* Nothing is near: all that is left is that most are nearest to their own layer's. */
	return in >= 2 && e->count[VN_MEMBER_AGAINST] == 0 && 4 * e->count[VN_MEMBER_LIKELY] >= 3 * in;
}

/* "layer{n}.v_proj", "layer2.v_proj", "logits", or "q_proj, k_proj and v_proj". */
void vn_propose_target_name(int point, int layer, int add, char to[2 * VN_NAME_MAX])
{
	char where[40] = "";
	if (layer >= 0)
		snprintf(where, sizeof where, "layer%d.", layer);
	else if (layer == -2)
		snprintf(where, sizeof where, add == 0 ? "layer{n}." : "layer{n%+d}.", add);
	if (point < VN_N_POINTS)
		snprintf(to, 2 * VN_NAME_MAX, "%s%s", where, vn_point_get((vn_point)point)->name);
	else
		snprintf(to, 2 * VN_NAME_MAX, "%s%s_proj", where, vn_fused_of[point - VN_N_POINTS].along);
}

void vn_propose_place_name(const vn_proposer *j, int place, char to[2 * VN_NAME_MAX])
{
	const vn_spot *p = &j->places.place[place];
	vn_propose_target_name(p->point, p->layer, 0, to);
}
