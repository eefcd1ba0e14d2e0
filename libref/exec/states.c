/* states.c: see states.h. */
#include "libref/exec/states.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
	VN_FREED buffer_slot *slots = calloc((size_t)p->n_values + 1, sizeof *slots);
	int                   n = 0;

	s->total = 0;
	s->offset = malloc(((size_t)p->n_values + 1) * sizeof *s->offset);
	s->slot = malloc(((size_t)p->n_values + 1) * sizeof *s->slot);
	if (!slots || !s->offset || !s->slot) {
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
	return true;
}

void vn_slots_finish(vn_slots *s)
{
	VN_FREE(s->offset, s->slot);
	*s = (vn_slots) { 0 };
}

static bool is_growing(const vn_states *s, int state)
{
	return s->plan->state[state].input >= 0;
}

static size_t row_bytes(const vn_states *s, int state)
{
	return (size_t)vn_state_row(&s->plan->state[state]) * s->size;
}

vn_status vn_states_create(vn_states *s, const vn_plan *plan, size_t size, vn_error *err)
{
	*s = (vn_states) { .plan = plan, .size = size };
	if (!(s->kept = calloc((size_t)plan->n_states + 1, sizeof *s->kept)))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for %d states", plan->n_states);
	for (int i = 0; i < plan->n_states; i++) {
		if (is_growing(s, i))
			continue;
		s->kept[i].now = malloc(row_bytes(s, i));
		s->kept[i].next = malloc(row_bytes(s, i));
		if (!s->kept[i].now || !s->kept[i].next) {
			vn_states_destroy(s);
			return vn_fail(err, VN_ERR_NOMEM, "no memory for %d states", plan->n_states);
		}
	}
	return VN_OK;
}

void vn_states_destroy(vn_states *s)
{
	for (int i = 0; s->kept && i < s->plan->n_states; i++)
		VN_FREE(s->kept[i].now, s->kept[i].next);
	free(s->kept);
	*s = (vn_states) { 0 };
}

static vn_status grow_state(vn_states *s, int state, int64_t rows, vn_error *err)
{
	vn_kept *k = &s->kept[state];
	int64_t  room = rows > 2 * k->room ? rows : 2 * k->room;
	char    *p;

	if (rows <= k->room)
		return VN_OK;
	room = room > s->plan->context ? s->plan->context : room;
	if (!(p = realloc(k->now, (size_t)room * row_bytes(s, state))))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the %s of %" PRId64 " tokens", vn_state_word(s->plan, state),
		               room);
	k->now = p;
	k->room = room;
	return VN_OK;
}

vn_status vn_states_begin(vn_states *s, int64_t past, int64_t tokens, vn_error *err)
{
	vn_status st = VN_OK;

	for (int i = 0; i < s->plan->n_states && !st; i++)
		if (is_growing(s, i))
			st = grow_state(s, i, past + tokens, err);
	if (st)
		return st;
	s->past = past;
	s->tokens = tokens;
	for (int i = 0; i < s->plan->n_states; i++) {
		vn_kept *k = &s->kept[i];
		k->made = false;
		if (k->upto > past && (is_growing(s, i) || past == 0))
			k->upto = past; /* entries of a call that was discarded or reset */
		if (past == 0 && !is_growing(s, i))
			memset(k->now, 0, row_bytes(s, i));
	}
	return VN_OK;
}

void vn_states_end(vn_states *s, bool keep)
{
	for (int i = 0; i < s->plan->n_states; i++) {
		vn_kept *k = &s->kept[i];
		if (keep && k->made) {
			char *was = k->now;
			k->now = k->next;
			k->next = was;
			k->upto = s->past + s->tokens;
		}
		k->made = false;
	}
}

void *vn_states_append(vn_states *s, int state, const void *rows)
{
	vn_kept     *k = &s->kept[state];
	const size_t row = row_bytes(s, state);
	char        *to = k->now + (size_t)s->past * row;

	memcpy(to, rows, (size_t)s->tokens * row);
	if (k->upto >= s->past)
		k->upto = s->past + s->tokens;
	return to;
}

bool vn_states_ready(const vn_states *s, int state)
{
	return s->kept[state].upto == s->past + (is_growing(s, state) ? s->tokens : 0);
}

void *vn_states_open(vn_states *s, int state)
{
	vn_kept *k = &s->kept[state];

	if (is_growing(s, state))
		return k->now;
	k->made = false; /* the contents are invalid after a failure */
	memcpy(k->next, k->now, row_bytes(s, state));
	return k->next;
}

void vn_states_made(vn_states *s, int state)
{
	s->kept[state].made = !is_growing(s, state);
}

const void *vn_states_see(const vn_states *s, int state, int64_t *n)
{
	const vn_kept *k = &s->kept[state];

	*n = vn_state_row(&s->plan->state[state]) * (is_growing(s, state) ? s->past + s->tokens : 1);
	return k->made ? k->next : vn_states_ready(s, state) ? k->now : NULL;
}
