/* misshapen.c: finds what a tensor holds that cannot be measured.
 *
 * A shape or axes that differ from the reference's are a finding, whatever the numbers are: nothing
 * is reshaped because it would fit. But the numbers may show what the tensor is: the reference's in
 * another order of axes, which a name map can declare, or another checkpoint (captured before
 * o_proj instead of after it).
 */
#include "compare/profile/misshapen.h"
#include "compare/profile/layout.h"

#include "capture/view/dims.h"
#include "libref/base/alloc.h"
#include "libref/base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bounds, because a comparison should read its files once: misshapen tensors examined, tensors
 * compared with other checkpoints, and numbers read for all of them. */
enum { MOST_EXAMINED = 256, MOST_MATCHED = 32, MOST_NUMBERS = 1 << 26, FEWEST = 16 };

/* The nmse below which two tensors count as alike when no limit on nmse applies. */
#define SHAPE_NMSE 0.01

static double limit_of(const vn_opened *o, const char *name)
{
	vn_limit_set set;
	if (o->request.options->bitwise)
		return 0;
	vn_limits_for(o->request.limits, name, &set);
	for (int f = 0; f < VN_N_FORMS; f++)
		if (f != VN_OVER_FLOOR && set.limit[f][VN_M_NMSE].rule && isfinite(set.limit[f][VN_M_NMSE].value))
			return set.limit[f][VN_M_NMSE].value;
	return SHAPE_NMSE;
}

/* The content of the candidate's tensor, and the checkpoint that it was recognised as. */
typedef struct recognised_tensor {
	vn_layout how;
	int       entry; /* of the reference; -1: none */
} recognised_tensor;

/* limit: below that of the entry's name. split: axes may be parts of its axes. */
static vn_status hold_against(const vn_opened *o, int entry, vn_numbers *cand, bool split, recognised_tensor *f,
                              vn_error *err)
{
	const double limit = limit_of(o, vn_recording_entry(o->ref, entry)->name);
	vn_layout    l;
	vn_numbers  *ref = vn_alloc_check(vn_numbers_open(o->ref, entry, err));
	if (vn_layout_find(ref, cand, split, f->entry >= 0 ? fmin(limit, f->how.nmse / 16) : limit, &l))
		*f = (recognised_tensor) { l, entry };
	const vn_status st = ref->st ? ref->st : cand->st;
	vn_numbers_close(ref);
	return st;
}

/* Looks for another checkpoint that matches far better than its own: neighbours in the residual
 * stream are similar anyway. */
static vn_status hold_against_others(const vn_opened *o, const vn_checkpoint *p, vn_numbers *cand, recognised_tensor *f,
                                     vn_error *err)
{
	vn_status st = VN_OK;
	for (int i = 0; !st && i < vn_recording_count(o->ref); i++) {
		const vn_entry *e = vn_recording_entry(o->ref, i);
		if (i == p->ref || e->step != p->step || e->same_as >= 0 || vn_shape_count(&e->shape) != vn_numbers_count(cand))
			continue;
		st = hold_against(o, i, cand, false, f, err);
	}
	return st;
}

/* Writes the name map or option that would make the two match. */
static void say_map(const vn_layout *l, char *text, size_t room)
{
	if (!*l->axes)
		snprintf(text, room, "; its shape was recorded wrongly");
	else if (*l->to_axes)
		snprintf(text, room, ": declare this order in a name map with axes: \"%s\", to_axes: \"%s\"", l->axes,
		         l->to_axes);
	else
		snprintf(text, room, ": declare this order in a name map with axes: \"%s\"", l->axes);
}

static void describe_contents(const vn_opened *o, vn_checkpoint *p, const recognised_tensor *f)
{
	const vn_layout *l = &f->how;
	char             map[256] = "", text[512];
	if (f->entry != p->ref) {
		if (!l->same)
			snprintf(map, sizeof map, ", in the order '%s'", l->order);
		snprintf(text, sizeof text, "its numbers are those of %s in the reference%s (nmse %.2g)",
		         vn_recording_entry(o->ref, f->entry)->name, map, l->nmse);
	} else {
		say_map(l, map, sizeof map);
		snprintf(text, sizeof text, "it holds the reference's numbers in the %sorder '%s' (nmse %.2g)%s",
		         l->same ? "same " : "", l->order, l->nmse, map);
	}
	free(p->contents);
	p->contents = strdup(vn_text_clean(text, sizeof text)); /* names and axes are untrusted text */
}

static vn_status look_at(const vn_opened *o, vn_checkpoint *p, bool others, int64_t *numbers, vn_error *err)
{
	const vn_entry   *r = vn_recording_entry(o->ref, p->ref), *d = vn_recording_entry(o->cand, p->cand);
	const int64_t     n = vn_shape_count(&d->shape);
	recognised_tensor f = { .entry = -1 };
	vn_status         st = VN_OK;
	if (n < FEWEST || *numbers + n > MOST_NUMBERS)
		return VN_OK;
	*numbers += n;
	vn_numbers *cand = vn_alloc_check(vn_numbers_open(o->cand, p->cand, err));
	if (vn_shape_count(&r->shape) == n)
		st = hold_against(o, p->ref, cand, true, &f, err);
	if (!st && others)
		st = hold_against_others(o, p, cand, &f, err);
	if (!st && f.entry >= 0)
		describe_contents(o, p, &f);
	vn_numbers_close(cand);
	return st;
}

/* Nothing can be recognised in other rows or steps, in integers, or where the reference
 * has no valid axes. */
static bool may_be_examined(const vn_opened *o, const vn_checkpoint *p)
{
	const vn_entry *e = vn_recording_entry(o->ref, p->ref), *f = vn_recording_entry(o->cand, p->cand);
	const vn_step  *r = vn_recording_step(o->ref, p->step), *d = vn_recording_step(o->cand, p->step);
	const char     *axes = vn_entry_axes(e), *why;
	vn_dims         dims;
	return (!*axes || (vn_dims_parse(axes, &dims, &why) && dims.n == e->shape.rank)) && e->dtype != VN_I32 &&
	       f->dtype != VN_I32 && r && d && r->position == d->position && r->tokens == d->tokens &&
	       r->first_row == d->first_row && r->rows == d->rows;
}

vn_status vn_tell_misshapen(const vn_opened *o, vn_checkpoints *all, vn_error *err)
{
	int64_t numbers = 0;
	int     examined = 0;
	for (int i = 0; i < all->n && examined < MOST_EXAMINED; i++) {
		vn_checkpoint *p = &all->of[i];
		vn_error       why;
		if (p->status != VN_MISSHAPEN || p->ref < 0 || p->cand < 0 || !may_be_examined(o, p))
			continue;
		const vn_status st = look_at(o, p, examined++ < MOST_MATCHED, &numbers, &why);
		if (vn_status_ends_job(st)) {
			*err = why;
			return st;
		}
	}
	if (examined) {
		vn_recording_forget(o->ref); /* the pages examined would accumulate */
		vn_recording_forget(o->cand);
	}
	return VN_OK;
}
