/* propose.c: families of names become rules; see propose.h. */
#include "capture/names/propose_internal.h"

#include "capture/recording/numbers.h"
#include "libref/base/grow.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor is at its place if it is NEAR it, and MARGIN times as far from every other. Six models
 * of 2 to 6 layers (tests/parity_like.py), run in bfloat16, have tensors at most 0.002 from their
 * places, and at least 22 times as far from any other; 4-bit weights are coarser. It may be there
 * if the distance is at most PERHAPS and that from any other TWICE as large. */
static const double NEAR = 0.05, MARGIN = 4, PERHAPS = 0.5, TWICE = 2;

typedef enum member_verdict { OUT, SILENT, LIKELY, CONFIRMED, AGAINST } member_verdict;

/* A hypothesis: family member n is this point in layer n + add; of a single name, in this layer. */
typedef struct target {
	int point, add;
} target;

/* What the tensors of a family say of a target. */
typedef struct evidence {
	target to;
	int    count[AGAINST + 1];
	double sum, worst, next;
	bool   blocked; /* words of the name contradict it */
	int    taste;   /* among places with the same numbers, higher is better */
} evidence;

typedef struct chosen {
	int      family;
	evidence e;
	char     layout[VN_LAYOUT_DIMS];
	bool     copy, by_shape;
	bool     other_layout; /* a copy whose axes are in another order */
	bool     ignored;      /* a name that no rule may take */
	int      outside;      /* 1 + the rule whose family it was split from; 0 */
} chosen;

typedef struct proposer {
	vn_recording   *r, *like;
	vn_proposal    *out;
	vn_error       *err;
	vn_spots        places;
	vn_tensor_name *named;
	int             n_named;
	vn_name_family *family;
	int             n_families;
	chosen         *rule;
	int             n_rules;
	int            *claimed; /* (places) rule that claims it, or -1 */
	int            *owner;   /* (named) its rule, or -1 */
	int             add;     /* the layers of the dump count from here: 0 or -1 or 1 */
} proposer;

static vn_status no_memory(const proposer *j)
{
	return vn_fail(j->err, VN_ERR_NOMEM, "%s: no memory to propose names", vn_recording_path(j->r));
}

__attribute__((format(printf, 4, 5))) static vn_status add_line(const proposer *j, char ***list, int *n,
                                                                const char *format, ...)
{
	char    text[5 * VN_NAME_MAX];
	char  **more;
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	if (!(more = vn_grown(*list, (size_t)*n, sizeof *more)))
		return no_memory(j);
	*list = more;
	if (!(more[*n] = strdup(text)))
		return no_memory(j);
	++*n;
	return VN_OK;
}

/* ---- tensors -------------------------------------------------------------------------------- */

static int by_name_then_step(const void *a, const void *b)
{
	const vn_tensor_name *x = a, *y = b;
	const int             c = strcmp(x->name, y->name);
	return c ? c : (x->step > y->step) - (x->step < y->step);
}

/* Lists each name once, with its first tensor. */
static vn_status list_names(proposer *j)
{
	const int n = vn_recording_count(j->r);
	int       kept = 0;
	if (!(j->named = calloc((size_t)n + 1, sizeof *j->named)))
		return no_memory(j);
	for (int i = 0; i < n; i++) {
		const vn_entry *e = vn_recording_entry(j->r, i);
		j->named[i] = (vn_tensor_name) { .name = e->name, .entry = i, .step = e->step };
	}
	qsort(j->named, (size_t)n, sizeof *j->named, by_name_then_step);
	for (int i = 0; i < n; i++)
		if (!kept || strcmp(j->named[kept - 1].name, j->named[i].name) != 0)
			j->named[kept++] = j->named[i];
	j->n_named = kept;
	return VN_OK;
}

static vn_status measure_all(proposer *j)
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
		st = vn_spots_sort(&j->places, j->err);
	for (int i = 0; !st && i < j->n_named; i++)
		st = vn_tensor_name_measure(&j->places, j->r, &j->named[i], j->err);
	return st;
}

/* ---- evidence ------------------------------------------------------------------------------- */

/* The place that a target is for a member; -1: none. */
static int place_of(const proposer *j, const vn_member *m, target to)
{
	return vn_spots_find(&j->places, j->named[m->named].step, to.point, m->n < 0 ? to.add : m->n + to.add);
}

/* The distance from a place, or another with its numbers; 1: it is none of the nearest. */
static double distance_from(const proposer *j, const vn_tensor_name *x, int place, int *layout)
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
static const vn_near *nearest_other(const proposer *j, const vn_tensor_name *x, int place)
{
	for (int i = 0; i < x->n_near; i++)
		if (place < 0 || j->places.place[x->near[i].place].group != j->places.place[place].group)
			return &x->near[i];
	return NULL;
}

