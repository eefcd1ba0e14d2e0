/* sentences.c: see sentences.h. */
#include "compare/explain/sentences.h"
#include "compare/explain/sentence_writers.h"

#include "libref/base/text.h"
#include "libref/plan/fault.h"

#include <string.h>

/* The rows of findings.def: words with a place for one number, behind the title of a
 * mistake; or a function. */
static const struct finding_row {
	bool       titled;
	vn_mistake mistake;
	enum { NO_NUMBER, NUMBER, INVERSE, RANGE } with;
	const char         *words;
	vn_sentence_writer *say;
} rows[VN_N_FINDINGS] = {
#define FINDING(name, mistake, digits, with, constant, words) \
	[VN_FINDING_##name] = { false, mistake, with, words, NULL },
#define TITLED(name, mistake, digits, with, constant, words) [VN_FINDING_##name] = { true, mistake, with, words, NULL },
#define SAID(name, mistake, digits, writer)                  [VN_FINDING_##name] = { .say = vn_sentence_##writer },
#include "compare/trial/findings.def"
};

static void put_row(const vn_sentence *s, const struct finding_row *r)
{
	const vn_trial *h = s->h;
	const double    number = r->with == NO_NUMBER ? 0 : vn_trial_number(h);
	char            format[200], range[64];

	snprintf(format, sizeof format, "%s%s",
	         !r->titled                        ? ""
	         : h->applied.kind == VN_BY_NUMBER ? vn_fault_means(h->applied.number.row)
	                                           : vn_mistake_title(r->mistake),
	         r->words);
	switch (r->with) {
	case NO_NUMBER: VN_PUT(s, "%s", format); break;
	case NUMBER: VN_PUT(s, format, number); break;
	case INVERSE: VN_PUT(s, format, 1 / number); break;
	case RANGE: VN_PUT(s, format, vn_sentence_range((int64_t)number, h->first, h->last, range)); break;
	}
}

static void put_words(const vn_sentence *s)
{
	const struct finding_row *r = &rows[s->h->finding];

	if (r->say)
		r->say(s);
	else
		put_row(s, r);
	if (s->h->finding != VN_FINDING_FAULT && s->h->fault[0])
		vn_text_add(s->text, s->size, "; and %s", vn_fault_means(s->h->fault[0] - 1));
	if (s->h->paired)
		vn_text_add(s->text, s->size, "; and %s", VN_FORM(R1));
}

/* ---- where, and what speaks against it ------------------------------------------------------- */

static void put_also(const vn_plan *p, vn_trial *h)
{
	if (h->places == 2)
		snprintf(h->also, sizeof h->also, " and %s", p->value[p->node[h->other].out[0]].name);
	else if (h->places > 2)
		snprintf(h->also, sizeof h->also, " and %d more operations", h->places - 1);
}

/* "in heads 1, 4-7 of 8 only" */
static void put_part(vn_trial *h)
{
	char which[40] = "";
	int  n = 0;

	for (int i = 0; i < h->heads; i++) {
		int last = i;
		n += h->part[i];
		if (!h->part[i] || (i && h->part[i - 1]))
			continue;
		while (last + 1 < h->heads && h->part[last + 1])
			last++;
		vn_text_add(which, sizeof which, last > i ? "%s%d-%d" : "%s%d", *which ? ", " : "", i, last);
	}
	if (strlen(which) >= sizeof which - 1)
		snprintf(h->heads_only, sizeof h->heads_only, "in %d of %d heads only", n, h->heads);
	else if (h->heads)
		snprintf(h->heads_only, sizeof h->heads_only, "in head%s %s of %d only", n > 1 ? "s" : "", which, h->heads);
}

/* That step's answer at the same point which differs only in its number. */
static const vn_trial *in_step(const vn_result *r, const vn_all_findings *all, const vn_findings *x, const vn_trial *h)
{
	for (int i = 0; i < all->n; i++) {
		const vn_checkpoint *p = &r->checkpoints.of[all->of[i].checkpoint];
		for (int k = 0; p->step == h->against_step && strcmp(p->name, r->checkpoints.of[x->checkpoint].name) == 0 &&
		                k < all->of[i].n_alias;
		     k++)
			if (vn_trial_same_place(&all->of[i].by[k], h) && !vn_trial_same(&all->of[i].by[k], h))
				return &all->of[i].by[k];
	}
	return NULL;
}

static void put_against(const vn_result *r, const vn_all_findings *all, const vn_findings *x, vn_trial *h)
{
	const vn_trial *there;

	switch (h->speaks_against) {
	case VN_WRONG_OTHERWISE:
		snprintf(h->contradicted_by, sizeof h->contradicted_by, "step %d is wrong too, but not by this mistake",
		         h->against_step);
		break;
	case VN_RIGHT_THERE:
		snprintf(h->contradicted_by, sizeof h->contradicted_by, "step %d is right, but this mistake would change it",
		         h->against_step);
		break;
	case VN_ONE_QUERY:
		snprintf(h->contradicted_by, sizeof h->contradicted_by,
		         "measured on a single query; no other step confirms it");
		break;
	case VN_ANOTHER_NUMBER:
		there = in_step(r, all, x, h);
		snprintf(h->contradicted_by, sizeof h->contradicted_by, "different in step %d: %.80s", h->against_step,
		         there ? there->words : "");
		break;
	case VN_NOTHING_AGAINST: break;
	}
}

/* ---- what would tell answers apart ----------------------------------------------------------- */

enum { ENOUGH_TO_TELL = 70 }; /* the fewest tokens that show masks, windows and chunks (specs/models.md 8) */

/* Queries and keys, and keys and values in the cache, are made alike. */
static vn_point neighbour_point(vn_point point)
{
	switch (point) {
	case VN_POINT_Q_ROPE: return VN_POINT_K_ROPE;
	case VN_POINT_K_ROPE: return VN_POINT_Q_ROPE;
	case VN_POINT_K_CACHE: return VN_POINT_V_CACHE;
	case VN_POINT_V_CACHE: return VN_POINT_K_CACHE;
	default: return VN_N_POINTS;
	}
}

/* The checkpoint of that name in the step of x; NULL: none. */
static const vn_checkpoint *beside(const vn_result *r, const vn_findings *x, const char *name)
{
	for (int i = 0; name && i < r->checkpoints.n; i++)
		if (r->checkpoints.of[i].step == r->checkpoints.of[x->checkpoint].step &&
		    strcmp(r->checkpoints.of[i].name, name) == 0)
			return &r->checkpoints.of[i];
	return NULL;
}

const char *vn_counterpart(const vn_opened *o, const vn_result *r, const vn_findings *x, const vn_checkpoint **found)
{
	const vn_plan       *p = vn_model_plan(o->model);
	const vn_checkpoint *me = &r->checkpoints.of[x->checkpoint];
	const int            v = vn_plan_find(p, me->name);
	const char          *name = NULL;

	for (int i = 0; v >= 0 && i < p->n_values; i++)
		if (p->value[i].point == neighbour_point(p->value[v].point) && p->value[i].layer == p->value[v].layer)
			name = p->value[i].name;
	*found = beside(r, x, name);
	return name;
}

/* Is h among trials [from, to) of y? Several kinds have no id, so the kind counts, too. */
static bool has_trial(const vn_findings *y, int from, int to, const vn_trial *h)
{
	for (int i = from; i < to; i++)
		if (y->by[i].finding == h->finding && vn_trial_same_place(&y->by[i], h))
			return true;
	return false;
}

bool vn_alias_in_all_steps(const vn_result *r, const vn_all_findings *all, const vn_findings *x, int i)
{
	const char *name = r->checkpoints.of[x->checkpoint].name;

	for (int k = 0; all && k < all->n; k++) {
		const vn_findings *y = &all->of[k];
		if (y == x || strcmp(r->checkpoints.of[y->checkpoint].name, name) != 0 || !y->n_fit ||
		    !vn_trial_same_place(&y->by[0], &x->by[0]))
			continue;
		if (has_trial(y, y->n_fit, y->n, &x->by[i]) && !has_trial(y, 0, y->n_fit, &x->by[i]))
			return false;
	}
	return true;
}

static bool by_capture(const vn_findings *x, const bool *shown)
{
	for (int i = 1; i < x->n_alias; i++)
		if (shown[i] && x->by[i].recorder_fault != x->by[0].recorder_fault)
			return true;
	return false;
}

/* The place of one of the mistakes, if not all are made at the checkpoint's own operation; NULL. */
static const char *apart_words(const vn_opened *o, const vn_result *r, const vn_findings *x, const bool *shown)
{
	const vn_plan *p = vn_model_plan(o->model);
	const int      v = vn_plan_find(p, r->checkpoints.of[x->checkpoint].name),
			  own = v < 0 ? -1 : p->value[vn_plan_root(p, v)].node;
	bool apart = x->by[0].node != own; /* the operation's own point says most */
	int  other = -1;

	for (int i = 0; i < x->n_alias; i++) {
		if (!shown[i])
			continue;
		apart = apart || x->by[i].node != x->by[0].node || x->by[i].places != x->by[0].places ||
		        x->by[i].other != x->by[0].other;
		other = other < 0 && x->by[i].node != own ? x->by[i].node : other;
	}
	return apart && other >= 0 ? p->value[p->node[other].out[0]].name : NULL;
}

static void put_separate(const vn_opened *o, const vn_result *r, const vn_all_findings *all, vn_findings *x)
{
	const char          *name;
	const vn_checkpoint *at;
	bool                 shown[VN_EXPLAIN_KEPT] = { true };
	int                  aliases = 0;

	for (int i = 1; i < x->n_alias; i++)
		aliases += shown[i] = vn_alias_in_all_steps(r, all, x, i);
	if (!aliases)
		return;
	if (!(name = apart_words(o, r, x, shown)) && !by_capture(x, shown))
		name = vn_counterpart(o, r, x, &at);
	at = beside(r, x, name);
	if (at && at->m.n)
		snprintf(x->separating_input, sizeof x->separating_input, "look at %s, which is %s here", name,
		         at->origin ? "also wrong" : "right");
	else if (name)
		snprintf(x->separating_input, sizeof x->separating_input, "a recording that includes %s", name);
	else if (by_capture(x, shown))
		snprintf(x->separating_input, sizeof x->separating_input, "a recording that includes what reads %s",
		         vn_name_in_layer(r->checkpoints.of[x->checkpoint].name));
	else if (vn_recording_tokens(o->cand, NULL, NULL) < ENOUGH_TO_TELL)
		snprintf(x->separating_input, sizeof x->separating_input,
		         "a prompt of %d tokens or more, another layer, or another model", ENOUGH_TO_TELL);
	else
		snprintf(x->separating_input, sizeof x->separating_input,
		         "another layer or another model; here all compute the same numbers");
}

void vn_explain_put_sentences(const vn_opened *o, const vn_result *r, vn_all_findings *x)
{
	const vn_plan *p = o->model ? vn_model_plan(o->model) : NULL;

	for (int i = 0; i < x->n; i++) {
		for (int k = 0; k < x->of[i].n; k++) {
			vn_trial *h = &x->of[i].by[k];
			vn_trial_id(h, h->id);
			put_words(&(vn_sentence) { o, r, &x->of[i], p, h, h->words, sizeof h->words });
			if (p)
				put_also(p, h);
			put_part(h);
		}
		if (p)
			put_separate(o, r, x, &x->of[i]);
	}
	for (int i = 0; i < x->n; i++) /* it may quote an answer of another step */
		for (int k = 0; k < x->of[i].n; k++)
			put_against(r, x, &x->of[i], &x->of[i].by[k]);
}
