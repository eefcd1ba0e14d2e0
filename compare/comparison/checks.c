/* checks.c: see checks.h. The terms are in a tree of tsearch. */
#include "compare/comparison/checks.h"

#include "libref/base/alloc.h"
#include "libref/base/system.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Any total order. Compares the bits of numbers, so that a NaN equals itself. */
static int order_terms(const void *x, const void *y)
{
	const vn_check *a = x, *b = y;
	int             d = 0;

#define ORDER(field) (d = (a->field > b->field) - (a->field < b->field))
#define BITS(field)  (d = memcmp(&a->field, &b->field, sizeof a->field))
	(void)(ORDER(rule) || ORDER(metric) || ORDER(form) || ORDER(holds) || ORDER(line) || ORDER(steps) || ORDER(note) ||
	       ORDER(has_best) || BITS(limit) || BITS(best));
#undef ORDER
#undef BITS
	return d;
}

static vn_kept_check keep_check(void **tree, const vn_check *k)
{
	vn_check *const *found = tfind(k, tree, order_terms);

	if (!found) {
		vn_check *terms = vn_alloc(1, sizeof *terms);
		*terms = *k;
		terms->value = 0;
		found = vn_alloc_check(tsearch(terms, tree, order_terms));
	}
	return (vn_kept_check) { *found, k->value };
}

vn_check vn_check_at(const vn_checkpoint *p, int i)
{
	vn_check k = *p->check[i].terms;
	k.value = p->check[i].value;
	return k;
}

void vn_checks_keep(void **terms, vn_checkpoint *p, const vn_check *check, int n)
{
	free(p->check);
	p->check = vn_alloc((size_t)n, sizeof *p->check);
	for (int i = 0; i < n; i++)
		p->check[i] = keep_check(terms, &check[i]);
	p->n_checks = n;
}

void vn_checks_add(void **terms, vn_checkpoint *p, const vn_check *check)
{
	p->check = vn_alloc_resized(p->check, (size_t)p->n_checks + 1, sizeof *p->check);
	p->check[p->n_checks++] = keep_check(terms, check);
}

void vn_checks_set(void **terms, vn_checkpoint *p, int i, const vn_check *check)
{
	p->check[i] = keep_check(terms, check);
}

void vn_checks_drop(vn_checkpoint *p)
{
	free(p->check);
	p->check = NULL;
	p->n_checks = 0;
}

void vn_terms_free(void **terms)
{
	vn_tree_free(*terms, free);
	*terms = NULL;
}