static member_verdict judge_member(const proposer *j, const vn_member *m, target to, double *own, double *other)
{
	const vn_tensor_name *x = &j->named[m->named];
	const int             place = place_of(j, m, to);
	if (place < 0)
		return OUT;
	const vn_near *near = nearest_other(j, x, place);
	*own = distance_from(j, x, place, NULL);
	*other = near ? near->distance : 1;
	if (*own <= NEAR && *own * MARGIN <= *other)
		return CONFIRMED;
	if (*other <= NEAR && *other * MARGIN <= *own)
		return AGAINST;
	return *own <= PERHAPS && *own * TWICE <= *other ? LIKELY : SILENT;
}

static bool has_name(const proposer *j, const vn_member *m, int place)
{
	return strcmp(j->named[m->named].name, j->places.place[place].name) == 0;
}

static evidence weigh(const proposer *j, const vn_name_family *f, target to)
{
	evidence e = { .to = to, .worst = -1, .next = -1, .blocked = vn_words_contradict(f->words, to.point) };
	for (int i = 0; i < f->n; i++) {
		double               own = 1, other = 1;
		const int            place = place_of(j, &f->member[i], to);
		const member_verdict v = judge_member(j, &f->member[i], to, &own, &other);
		e.count[v]++;
		if (v == OUT)
			continue;
		e.sum += own;
		e.worst = v == CONFIRMED && own > e.worst ? own : e.worst;
		e.next = v == CONFIRMED && (e.next < 0 || other < e.next) ? other : e.next;
		e.taste += has_name(j, &f->member[i], place) ? 8 : 0;
	}
	const unsigned is = vn_point_words(to.point);
	e.taste -= 4 * (((f->words ^ is) & VN_SAYS_CACHE) != 0) + 2 * (((f->words ^ is) & VN_SAYS_IN) != 0);
	e.taste -= f->member[0].n < 0 && to.add >= 0; /* a single name is rather a checkpoint outside the layers */
	return e;
}

/* Is a the better target for one family? A target that the words contradict counts only if no other
 * is confirmed. */
static bool is_better(const evidence *a, const evidence *b)
{
	const bool x = a->blocked && b->count[CONFIRMED], y = b->blocked && a->count[CONFIRMED];
	if (x != y)
		return y;
	for (int v = CONFIRMED; v >= LIKELY; v--)
		if (a->count[v] != b->count[v])
			return a->count[v] > b->count[v];
	if (a->count[AGAINST] != b->count[AGAINST])
		return a->count[AGAINST] < b->count[AGAINST];
	if (fabs(a->sum - b->sum) > 1e-9)
		return a->sum < b->sum;
	return a->taste > b->taste;
}

static bool same_numbers_everywhere(const proposer *j, const vn_name_family *f, target a, target b)
{
	for (int i = 0; i < f->n; i++) {
		const int x = place_of(j, &f->member[i], a), y = place_of(j, &f->member[i], b);
		if (x >= 0 && y >= 0 && j->places.place[x].group != j->places.place[y].group)
			return false;
	}
	return true;
}

