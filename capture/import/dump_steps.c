/* dump_steps.c: which tokens belong to which step, in a dump that does not say; see dump.h. */
#include "capture/import/dump.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One way to divide the ids, and how many tensors have it. */
typedef struct division {
	const int64_t *tokens; /* (n_steps) */
	int            votes;
	bool           uneven; /* not the same length in all steps, which any other axis may have too */
} division;

/* Of each prompt. */
static int64_t tokens_of(const vn_dump *d)
{
	return d->batch ? d->n_ids / d->batch : d->n_ids;
}

VN_ORDER_BY(by_name, vn_array *const, strcmp((*x)->name, (*y)->name), VN_ORDER((*x)->step, (*y)->step))

/* Do arrays [0, n_steps) hold one tensor in each step, with the ids along this axis? */
static bool read_axis(const vn_dump *d, vn_array *const *of, int axis, int64_t *tokens)
{
	int64_t sum = 0;
	for (int k = 0; k < d->n_steps; k++) {
		if (of[k]->step != k || strcmp(of[k]->name, of[0]->name) != 0 || of[k]->shape.rank <= axis)
			return false;
		tokens[k] = of[k]->shape.dim[axis];
		if (tokens[k] < 1 || tokens[k] > tokens_of(d) - sum)
			return false;
		sum += tokens[k];
	}
	return sum == tokens_of(d);
}

/* Adds a vote; tokens are those of the division from then on if it is a new one. */
static void vote(division *list, int *n, const int64_t *tokens, int steps)
{
	for (int i = 0; i < *n; i++)
		if (memcmp(list[i].tokens, tokens, (size_t)steps * sizeof *tokens) == 0) {
			list[i].votes++;
			return;
		}
	bool uneven = false;
	for (int k = 1; k < steps; k++)
		uneven = uneven || tokens[k] != tokens[0];
	list[(*n)++] = (division) { tokens, 1, uneven };
}

static bool is_better(const division *a, const division *b)
{
	return a->votes != b->votes ? a->votes > b->votes : a->uneven && !b->uneven;
}

static void set_steps(vn_dump *d, const int64_t *tokens)
{
	int64_t at = 0;
	for (int k = 0; k < d->n_steps; k++) {
		const int64_t n = tokens ? tokens[k] : k ? 1 : tokens_of(d) - (d->n_steps - 1);
		d->step[k] = (vn_step) { .number = k, .position = at, .tokens = n, .rows = n };
		at += n;
	}
}

void vn_dump_divide(vn_dump *d)
{
	enum { MOST = 16 };
	const int           steps = d->n_steps;
	division            list[MOST], *best = NULL;
	int                 n = 0;
	VN_FREED vn_array **sorted = vn_alloc((size_t)d->n, sizeof *sorted);
	VN_FREED int64_t   *room = vn_alloc_zero(MOST + 1, (size_t)(steps ? steps : 1) * sizeof *room);
	for (int i = 0; i < d->n; i++)
		sorted[i] = &d->array[i];
	qsort(sorted, (size_t)d->n, sizeof *sorted, by_name);
	for (int i = 0; steps > 1 && i + steps <= d->n; i++)
		for (int axis = 0; axis < sorted[i]->shape.rank && n < MOST; axis++)
			if (read_axis(d, sorted + i, axis, room + n * steps))
				vote(list, &n, room + n * steps, steps);
	for (int i = 0; i < n; i++)
		best = !best || is_better(&list[i], best) ? &list[i] : best;
	set_steps(d, best ? best->tokens : NULL);
}
