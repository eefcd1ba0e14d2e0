/* checks.c: see checks.h. The terms are in a tree of tsearch. */
#include "compare/comparison/checks.h"

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

/* NULL: no memory. */
static const vn_check *terms_of(void **tree, const vn_check *k)
{
	vn_check *const *found = tfind(k, tree, order_terms);
	vn_check        *terms = found ? *found : malloc(sizeof *terms);

	if (found || !terms)
		return terms;
	*terms = *k;
	terms->value = 0;
	if (tsearch(terms, tree, order_terms))
		return terms;
	free(terms);
	return NULL;
}

static bool keep_check(void **tree, const vn_check *k, vn_kept_check *to)
{
	const vn_check *terms = terms_of(tree, k);
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

vn_status vn_checks_keep(void **terms, vn_checkpoint *p, const vn_check *check, int n, vn_error *err)
{
	vn_kept_check *list = malloc((size_t)(n ? n : 1) * sizeof *list);
	bool           kept = list != NULL;

	for (int i = 0; i < n && kept; i++)
		kept = keep_check(terms, &check[i], &list[i]);
	if (!kept) {
		free(list);
		return no_memory(p, err);
	}
	free(p->check);
	p->check = list;
	p->n_checks = n;
	return VN_OK;
}

vn_status vn_checks_add(void **terms, vn_checkpoint *p, const vn_check *check, vn_error *err)
{
	vn_kept_check *more = realloc(p->check, ((size_t)p->n_checks + 1) * sizeof *more);

	if (!more)
		return no_memory(p, err);
	p->check = more;
	if (!keep_check(terms, check, &more[p->n_checks]))
		return no_memory(p, err);
	p->n_checks++;
	return VN_OK;
}

vn_status vn_checks_set(void **terms, vn_checkpoint *p, int i, const vn_check *check, vn_error *err)
{
	return keep_check(terms, check, &p->check[i]) ? VN_OK : no_memory(p, err);
}

void vn_checks_drop(vn_checkpoint *p)
{
	free(p->check);
	p->check = NULL;
	p->n_checks = 0;
}

void vn_terms_free(void **terms)
{
	tdestroy(*terms, free);
	*terms = NULL;
}
