/* derive.c: see derive.h. */
#include "capture/recording/derive.h"
#include "capture/recording/recording_internal.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- making ---------------------------------------------------------------------------- */

/* Moves what a file says about its run and model from one recording to the other. */
static void move_words(vn_recording *to, vn_recording *from)
{
#define MOVE(field) (to->field = from->field, memset(&from->field, 0, sizeof from->field))
	json_decref(to->root);
	json_decref(to->model);
	MOVE(root), MOVE(model), MOVE(run);
	MOVE(ids), MOVE(n_ids), MOVE(positions), MOVE(n_positions), MOVE(batch);
	MOVE(token_text), MOVE(n_texts);
	MOVE(left_out), MOVE(n_left_out);
	MOVE(weight), MOVE(n_weights);
	MOVE(plan), MOVE(has_plan);
#undef MOVE
	to->complete = from->complete;
}

vn_status vn_derive(const char *path, vn_recording *const *base, int n, vn_recording **out, vn_error *err)
{
	const vn_status st = vn_recording_create(path, out, err);
	vn_recording   *r = *out;
	if (st)
		return st;
	r->base = vn_alloc((size_t)n, sizeof *r->base);
	r->step = vn_alloc((size_t)base[0]->n_steps, sizeof *r->step);
	r->n_bases = n;
	memcpy(r->base, base, (size_t)n * sizeof *r->base);
	r->n_steps = base[0]->n_steps;
	if (r->n_steps)
		memcpy(r->step, base[0]->step, (size_t)r->n_steps * sizeof *r->step);
	move_words(r, base[0]);
	return VN_OK;
}

vn_status vn_derive_nothing(const char *path, vn_recording **out, vn_error *err)
{
	const vn_status st = vn_recording_create(path, out, err);
	if (st)
		return st;
	(*out)->complete = true;
	return vn_recording_sort(*out, err);
}

void vn_derive_tokens(vn_recording *r, int32_t *ids, int32_t *positions, int64_t n)
{
	VN_FREE(r->ids, r->positions);
	r->ids = ids;
	r->positions = positions;
	r->n_ids = r->n_positions = n;
	r->batch = 0;
	for (int i = 0; i < r->n_texts; i++)
		free(r->token_text[i]);
	free(r->token_text);
	r->token_text = NULL;
	r->n_texts = 0;
}

void vn_derive_steps(vn_recording *r, const vn_step *step, int n)
{
	memcpy(r->step, step, (size_t)n * sizeof *step);
	r->n_steps = n;
}

void vn_derive_ranks(vn_recording *r, int n)
{
	r->ranks = n;
}

void vn_derive_forget_model(vn_recording *r)
{
	r->n_weights = 0;
	vn_plan_destroy(r->plan);
	r->plan = NULL;
	r->has_plan = false;
}

/* The address tells when two derived tensors are one, which they are if their sources are one. */
enum { KEPT = 1, GATHERED = 2 };
static uint64_t address_of(int kind, int base, int entry)
{
	return (uint64_t)kind << 60 | (uint64_t)base << 32 | (uint64_t)entry;
}

/* Takes ownership of `gathered`. */
static vn_status add_gathered(vn_recording *r, const vn_entry *e, uint64_t address, vn_gathered *gathered,
                              vn_error *err)
{
	const vn_entry_source s = { .offset = -1,
		                        .address = address,
		                        .bytes = vn_shape_count(&e->shape) * (int64_t)vn_dtype_size(e->dtype),
		                        .gathered = gathered };
	if (vn_recording_add(r, e, &s))
		return VN_OK;
	free(gathered);
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for %d derived tensors", r->path, r->n_entries + 1);
}

