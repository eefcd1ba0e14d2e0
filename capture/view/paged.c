/* paged.c: see paged.h. */
#include "capture/view/paged.h"

#include "capture/view/box.h"
#include "capture/view/dims.h"
#include "libref/base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const table_name = "block_table";

static bool is_table(const vn_entry *e)
{
	const char *dot = strrchr(e->name, '.');
	return strcmp(dot ? dot + 1 : e->name, table_name) == 0;
}

/* Finds the axes of blocks and slots; false: the tensor is not paged. */
/* The axes of a paged tensor, two of which are the blocks and the slots of a block. */
typedef struct paged_axes {
	vn_dims dims;
	int     block, slot;
} paged_axes;

static bool in_pages(const vn_entry *e, paged_axes *x)
{
	const char *why;
	if (is_table(e) || !*e->axes || !vn_dims_parse(e->axes, &x->dims, &why) || x->dims.n != e->shape.rank)
		return false;
	x->block = vn_dims_find(&x->dims, "block");
	x->slot = vn_dims_find(&x->dims, "slot");
	return x->block >= 0 && x->slot >= 0;
}

static int table_of(const vn_recording *r, const vn_entry *e)
{
	const char *dot = strchr(e->name, '.');
	char        name[VN_NAME_MAX];
	int         i = -1;
	if (dot && snprintf(name, sizeof name, "%.*s.%s", (int)(dot - e->name), e->name, table_name) < (int)sizeof name)
		i = vn_recording_find(r, e->step, name);
	return i >= 0 ? i : vn_recording_find(r, e->step, table_name);
}

static vn_status gather_blocks(vn_recording *r, vn_recording *made, int entry, const paged_axes *x, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, entry);
	const vn_step  *s = vn_recording_step(r, e->step);
	const char     *path = vn_recording_path(r);
	const int       t = table_of(r, e);
	const int64_t   blocks = e->shape.dim[x->block], slots = e->shape.dim[x->slot], keys = s->position + s->tokens;
	vn_box          box;
	int             key = -1;
	const void     *data;
	vn_status       st;

	if (t < 0)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s is paged, but step %d has no %s", path, e->name, e->step,
		               table_name);
	const vn_entry *table = vn_recording_entry(r, t);
	if (table->dtype != VN_I32 || table->shape.rank != 1)
		return vn_fail(err, VN_ERR_FORMAT, "%s: %s: expected a list of int32", path, table->name);
	const int64_t used_blocks = slots > 0 ? (keys + slots - 1) / slots : 0;
	if (slots < 1 || table->shape.dim[0] < used_blocks)
		return vn_fail(err, VN_ERR_FORMAT,
		               "%s: %s: %" PRId64 " blocks of %" PRId64 " slots do not hold %" PRId64 " tokens", path,
		               table->name, table->shape.dim[0], slots, keys);
	if ((st = vn_recording_data(r, t, &data, err)))
		return st;
	vn_box_begin(&box, 0, entry, e);
	for (int k = 0; k < e->shape.rank; k++) {
		if (k == x->block)
			key = vn_box_axis(&box, x->slot, keys, "key"); /* one block's slots */
		else if (k != x->slot)
			vn_box_axis(&box, k, e->shape.dim[k], x->dims.atom[k].word);
	}
	VN_FREED vn_piece *piece = vn_alloc((size_t)used_blocks, sizeof *piece);
	for (int64_t b = 0; !st && b < used_blocks; b++) {
		int32_t number;
		memcpy(&number, (const unsigned char *)data + (size_t)b * sizeof number, sizeof number);
		if (number < 0 || number >= blocks)
			st = vn_fail(err, VN_ERR_FORMAT, "%s: %s: block %" PRId64 " has number %" PRId32 "; only %" PRId64 " exist",
			             path, table->name, b, number, blocks);
		piece[b] = box.piece;
		piece[b].to[key] = b * slots;
		piece[b].size[key] = keys - b * slots < slots ? keys - b * slots : slots;
		piece[b].from = number * box.stride[x->block];
	}
	vn_recording_release(r, t);
	return st ? st : vn_derive_add(made, &box.made, piece, (int)used_blocks, VN_JOIN_PLACED, err);
}

vn_status vn_paged_gather(vn_recording **r, int *gathered, vn_error *err)
{
	vn_recording *from = *r, *made = NULL;
	paged_axes    axes;
	vn_status     st = VN_OK;

	*gathered = 0;
	for (int i = 0; i < vn_recording_count(from); i++)
		*gathered += in_pages(vn_recording_entry(from, i), &axes);
	if (!*gathered || (st = vn_derive(vn_recording_path(from), r, 1, &made, err)))
		return st;
	*r = made;
	for (int i = 0; !st && i < vn_recording_count(from); i++) {
		const vn_entry *e = vn_recording_entry(from, i);
		if (in_pages(e, &axes))
			st = gather_blocks(from, made, i, &axes, err);
		else if (!is_table(e))
			st = vn_derive_keep(made, e, 0, i, err);
	}
	return st ? st : vn_derive_end(made, err);
}