/* Calls for each target that a tensor of the family is near to. */
static evidence best_target(const proposer *j, const vn_name_family *f, int add, bool *ambiguous)
{
	evidence best = { .sum = INFINITY };
	bool     any = false, weighed[VN_N_POINTS + VN_FUSED] = { false };
	*ambiguous = false;
	for (int i = 0; i < f->n; i++) {
		const vn_tensor_name *x = &j->named[f->member[i].named];
		for (int k = 0; k < x->n_near; k++) {
			const vn_spot *p = &j->places.place[x->near[k].place];
			const int      n = f->member[i].n;
			const target   to = { p->point, n < 0 ? p->layer : p->layer - n };
			if (n >= 0 && (p->layer < 0 || to.add != add || weighed[p->point]))
				continue;
			weighed[p->point] = true;
			const evidence e = weigh(j, f, to);
			if (any && e.to.point == best.to.point && e.to.add == best.to.add)
				continue;
			const bool tie = any && e.count[CONFIRMED] && e.count[CONFIRMED] == best.count[CONFIRMED] &&
			                 e.blocked == best.blocked && e.count[AGAINST] && best.count[AGAINST] &&
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
static int choose_add(const proposer *j)
{
	int best = 0, most = -1;
	for (int k = 0; k < 3; k++) {
		const int add = (const int[]) { 0, -1, 1 }[k];
		int       sum = 0;
		for (int f = 0; f < j->n_families; f++) {
			bool ambiguous;
			if (j->family[f].member[0].n >= 0)
				sum += best_target(j, &j->family[f], add, &ambiguous).count[CONFIRMED];
		}
		if (sum > most) {
			most = sum;
			best = add;
		}
	}
	return best;
}

/* ---- rules ---------------------------------------------------------------------------------- */

static bool is_enough(const evidence *e)
{
	const int in = e->count[SILENT] + e->count[LIKELY] + e->count[CONFIRMED] + e->count[AGAINST];
	if (e->count[CONFIRMED])
		return e->count[CONFIRMED] + e->count[LIKELY] >= e->count[AGAINST];
	/* Nothing is near: all that is left is that most are nearest to their own layer's. */
	return in >= 2 && e->count[AGAINST] == 0 && 4 * e->count[LIKELY] >= 3 * in;
}

/* "layer{n}.v_proj", "layer2.v_proj", "logits", or "q_proj, k_proj and v_proj". */
static void target_name(int point, int layer, int add, char to[2 * VN_NAME_MAX])
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

static void place_name(const proposer *j, int place, char to[2 * VN_NAME_MAX])
{
	const vn_spot *p = &j->places.place[place];
	target_name(p->point, p->layer, 0, to);
}

/* Reports a family whose numbers are at one place and whose name says another. */
static vn_status report_family(const proposer *j, const vn_name_family *f, const evidence *e, const char *why)
{
	char to[2 * VN_NAME_MAX];
	target_name(e->to.point, f->member[0].n < 0 ? e->to.add : -2, e->to.add, to);
	return add_line(j, &j->out->report, &j->out->n_reports, "%s: its numbers are those of %s in %d of %d tensors, %s",
	                f->from, to, e->count[CONFIRMED], f->n, why);
}

/* Chooses the layout that most confirmed tensors have. */
static void choose_layout(const proposer *j, chosen *c)
{
	const vn_name_family *f = &j->family[c->family];
	char                  seen[8][VN_LAYOUT_DIMS], text[VN_LAYOUT_DIMS];
	double                weight[8], most = -1;
	int                   n = 0;
	for (int i = 0; i < f->n; i++) {
		const vn_tensor_name *x = &j->named[f->member[i].named];
		const int             place = place_of(j, &f->member[i], c->e.to);
		int                   near = -1, k = 0;
		if (place < 0)
			continue;
		const double d = distance_from(j, x, place, &near);
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

/* Have the two tensors the same numbers in the same order? */
static bool same_numbers(const proposer *j, int a, int b)
{
	const vn_entry *x = vn_recording_entry(j->r, a), *y = vn_recording_entry(j->r, b);
	const int64_t   n = vn_shape_count(&x->shape);
	bool            same = n == vn_shape_count(&y->shape);
	vn_numbers *p = same ? vn_numbers_open(j->r, a, j->err) : NULL, *q = p ? vn_numbers_open(j->r, b, j->err) : NULL;
	for (int64_t at = 0; q && same && at < n; at += VN_NUMBERS) {
		const size_t m = vn_numbers_left(n, at);
		same = !vn_numbers_read(p, at, m, j->err) && !vn_numbers_read(q, at, m, j->err) &&
		       memcmp(p->x, q->x, m * sizeof *p->x) == 0;
	}
	vn_numbers_close(p);
	vn_numbers_close(q);
	return q && same;
}

/* Are their samples the same numbers, each in its own layout? */
static bool same_samples(const proposer *j, int a, int b, int place)
{
	vn_tensor_sample   *s = malloc(2 * sizeof *s);
	const vn_spot_kind *k = &j->places.kind[j->places.place[place].kind];
	char                text[2][VN_LAYOUT_DIMS];
	bool                same = s != NULL;
	const int           named[2] = { a, b };
	for (int i = 0; same && i < 2; i++) {
		const vn_tensor_name *x = &j->named[named[i]];
		int                   near = -1;
		distance_from(j, x, place, &near);
		same = near >= 0 && j->places.place[x->near[near].place].kind == j->places.place[place].kind &&
		       vn_kind_layout(k, &vn_recording_entry(j->r, x->entry)->shape, x->near[near].layout, text[i]) &&
		       !vn_kind_sample(k, j->r, x->entry, text[i], &s[i], j->err) && s[i].n;
	}
	same = same && memcmp(s[0].x, s[1].x, (size_t)s[0].n * sizeof *s[0].x) == 0;
	free(s);
	return same;
}

/* How the tensors of a family compare with those that have their places already. */
typedef struct likeness {
	int         same, other_layout; /* pairs with the same numbers; of these, in another layout */
	int         owner;              /* a rule that has one of the places; -1: none */
	const char *unlike;             /* the first that differs, in any step; NULL: none */
} likeness;

static void compare_pair(const proposer *j, int a, int b, int place, likeness *l)
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

static likeness compare_families(const proposer *j, const chosen *c)
{
	const vn_name_family *f = &j->family[c->family];
	likeness              l = { .owner = -1 }, one;
	for (int i = 0; i < f->n; i++) {
		const int place = place_of(j, &f->member[i], c->e.to), owner = place < 0 ? -1 : j->claimed[place];
		if (owner < 0)
			continue;
		const vn_name_family *g = &j->family[j->rule[owner].family];
		int                   k = 0;
		while (k < g->n && place_of(j, &g->member[k], j->rule[owner].e.to) != place)
			k++;
		if (k == g->n)
			continue;
		one = (likeness) { 0 };
		compare_pair(j, f->member[i].named, g->member[k].named, place, &one);
		l.owner = owner;
		l.same += one.same;
		l.other_layout += one.other_layout;
		l.unlike = l.unlike ? l.unlike : one.unlike;
	}
	return l;
}

/* Does a rule have a part of this fused product, in some layer? */
static bool has_parts(const proposer *j, const chosen *c, const vn_fused *fused)
{
	const vn_name_family *f = &j->family[c->family];
	for (int i = 0; i < f->n; i++)
		for (int k = 0; k < fused->n; k++) {
			const int place = place_of(j, &f->member[i], (target) { (int)fused->part[k], c->e.to.add });
			if (place >= 0 && j->claimed[place] >= 0)
				return true;
		}
	return false;
}

static vn_status accept_rule(proposer *j, chosen *c)
{
	if (c->e.to.point >= VN_N_POINTS && has_parts(j, c, &vn_fused_of[c->e.to.point - VN_N_POINTS]))
		return VN_OK;
	const vn_name_family *f = &j->family[c->family];
	const likeness        l = compare_families(j, c);
	if (l.owner >= 0) {
		/* near, but never the same: another tensor, as a product before its bias */
		if (!l.same)
			return VN_OK;
		if (l.unlike)
			return add_line(j, &j->out->report, &j->out->n_reports,
			                "%s: has the numbers of %s in some layers or steps, but %s differs: left out", f->from,
			                j->family[j->rule[l.owner].family].from, l.unlike);
		c->copy = true;
		c->other_layout = l.other_layout > 0;
	}
	choose_layout(j, c);
	if (!*c->layout)
		return VN_OK;
	for (int i = 0; i < f->n; i++) {
		const int place = place_of(j, &f->member[i], c->e.to);
		if (place < 0)
			continue;
		j->owner[f->member[i].named] = j->n_rules;
		if (j->claimed[place] < 0)
			j->claimed[place] = j->n_rules;
	}
	j->rule[j->n_rules++] = *c;
	return VN_OK;
}

static int by_evidence(const void *a, const void *b)
{
	const chosen *x = a, *y = b;
	if (x->e.to.point >= VN_N_POINTS || y->e.to.point >= VN_N_POINTS) /* its parts come first */
		if ((x->e.to.point >= VN_N_POINTS) != (y->e.to.point >= VN_N_POINTS))
			return (x->e.to.point >= VN_N_POINTS) - (y->e.to.point >= VN_N_POINTS);
	if (x->e.count[CONFIRMED] != y->e.count[CONFIRMED])
		return y->e.count[CONFIRMED] - x->e.count[CONFIRMED];
	if (x->e.taste != y->e.taste)
		return y->e.taste - x->e.taste;
	if (x->e.sum != y->e.sum)
		return (x->e.sum > y->e.sum) - (x->e.sum < y->e.sum);
	return x->family - y->family;
}

/* If nothing fits at the layer that the names say: does another layer's? */
static vn_status look_at_other_layers(const proposer *j, const vn_name_family *f)
{
	for (int k = -2; k <= 2; k++) {
		bool           ambiguous;
		const evidence e = best_target(j, f, k, &ambiguous);
		if (k != j->add && f->member[0].n >= 0 && 2 * e.count[CONFIRMED] >= f->n && f->n > 1)
			return report_family(j, f, &e, "of another layer than its name says: not mapped");
	}
	return VN_OK;
}

/* If nothing fits what the name says: does something else fit most of its tensors? */
static vn_status look_past_words(const proposer *j, const vn_name_family *f, bool *said)
{
	bool           ambiguous;
	vn_name_family silent = *f;
	silent.words = 0;
	const evidence e = best_target(j, &silent, j->add, &ambiguous);
	*said = isfinite(e.sum) && 2 * e.count[CONFIRMED] >= f->n && vn_words_contradict(f->words, e.to.point);
	return *said ? report_family(j, f, &e, "which its name contradicts: not mapped") : VN_OK;
}

/* Lists the families that may become rules, and reports those that contradict themselves. */
static vn_status choose_targets(proposer *j, chosen *list, int *n)
{
	vn_status st = VN_OK;
	*n = 0;
	for (int f = 0; !st && f < j->n_families; f++) {
		bool           ambiguous;
		const evidence e = best_target(j, &j->family[f], j->add, &ambiguous);
		if (!isfinite(e.sum) || !is_enough(&e)) {
			bool said;
			if (!(st = look_past_words(j, &j->family[f], &said)) && !said)
				st = look_at_other_layers(j, &j->family[f]);
			continue;
		}
		if (e.blocked)
			st = e.count[CONFIRMED] ? report_family(j, &j->family[f], &e, "which its name contradicts: not mapped")
			                        : VN_OK;
		else if (ambiguous)
			st = report_family(j, &j->family[f], &e, "and as often those of another checkpoint: not mapped");
		else
			list[(*n)++] = (chosen) { .family = f, .e = e };
	}
	return st;
}

/* Is the number of this family a layer's? It is if a rule has the same text before it. */
static bool counts_layers(const proposer *j, const vn_name_family *f)
{
	const char *at = strstr(f->from, "{n}");
	for (int k = 0; k < j->n_rules; k++) {
		const vn_name_family *g = &j->family[j->rule[k].family];
		if (g->member[0].n >= 0 && strncmp(g->from, f->from, (size_t)(at - f->from) + 3) == 0)
			return true;
	}
	return false;
}

/* Adds a family of one member of another: NULL without memory. */
static vn_name_family *add_single(proposer *j, int family, int member)
{
	vn_name_family *more = realloc(j->family, ((size_t)j->n_families + 1) * sizeof *more);
	j->family = more ? more : j->family;
	chosen *rule = realloc(j->rule, ((size_t)j->n_families + 2) * sizeof *rule);
	j->rule = rule ? rule : j->rule;
	vn_name_family *own = more ? &more[j->n_families] : NULL;
	if (!own || !rule || !(own->member = malloc(sizeof *own->member)))
		return NULL;
	j->n_families++;
	own->n = 1;
	own->words = j->family[family].words;
	own->member[0] = (vn_member) { -1, j->family[family].member[member].named };
	vn_name_glob(j->named[own->member[0].named].name, own->from);
	return own;
}

/* Tries a single name. in_layers: it may be a checkpoint of a layer. */
static vn_status try_single(proposer *j, chosen *c, bool in_layers)
{
	bool ambiguous;
	c->e = best_target(j, &j->family[c->family], j->add, &ambiguous);
	if (!isfinite(c->e.sum) || !is_enough(&c->e) || c->e.blocked || ambiguous || (c->e.to.add >= 0 && !in_layers))
		return VN_OK;
	return accept_rule(j, c);
}

/* Names that differ in a number which is not a layer's, as those outside the layers may. */
static vn_status split_families(proposer *j)
{
	const int n = j->n_families;
	vn_status st = VN_OK;
	for (int f = 0; !st && f < n; f++) {
		bool owned = j->family[f].n == 1;
		for (int i = 0; i < j->family[f].n && !owned; i++)
			owned = j->owner[j->family[f].member[i].named] >= 0;
		if (owned)
			continue;
		for (int i = 0; !st && !counts_layers(j, &j->family[f]) && i < j->family[f].n; i++) {
			chosen c = { .family = j->n_families };
			st = add_single(j, f, i) ? try_single(j, &c, true) : no_memory(j);
		}
	}
	return st;
}

static vn_status make_rules(proposer *j)
{
	const size_t families = (size_t)j->n_families + 1;
	chosen      *list = calloc(families, sizeof *list);
	int          n = 0;
	j->rule = calloc(families, sizeof *j->rule);
	j->claimed = malloc(((size_t)j->places.n + 1) * sizeof *j->claimed);
	j->owner = malloc(((size_t)j->n_named + 1) * sizeof *j->owner);
	vn_status st = list && j->rule && j->claimed && j->owner ? VN_OK : no_memory(j);
	for (int i = 0; !st && i < j->places.n; i++)
		j->claimed[i] = -1;
	for (int i = 0; !st && i < j->n_named; i++)
		j->owner[i] = -1;
	if (!st)
		st = choose_targets(j, list, &n);
	if (!st)
		qsort(list, (size_t)n, sizeof *list, by_evidence);
	for (int i = 0; !st && i < n; i++)
		st = accept_rule(j, &list[i]);
	free(list);
	return st;
}

/* ---- downstream of a fault ------------------------------------------------------------------- */

/* Is there a sign that the run is faulty: a tensor that is not near the place of its rule, or
 * nothing near the end of the model? */
static bool looks_faulty(const proposer *j)
{
	int last = -1;
	for (int k = 0; k < j->n_rules; k++)
		if (!j->rule[k].ignored && (j->rule[k].e.count[SILENT] || j->rule[k].e.count[LIKELY]))
			return true;
	for (int i = 0; i < j->places.n; i++)
		if (j->claimed[i] >= 0 && j->places.place[i].layer > last)
			last = j->places.place[i].layer;
	return last < vn_recording_layers(j->like) - 1;
}

/* A family without a rule, and a target whose places nothing has. */
typedef struct rest_pair {
	int      family;
	evidence e;
	double   mean; /* distance */
} rest_pair;

static int by_mean(const void *a, const void *b)
{
	const rest_pair *x = a, *y = b;
	return (x->mean > y->mean) - (x->mean < y->mean);
}

static bool is_free(const proposer *j, const vn_name_family *f, target to)
{
	int free = 0;
	for (int i = 0; i < f->n; i++) {
		const int place = place_of(j, &f->member[i], to);
		if (j->owner[f->member[i].named] >= 0 || (place >= 0 && j->claimed[place] >= 0))
			return false;
		free += place >= 0;
	}
	return free == f->n;
}

static vn_status list_pairings(const proposer *j, rest_pair **list, int *n)
{
	for (int f = 0; f < j->n_families; f++) {
		const vn_name_family *family = &j->family[f];
		for (int point = 0; point < VN_N_POINTS + VN_FUSED; point++) {
			const target to = { point, family->member[0].n < 0 ? -1 : j->add };
			if (vn_words_contradict(family->words, point) || !is_free(j, family, to))
				continue;
			const evidence e = weigh(j, family, to);
			rest_pair     *more = e.sum < PERHAPS * family->n ? vn_grown(*list, (size_t)*n, sizeof *more) : NULL;
			if (!more && e.sum < PERHAPS * family->n)
				return no_memory(j);
			if (!more)
				continue;
			*list = more;
			more[(*n)++] = (rest_pair) { f, e, e.sum / family->n };
		}
	}
	return VN_OK;
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
static vn_status match_rest(proposer *j)
{
	vn_status st = VN_OK;
	bool      more = looks_faulty(j);
	while (!st && more) {
		rest_pair *list = NULL;
		int        n = 0, best = -1;
		st = list_pairings(j, &list, &n);
		if (n)
			qsort(list, (size_t)n, sizeof *list, by_mean);
		for (int i = 0; !st && best < 0 && i < n; i++)
			best = stands_out(list, n, i) ? i : -1;
		more = !st && best >= 0;
		const int before = j->n_rules;
		for (int i = 0; more && !st && i < n; i++)
			if (are_twins(&list[i], &list[best])) {
				chosen c = { .family = list[i].family, .e = list[i].e };
				st = accept_rule(j, &c);
			}
		more = more && j->n_rules > before;
		free(list);
	}
	return st;
}

/* ---- by shape ------------------------------------------------------------------------------- */

/* Is this the only tensor without a rule that has the shape of the place? */
static int only_tensor(const proposer *j, int place, int *layout)
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
static vn_status match_shapes(proposer *j)
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
		chosen *c = &j->rule[j->n_rules];
		*c = (chosen) { .family = family, .by_shape = true };
		c->e = weigh(j, &j->family[family], (target) { p->point, p->layer });
		vn_kind_layout(k, &vn_recording_entry(j->r, j->named[named].entry)->shape, layout, c->layout);
		j->owner[named] = j->claimed[i] = j->n_rules++;
	}
	return VN_OK;
}

/* ---- what contradicts ----------------------------------------------------------------------- */

/* A tensor in a later step that has the numbers of the step before or after it. */
static vn_status report_step(proposer *j, const chosen *c, const vn_tensor_name *x, int entry, int place)
{
	const vn_entry *e = vn_recording_entry(j->r, entry);
	double          own = 1, beside = 1;
	vn_status st = vn_spot_in_step(&j->places, j->r, entry, &(vn_in_step) { place, e->step, c->layout }, &own, j->err);
	for (int by = -1; !st && own > NEAR / 10 && by <= 1; by += 2) {
		st = vn_spot_in_step(&j->places, j->r, entry, &(vn_in_step) { place, e->step + by, c->layout }, &beside,
		                     j->err);
		if (!st && beside <= NEAR && beside * MARGIN <= own) {
			char says[2 * VN_NAME_MAX];
			place_name(j, place, says);
			return add_line(j, &j->out->report, &j->out->n_reports,
			                "%s in step %d: its numbers are those of %s in step %d; it is imported in its own step",
			                x->name, e->step, says, e->step + by);
		}
	}
	return st;
}

static vn_status report_steps(proposer *j)
{
	const vn_step *step;
	const int      n = vn_recording_steps(j->r, &step);
	vn_status      st = VN_OK;
	for (int k = 0; !st && k < j->n_rules; k++) {
		const vn_name_family *f = &j->family[j->rule[k].family];
		for (int i = 0; !st && !j->rule[k].ignored && i < f->n; i++) {
			const vn_tensor_name *x = &j->named[f->member[i].named];
			const int             place = place_of(j, &f->member[i], j->rule[k].e.to);
			for (int s = 0; !st && place >= 0 && s < n; s++) {
				const int entry = vn_recording_find(j->r, step[s].number, x->name);
				if (entry >= 0 && entry != x->entry)
					st = report_step(j, &j->rule[k], x, entry, place);
			}
		}
	}
	return st;
}

static vn_status report_members(proposer *j)
{
	vn_status st = VN_OK;
	for (int k = 0; !st && k < j->n_rules; k++) {
		const chosen         *c = &j->rule[k];
		const vn_name_family *f = &j->family[c->family];
		for (int i = 0; !st && !c->ignored && i < f->n; i++) {
			double own, other;
			char   is[2 * VN_NAME_MAX], says[2 * VN_NAME_MAX];
			if (judge_member(j, &f->member[i], c->e.to, &own, &other) != AGAINST)
				continue;
			const int place = place_of(j, &f->member[i], c->e.to);
			place_name(j, place, says);
			place_name(j, nearest_other(j, &j->named[f->member[i].named], place)->place, is);
			st = add_line(j, &j->out->report, &j->out->n_reports,
			              "%s: its numbers are those of %s; as its rule says, it is imported as %s",
			              j->named[f->member[i].named].name, is, says);
		}
	}
	return st;
}

/* Finds the place in the same layer whose numbers this tensor has in another order; -1: none. */
static vn_status find_reordered(proposer *j, const vn_member *m, int *place)
{
	const vn_tensor_name *x = &j->named[m->named];
	const int64_t         n = vn_shape_count(&vn_recording_entry(j->r, x->entry)->shape);
	vn_ranks              mine, theirs;
	vn_status             st = vn_ranks_of(j->r, x->entry, &mine, j->err);
	*place = -1;
	for (int i = 0; !st && mine.rms > 0 && *place < 0 && i < j->places.n; i++) {
		const vn_spot *p = &j->places.place[i];
		if (p->step != x->step || p->n_entries != 1 || (m->n >= 0 && p->layer != m->n + j->add) ||
		    vn_shape_count(&vn_recording_entry(j->like, p->entry[0])->shape) != n)
			continue;
		if (!(st = vn_ranks_of(j->like, p->entry[0], &theirs, j->err)) && vn_ranks_same(&mine, &theirs))
			*place = i;
	}
	return st;
}

/* Of tensors that are near to nothing: those that are only in another order. */
static vn_status report_reordered(proposer *j)
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
			if (vn_recording_entry(j->r, x->entry)->dtype == VN_I32 || (x->n_near && x->near[0].distance <= NEAR))
				continue;
			n++;
			if ((st = find_reordered(j, m, &place)) || place < 0)
				continue;
			place_name(j, place, is);
			st = add_line(j, &j->out->report, &j->out->n_reports, "%s: it has the numbers of %s in another order%s",
			              x->name, is, j->owner[m->named] < 0 ? ": not mapped" : "");
		}
	return st;
}

/* ---- the proposal --------------------------------------------------------------------------- */

/* Members of a rule for which the reference has no layer, such as the last of hidden_states.{n}:
 * names of their own. */
static vn_status split_outside(proposer *j)
{
	const int rules = j->n_rules;
	vn_status st = VN_OK;
	for (int k = 0; !st && k < rules; k++) {
		const chosen         c = j->rule[k];
		const vn_name_family f = j->family[c.family];
		for (int i = 0; !st && f.n > 1 && i < f.n; i++) {
			if (place_of(j, &f.member[i], c.e.to) >= 0)
				continue;
			chosen          single = { .family = j->n_families, .outside = k + 1 };
			vn_name_family *own = add_single(j, c.family, i);
			st = own ? try_single(j, &single, false) : no_memory(j);
			if (!st && j->owner[own->member[0].named] < 0) { /* its family's rule must not take it */
				single.ignored = true;
				j->rule[j->n_rules++] = single;
			}
		}
	}
	return st;
}

static void set_names(const proposer *j, const chosen *c, vn_proposed_rule *to)
{
	const vn_name_family *f = &j->family[c->family];
	const int             layer = f->member[0].n >= 0 ? -2 : c->e.to.add;
	char                  name[2 * VN_NAME_MAX];
	snprintf(to->from, sizeof to->from, "%s", f->from);
	if (c->ignored)
		return;
	snprintf(to->axes, sizeof to->axes, "%s", c->layout);
	target_name(c->e.to.point, layer, c->e.to.add, name);
	const vn_fused *fused = c->e.to.point >= VN_N_POINTS ? &vn_fused_of[c->e.to.point - VN_N_POINTS] : NULL;
	if (!fused)
		snprintf(to->to, sizeof to->to, "%.*s", VN_NAME_MAX - 1, name);
	if (c->e.to.point == VN_POINT_C_ATTN && !has_parts(j, c, &vn_fused_of[0]))
		fused = &vn_fused_of[0];
	for (int i = 0; fused && i < fused->n; i++) {
		target_name((int)fused->part[i], layer, c->e.to.add, name);
		snprintf(to->parts[to->n_parts++], sizeof to->parts[0], "%.*s", VN_NAME_MAX - 1, name);
	}
	if (fused)
		snprintf(to->along, sizeof to->along, "%s", fused->along);
}

static int by_order(const void *a, const void *b)
{
	const vn_proposed_rule *x = a, *y = b;
	return x->order != y->order ? (x->order > y->order) - (x->order < y->order) : strcmp(x->from, y->from);
}

static int order_of(const proposer *j, const chosen *c)
{
	const vn_name_family *f = &j->family[c->family];
	for (int i = 0; !c->ignored && i < f->n; i++) {
		const int place = place_of(j, &f->member[i], c->e.to);
		if (place >= 0)
			return 4 * j->places.place[place].order + 2 + c->copy;
	}
	return 0;
}

static vn_status write_rules(proposer *j)
{
	if (!(j->out->rule = calloc((size_t)j->n_rules + 1, sizeof *j->out->rule)))
		return no_memory(j);
	for (int k = 0; k < j->n_rules; k++) {
		const chosen     *c = &j->rule[k];
		vn_proposed_rule *to = &j->out->rule[j->out->n++];
		set_names(j, c, to);
		to->copy = c->copy && !c->other_layout;
		to->fallback = c->other_layout;
		to->by_shape = c->by_shape;
		to->confirmed = c->e.count[CONFIRMED];
		to->likely = c->e.count[LIKELY];
		to->against = c->e.count[AGAINST];
		to->n = c->ignored ? 1 : j->family[c->family].n - c->e.count[OUT];
		to->worst = c->e.worst;
		to->next = c->e.next;
		to->order = order_of(j, c);
		if (c->outside) {
			const int family = order_of(j, &j->rule[c->outside - 1]) - 1;
			to->order = family < to->order || c->ignored ? family : to->order;
		}
	}
	qsort(j->out->rule, (size_t)j->out->n, sizeof *j->out->rule, by_order);
	return VN_OK;
}

static int own_entry(const proposer *j, int entry)
{
	const int same = vn_recording_entry(j->like, entry)->same_as;
	return same >= 0 ? same : entry;
}

/* A product that is a checkpoint, and also cut into its parts. */
static void mark_parts(const proposer *j, const chosen *c, bool *has)
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

static vn_status list_rest(proposer *j)
{
	vn_status st = VN_OK;
	bool     *has = calloc((size_t)vn_recording_count(j->like) + 1, sizeof *has);
	if (!has)
		return no_memory(j);
	for (int i = 0; i < j->places.n; i++)
		for (int k = 0; j->claimed[i] >= 0 && k < j->places.place[i].n_entries; k++)
			has[own_entry(j, j->places.place[i].entry[k])] = true;
	for (int k = 0; k < j->n_rules; k++)
		mark_parts(j, &j->rule[k], has);
	for (int i = 0; !st && i < j->n_named; i++)
		if (j->owner[i] < 0)
			st = add_line(j, &j->out->left, &j->out->n_left, "%s", j->named[i].name);
	for (int e = 0; !st && e < vn_recording_count(j->like) && vn_recording_entry(j->like, e)->step == 0; e++)
		if (!has[own_entry(j, e)])
			st = add_line(j, &j->out->absent, &j->out->n_absent, "%s", vn_recording_entry(j->like, e)->name);
	free(has);
	j->out->names = j->n_named;
	return st;
}

vn_status vn_propose(vn_recording *r, vn_recording *like, vn_proposal *p, vn_error *err)
{
	proposer  j = { .r = r, .like = like, .out = p, .err = err, .places = { .like = like } };
	vn_status st;
	*p = (vn_proposal) { .n = 0 };
	if (!(st = list_names(&j)) && !(st = measure_all(&j)) &&
	    !(st = vn_families_of(j.named, j.n_named, &j.family, &j.n_families, err))) {
		j.add = choose_add(&j);
		if (!(st = make_rules(&j)) && !(st = split_outside(&j)) && !(st = split_families(&j)) &&
		    !(st = match_rest(&j)) && !(st = match_shapes(&j)) && !(st = report_members(&j)) &&
		    !(st = report_steps(&j)) && !(st = report_reordered(&j)) && !(st = write_rules(&j)))
			st = list_rest(&j);
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