vn_status vn_derive_keep(vn_recording *r, const vn_entry *e, int base, int entry, vn_error *err)
{
	const vn_recording *b = r->base[base];
	const int           root = b->entry[entry].same_as >= 0 ? b->entry[entry].same_as : entry;
	const vn_entry     *from = &b->entry[root];
	const vn_stats     *stats = vn_recording_stats(b, from);
	vn_entry            kept = *e;
	kept.digest = from->digest;
	kept.has_digest = from->has_digest;
	kept.viewed = from->viewed;
	kept.stats = 0;
	if (stats)
		vn_alloc_check(vn_recording_keep_stats(r, &kept, stats) ? r : NULL);
	kept.dtype = from->dtype;
	vn_gathered *gathered = vn_alloc(1, sizeof *gathered);
	*gathered = (vn_gathered) { .whole = true, .base = base, .entry = root, .n = 1 };
	return add_gathered(r, &kept, address_of(KEPT, base, root), gathered, err);
}

/* Whether this box is the whole source in its own order. */
static bool is_whole(const vn_recording *r, const vn_entry *e, const vn_piece *p)
{
	int64_t step = 1;
	for (int k = e->shape.rank - 1; k >= 0; k--) {
		if (p->to[k] != 0 || p->size[k] != e->shape.dim[k] || (p->size[k] > 1 && p->stride[k] != step))
			return false;
		step *= p->size[k];
	}
	return p->from == 0 && step == vn_shape_count(&r->base[p->base]->entry[p->entry].shape);
}

vn_status vn_derive_add(vn_recording *r, const vn_entry *e, const vn_piece *piece, int n, vn_joined how, vn_error *err)
{
	if (n == 1 && is_whole(r, e, &piece[0]))
		return vn_derive_keep(r, e, piece[0].base, piece[0].entry, err);
	vn_gathered *gathered = vn_alloc_zero(1, sizeof *gathered + (size_t)n * sizeof *piece);
	gathered->how = how;
	gathered->n = n;
	memcpy(gathered->piece, piece, (size_t)n * sizeof *piece);
	vn_entry made = *e;
	made.has_digest = false;
	made.stats = 0;
	if (n)
		made.dtype = r->base[piece[0].base]->entry[piece[0].entry].dtype;
	if (how == VN_JOIN_SUMMED)
		made.dtype = made.dtype == VN_F64 ? VN_F64 : VN_F32;
	return add_gathered(r, &made, address_of(GATHERED, 0, r->n_entries), gathered, err);
}

vn_status vn_derive_end(vn_recording *r, vn_error *err)
{
	return vn_recording_sort(r, err);
}

static int add_origins(const vn_recording *r, int i, int *list, int n, int room)
{
	const vn_entry_source *s = &r->source[vn_recording_primary(r, i)];
	if (!s->gathered) {
		for (int k = 0; k < n; k++)
			if (list[k] == i)
				return n;
		if (n < room)
			list[n++] = i;
		return n;
	}
	for (int k = 0; k < s->gathered->n; k++) {
		int                 entry;
		const vn_recording *of = vn_gathered_part(r, s->gathered, k, &entry);
		n = add_origins(of, entry, list, n, room);
	}
	return n;
}

int vn_derive_origins(const vn_recording *r, int i, int *list, int room)
{
	return add_origins(r, i, list, 0, room);
}

bool vn_derive_is_sum(const vn_recording *r, int i)
{
	const vn_gathered *g = r->source[vn_recording_primary(r, i)].gathered;
	bool               sum = g && g->how == VN_JOIN_SUMMED;
	for (int k = 0; g && !sum && k < g->n; k++) {
		int                 entry;
		const vn_recording *of = vn_gathered_part(r, g, k, &entry);
		sum = vn_derive_is_sum(of, entry);
	}
	return sum;
}

bool vn_derive_in_pieces(const vn_recording *r, int i)
{
	const vn_entry_source *s = &r->source[i = vn_recording_primary(r, i)];
	bool                   all = !s->view && s->gathered && !s->gathered->whole;
	for (int k = 0; all && k < s->gathered->n; k++)
		all = vn_recording_mapped(r->base[s->gathered->piece[k].base], s->gathered->piece[k].entry);
	return all;
}
