/* isolate.c: see isolate.h. */
#include "compare/isolate/isolate.h"

#include <stdlib.h>
#include <string.h>

typedef struct answer {
	bool good;
	bool on[]; /* (n) */
} answer;

typedef struct search {
	int        n;
	vn_oracle *ask;
	void      *ctx;
	int        runs;
	answer   **known;
	int        n_known, room;
	bool      *on;      /* (n) the set at hand */
	int       *list;    /* (n) what is left of it, by number */
	int        n_list;
} search;

static vn_status remember(search *s, bool good, vn_error *err)
{
	if (s->n_known == s->room) {
		const int room = s->room ? 2 * s->room : 64;
		answer  **more = realloc(s->known, (size_t)room * sizeof *more);
		if (!more)
			return vn_fail(err, VN_ERR_NOMEM, "no memory for the answers of %d runs", room);
		s->known = more;
		s->room = room;
	}
	answer *a = malloc(sizeof *a + (size_t)s->n);
	if (!a)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the answer of a run");
	a->good = good;
	memcpy(a->on, s->on, (size_t)s->n);
	s->known[s->n_known++] = a;
	return VN_OK;
}

/* Of the set in s->on. */
static vn_status test(search *s, bool *good, vn_error *err)
{
	vn_status st;

	for (int i = 0; i < s->n_known; i++)
		if (memcmp(s->known[i]->on, s->on, (size_t)s->n) == 0) {
			*good = s->known[i]->good;
			return VN_OK;
		}
	s->runs++;
	st = s->ask(s->ctx, s->on, good, err);
	return st ? st : remember(s, *good, err);
}

/* Of members [from, to) of the list, or of all others. */
static vn_status test_part(search *s, int from, int to, bool others, bool *good, vn_error *err)
{
	memset(s->on, 0, (size_t)s->n);
	for (int i = 0; i < s->n_list; i++)
		s->on[s->list[i]] = (i >= from && i < to) != others;
	return test(s, good, err);
}

static void keep_part(search *s, int from, int to, bool others)
{
	int n = 0;
	for (int i = 0; i < s->n_list; i++)
		if ((i >= from && i < to) != others)
			s->list[n++] = s->list[i];
	s->n_list = n;
}

/* The list, whose set is good, becomes a minimal one. */
static vn_status ddmin(search *s, vn_error *err)
{
	int parts = 2;

	while (s->n_list >= 2) {
		bool      cut = false, good;
		vn_status st;
		/* One part alone; then all but one part, which of two is the same. */
		for (int others = 0; others < (parts > 2 ? 2 : 1) && !cut; others++)
			for (int i = 0; i < parts && !cut; i++) {
				const int from = (int)((long long)s->n_list * i / parts), to = (int)((long long)s->n_list * (i + 1) / parts);
				if ((st = test_part(s, from, to, others, &good, err)))
					return st;
				if (!good)
					continue;
				keep_part(s, from, to, others);
				parts = others && parts > 2 ? parts - 1 : 2;
				cut = true;
			}
		if (!cut && parts >= s->n_list)
			break;
		if (!cut)
			parts = 2 * parts < s->n_list ? 2 * parts : s->n_list;
		else if (parts > s->n_list)
			parts = s->n_list;
	}
	return VN_OK;
}

/* A set that is good to begin with: the first hint that is, without what was found, or all that is left.
 * false in *any: none is. */
static vn_status start(search *s, const bool *const *hint, int n_hints, const bool *gone, bool *any, vn_error *err)
{
	vn_status st = VN_OK;

	*any = false;
	for (int h = 0; h <= n_hints && !*any && !st; h++) {
		s->n_list = 0;
		for (int i = 0; i < s->n; i++)
			if (!gone[i] && (h == n_hints || hint[h][i]))
				s->list[s->n_list++] = i;
		if (s->n_list > 0)
			st = test_part(s, 0, s->n_list, false, any, err);
	}
	return st;
}

/* The list joins the sets, if the oracle says of it what it said before. */
static vn_status join(search *s, bool *gone, vn_isolated *x, vn_error *err)
{
	bool      good;
	vn_status st;
	int       at = x->n_sets;

	memset(s->on, 0, (size_t)s->n);
	for (int i = 0; i < s->n_list; i++)
		s->on[s->list[i]] = gone[s->list[i]] = true;
	s->runs++;
	if ((st = s->ask(s->ctx, s->on, &good, err)))
		return st;
	if (!good)
		return vn_fail(err, VN_ERR_UNSUPPORTED, "the same replacements gave a good run once and a bad run once: the run or its check is not deterministic");
	bool *set = malloc((size_t)s->n + 1);
	if (!set)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d toggles", s->n);
	memcpy(set, s->on, (size_t)s->n);
	for (; at > 0 && x->size[at - 1] > s->n_list; at--) {
		x->set[at] = x->set[at - 1];
		x->size[at] = x->size[at - 1];
	}
	x->set[at] = set;
	x->size[at] = s->n_list;
	x->n_sets++;
	return VN_OK;
}

static vn_status run(search *s, const bool *const *hint, int n_hints, bool *gone, vn_isolated *x, vn_error *err)
{
	bool      any;
	vn_status st = test(s, &x->healthy, err); /* none is on */

	if (st || x->healthy)
		return st;
	memset(s->on, 1, (size_t)s->n);
	if ((st = test(s, &x->helps, err)) || !x->helps)
		return st;
	do {
		if ((st = start(s, hint, n_hints, gone, &any, err)) || !any || (x->more = x->n_sets == VN_MOST_SETS))
			return st;
		if ((st = ddmin(s, err)) || (st = join(s, gone, x, err)))
			return st;
	} while (true);
}

vn_status vn_isolate(int n, vn_oracle *ask, void *ctx, const bool *const *hint, int n_hints, vn_isolated *x, vn_error *err)
{
	search    s = { .n = n, .ask = ask, .ctx = ctx, .on = calloc((size_t)n + 1, 1), .list = calloc((size_t)n + 1, sizeof(int)) };
	bool     *gone = calloc((size_t)n + 1, sizeof *gone);
	vn_status st;

	*x = (vn_isolated){ .n = n };
	if (!s.on || !s.list || !gone)
		st = vn_fail(err, VN_ERR_NOMEM, "no memory for %d toggles", n);
	else
		st = run(&s, hint, n_hints, gone, x, err);
	x->runs = s.runs;
	for (int i = 0; i < s.n_known; i++)
		free(s.known[i]);
	free(s.known);
	free(s.list);
	free(s.on);
	free(gone);
	return st;
}

void vn_isolated_finish(vn_isolated *x)
{
	for (int i = 0; i < x->n_sets; i++)
		free(x->set[i]);
	*x = (vn_isolated){ 0 };
}
