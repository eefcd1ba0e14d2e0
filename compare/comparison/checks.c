/* checks.c: see checks.h. The terms are in an open hash table. */
#include "compare/comparison/checks.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

/* Compares bits, so that a NaN equals itself. */
static uint64_t bits_of(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}

static bool same_terms(const vn_check *a, const vn_check *b)
{
	return a->metric == b->metric && a->form == b->form && bits_of(a->limit) == bits_of(b->limit) &&
	       a->has_best == b->has_best && bits_of(a->best) == bits_of(b->best) && a->holds == b->holds &&
	       a->rule == b->rule && a->line == b->line && a->note == b->note && a->steps == b->steps;
}

static uint64_t hash_of(const vn_check *k)
{
	const uint64_t word[] = {
		(uint64_t)k->metric << 8 | (uint64_t)k->form << 2 | (uint64_t)k->has_best << 1 | (uint64_t)k->holds,
		bits_of(k->limit),
		bits_of(k->best),
		(uint64_t)(uintptr_t)k->rule,
		(uint64_t)(uintptr_t)k->note,
		(uint64_t)(unsigned)k->line << 32 | (unsigned)k->steps,
	};
	uint64_t h = 0;
	for (size_t i = 0; i < sizeof word / sizeof *word; i++) {
		h = (h ^ word[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	return h;
}

/* The slot that holds these terms, or the free slot for them. */
static vn_check **slot_of(vn_check **in, size_t room, const vn_check *k)
{
	size_t i = (size_t)hash_of(k) & (room - 1);
	while (in[i] && !same_terms(in[i], k))
		i = (i + 1) & (room - 1);
	return &in[i];
}

static bool grow_table(vn_terms *t)
{
	const size_t room = t->room ? 2 * t->room : FIRST_ROOM;
	vn_check   **more = calloc(room, sizeof *more);

	if (!more)
		return false;
	for (size_t i = 0; i < t->room; i++)
		if (t->slot[i])
			*slot_of(more, room, t->slot[i]) = t->slot[i];
	free(t->slot);
	t->slot = more;
	t->room = room;
	return true;
}

/* NULL: no memory. */
static const vn_check *terms_of(vn_terms *t, const vn_check *k)
{
	if (2 * t->n >= t->room && !grow_table(t))
		return NULL;
	vn_check **slot = slot_of(t->slot, t->room, k);
	if (!*slot && (*slot = malloc(sizeof **slot))) {
		**slot = *k;
		(*slot)->value = 0;
		t->n++;
	}
	return *slot;
}

static bool keep_check(vn_terms *t, const vn_check *k, vn_kept_check *to)
{
	const vn_check *terms = terms_of(t, k);
	if (terms)
		*to = (vn_kept_check) { terms, k->value };
	return terms != NULL;
}

static vn_status no_memory(const vn_checkpoint *p, vn_error *err)
{
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for its checks", p->name);
}

vn_check vn_check_at(const vn_checkpoint *p, int i)
{
	vn_check k = *p->check[i].terms;
	k.value = p->check[i].value;
	return k;
}

vn_status vn_checks_keep(vn_comparison *c, vn_checkpoint *p, const vn_check *check, int n, vn_error *err)
{
	vn_kept_check *list = malloc((size_t)(n ? n : 1) * sizeof *list);
	bool           kept = list != NULL;

	for (int i = 0; i < n && kept; i++)
		kept = keep_check(&c->result.terms, &check[i], &list[i]);
	if (!kept) {
		free(list);
		return no_memory(p, err);
	}
	free(p->check);
	p->check = list;
	p->n_checks = n;
	return VN_OK;
}

vn_status vn_checks_add(vn_comparison *c, vn_checkpoint *p, const vn_check *check, vn_error *err)
{
	vn_kept_check *more = realloc(p->check, ((size_t)p->n_checks + 1) * sizeof *more);

	if (!more)
		return no_memory(p, err);
	p->check = more;
	if (!keep_check(&c->result.terms, check, &more[p->n_checks]))
		return no_memory(p, err);
	p->n_checks++;
	return VN_OK;
}

vn_status vn_checks_set(vn_comparison *c, vn_checkpoint *p, int i, const vn_check *check, vn_error *err)
{
	return keep_check(&c->result.terms, check, &p->check[i]) ? VN_OK : no_memory(p, err);
}

void vn_checks_drop(vn_checkpoint *p)
{
	free(p->check);
	p->check = NULL;
	p->n_checks = 0;
}

void vn_terms_free(vn_terms *t)
{
	for (size_t i = 0; i < t->room; i++)
		free(t->slot[i]);
	free(t->slot);
	*t = (vn_terms) { 0 };
}
