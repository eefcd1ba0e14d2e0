/* slots.c: see slots.h. First fit, in execution order: a freed slot is taken by the next value that
 * fits. Layers repeat, so from the second layer on everything fits where the first layer was. */
#include "libref/exec/slots.h"

#include <stdlib.h>

typedef struct buffer_slot {
	int64_t offset, size;
	int     free_after;
} buffer_slot;

/* The smallest free slot that is large enough. */
static int best_slot(const buffer_slot *slots, int n, int node, int64_t size)
{
	int found = -1;
	for (int i = 0; i < n; i++)
		if (slots[i].free_after < node && slots[i].size >= size && (found < 0 || slots[i].size < slots[found].size))
			found = i;
	return found;
}

bool vn_slots_assign(vn_slots *s, const vn_plan *p)
{
	buffer_slot *slots = calloc((size_t)p->n_values + 1, sizeof *slots);
	int          n = 0;

	s->total = 0;
	s->offset = malloc(((size_t)p->n_values + 1) * sizeof *s->offset);
	s->slot = malloc(((size_t)p->n_values + 1) * sizeof *s->slot);
	if (!slots || !s->offset || !s->slot) {
		free(slots);
		vn_slots_finish(s);
		return false;
	}
	for (int v = 0; v < p->n_values; v++) {
		const vn_value *x = &p->value[v];
		s->offset[v] = s->slot[v] = -1;
		if (x->alias_of >= 0 || x->state >= 0 || vn_value_streams(p, v))
			continue;
		int64_t row = vn_value_row(x);
		int     i = best_slot(slots, n, x->node, row);
		if (i < 0) {
			slots[i = n++] = (buffer_slot) { s->total, row, 0 };
			s->total += row;
		}
		/* an unread value is free after its own node */
		slots[i].free_after = x->last_use > x->node ? x->last_use : x->node;
		s->offset[v] = slots[i].offset;
		s->slot[v] = i;
	}
	s->n = n;
	free(slots);
	return true;
}

void vn_slots_finish(vn_slots *s)
{
	free(s->offset);
	free(s->slot);
	*s = (vn_slots) { 0 };
}
