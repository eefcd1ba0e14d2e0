/* name_map_place.c: makes a checkpoint of another engine's tensor: axes, parts, sums. */
#include "capture/names/name_map_internal.h"

#include "capture/view/dims.h"
#include "libref/base/alloc.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

vn_status vn_name_map_fail(const vn_name_map_job *j, int rule, const char *format, ...)
{
	char    text[400];
	va_list args;
	va_start(args, format);
	vn_text_print(text, sizeof text, format, args);
	va_end(args);
	const vn_name_map_rule *k = &j->m->rule[rule < 0 ? 0 : rule];
	return vn_fail(j->err, VN_ERR_MISMATCH, "%s:%d:%d: %s: %s", j->m->path, k->line, k->column, vn_recording_path(j->r),
	               text);
}

static vn_looks looks_of(const vn_name_map_job *j, const char *name, int step)
{
	return vn_like_of(j->use->like, name, vn_recording_step(j->r, step));
}

/* ---- one tensor ------------------------------------------------------------------------- */

/* Makes an entry from another engine's, without that engine's labels. */
static vn_entry rename_entry(const vn_entry *from, const char *name)
{
	const char *dot = strchr(name, '.');
	vn_entry    e = *from;
	vn_point    p;
	e.name = name;
	e.point = e.op = e.basis = "";
	e.layer = vn_name_layer(name);
	if (vn_point_from_name(dot ? dot + 1 : name, &p)) {
		e.point = vn_point_get(p)->name;
		e.basis = vn_point_get(p)->basis;
	}
	return e;
}

static void set_axes(vn_entry *e, const char *axes)
{
	e->axes = strlen(axes) < VN_AXES_MAX ? axes : ""; /* no axes rather than truncated ones */
	e->rows_off = false;                              /* it referred to the original rows */
}

/* Keeps a tensor with a shape that does not fit the axes of its rule. The rule's axes stay as its
 * label, so that it is not mistaken for the checkpoint. */
static vn_status keep_shape(vn_name_map_job *j, const vn_name_map_outcome *o, vn_entry *e, const char *said)
{
	const vn_name_map_rule *k = &j->m->rule[o->rule];
	if (k->n_plus || k->cut || k->each)
		return vn_name_map_fail(j, o->rule, "the shape of %s is not '%s'", vn_recording_entry(j->r, o->entry)->name,
		                        said);
	set_axes(e, said);
	return vn_derive_keep(j->made, e, 0, o->entry, j->err);
}

/* Writes `to` as text. A batch of several stays the outermost axis, and keys in blocks
 * keep them (paged.h). */
static bool target_dims(const vn_dims *from, const char *axes, vn_dims *to, char *text, size_t room)
{
	const int   batch = vn_dims_find(from, "batch"), key = vn_axes_find(axes, "key");
	const bool  several = batch >= 0 && from->atom[batch].size > 1 && strncmp(axes, "batch", 5) != 0;
	const bool  paged = key >= 0 && vn_dims_find(from, "block") >= 0 && vn_dims_find(from, "slot") >= 0;
	size_t      n = 0;
	const char *at = paged ? vn_axes_word(axes, key, &n) : axes, *why;
	return snprintf(text, room, "%s%.*s%s%s", several ? "batch " : "", (int)(at - axes), axes,
	                paged ? "block slot" : "", at + n) < (int)room &&
	       *text && vn_dims_parse(text, to, &why);
}

/* Takes this outcome's index of the axis of `each`; returns its offset. */
static int64_t take_index(const vn_name_map_rule *k, const vn_name_map_outcome *o, vn_dims *from)
{
	if (!k->each)
		return 0;
	vn_atom *a = &from->atom[vn_dims_find(from, k->each)];
	a->size = 1;
	return o->n * a->stride;
}

static void limit_cut_axis(const vn_name_map_rule *k, vn_looks *w, vn_dims *from)
{
	/* Limits the axis to the whole length, which a rank may have gathered already.
	 * One rank's part is shorter. */
	const int i = k->cut ? vn_dims_find(from, k->cut) : -1;
	vn_like   whole = *w->like;
	vn_looks  all = *w;
	whole.ranks = 1;
	all.like = &whole;
	const int64_t most = i >= 0 ? vn_looks_size(&all, k->cut) : -1;
	if (most >= 0 && from->atom[i].size > most)
		from->atom[i].size = most;
}

static vn_status place_whole(vn_name_map_job *j, const vn_name_map_outcome *o)
{
	const vn_name_map_rule *k = &j->m->rule[o->rule];
	const vn_entry         *e = vn_recording_entry(j->r, o->entry);
	char                    as[VN_NAME_MAX];
	if (!vn_name_map_name(k->again ? k->again : o->name, o->n, as, sizeof as))
		return vn_name_map_fail(j, o->rule, "the name that %s has again has more than %d bytes", e->name,
		                        VN_NAME_MAX - 1);
	vn_looks    w = looks_of(j, as, e->step);
	vn_entry    made = rename_entry(e, as);
	vn_dims     from, to;
	vn_shape    shape;
	vn_piece   *piece = NULL, *all = NULL;
	const char *ruled = k->either[0] ? k->either_axes[j->chosen[o->rule]] : k->axes;
	const char *why, *axes = ruled ? ruled : e->axes;
	char        text[80];
	int         n = 0;
	vn_status   st = VN_OK;

	made.name = o->name;
	made.again = k->again ? as : NULL;
	if (!ruled && !k->n_plus && !k->cut && (!*e->axes || strcmp(e->axes, w.axes) == 0))
		return vn_derive_keep(j->made, &made, 0, o->entry, j->err);
	if (!vn_dims_parse(*axes ? axes : w.axes, &from, &why) || !vn_dims_fit(&from, &e->shape, vn_looks_size, &w))
		return keep_shape(j, o, &made, axes);
	limit_cut_axis(k, &w, &from);
	const int64_t start = take_index(k, o, &from);
	if (!target_dims(&from,
	                 k->to_axes ? k->to_axes
	                 : *w.axes  ? w.axes
	                            : axes,
	                 &to, text, sizeof text) ||
	    !(piece = vn_dims_pieces(&from, &to, 0, o->entry, &shape, &n)))
		return keep_shape(j, o, &made, axes);
	made.shape = shape;
	set_axes(&made, k->to_axes ? w.axes : text);
	all = vn_alloc((size_t)n * (size_t)(1 + k->n_plus), sizeof *all);
	for (int p = 0; p < n; p++)
		piece[p].from += start;
	memcpy(all, piece, (size_t)n * sizeof *all);
	for (int i = 0; i < k->n_plus; i++) {
		char      term[VN_NAME_MAX];
		const int other = vn_name_map_term(k, i, e->name, term, sizeof term) ? vn_recording_find(j->r, e->step, term)
		                                                                     : -1;
		if (other < 0 || !vn_shape_equal(&vn_recording_entry(j->r, other)->shape, &e->shape)) {
			st = vn_name_map_fail(j, o->rule, "%s and %s are to be added, but their shapes differ", term, e->name);
			goto done;
		}
		for (int p = 0; p < n; p++) {
			all[(i + 1) * n + p] = piece[p];
			all[(i + 1) * n + p].entry = other;
		}
	}
	st = vn_derive_add(j->made, &made, all, n * (1 + k->n_plus), k->n_plus ? VN_JOIN_SUMMED : VN_JOIN_PLACED, j->err);
done:
	VN_FREE(all, piece);
	return st;
}

/* The length of a part along the cut axis, and the axes that replace it. */
static int64_t part_size(vn_looks *w, const vn_dims *from, const vn_dims *to)
{
	int64_t n = 1;
	for (int i = 0; i < to->n; i++)
		if (vn_dims_find(from, to->atom[i].word) < 0) {
			const int64_t size = vn_looks_size(w, to->atom[i].word);
			n = size < 0 || n < 0 ? -1 : n * size;
		}
	return n;
}

/* Replaces atom `along` of `from` by those words of `to` that `from` lacks. */
static bool replace_along(vn_looks *w, const vn_dims *from, int along, const vn_dims *to, vn_dims *out)
{
	*out = *from;
	out->n = 0;
	for (int i = 0; i < from->n; i++) {
		if (i != along) {
			out->atom[out->n++] = from->atom[i];
			continue;
		}
		const int first = out->n;
		for (int t = 0; t < to->n; t++)
			if (vn_dims_find(from, to->atom[t].word) < 0) {
				if (out->n + from->n - i > VN_MOST_ATOMS)
					return false;
				out->atom[out->n] = to->atom[t];
				out->atom[out->n++].size = vn_looks_size(w, to->atom[t].word);
			}
		int64_t step = from->atom[along].stride;
		for (int k = out->n - 1; k >= first; k--) {
			out->atom[k].axis = from->atom[along].axis;
			out->atom[k].stride = step;
			step *= out->atom[k].size;
		}
	}
	return true;
}

static vn_status place_part(vn_name_map_job *j, const vn_name_map_outcome *o)
{
	const vn_name_map_rule *k = &j->m->rule[o->rule];
	const vn_entry         *e = vn_recording_entry(j->r, o->entry);
	vn_looks                own = looks_of(j, o->name, e->step);
	vn_dims                 from, to, mine;
	vn_shape                shape;
	int64_t                 before = 0, total = 0;
	char                    text[80];
	const char             *why;

	if (!vn_dims_parse(k->axes, &from, &why) || !vn_dims_fit(&from, &e->shape, vn_looks_size, &own))
		return vn_name_map_fail(j, o->rule, "the shape of %s is not '%s'", e->name, k->axes);
	const int64_t start = take_index(k, o, &from);
	const int     along = vn_dims_find(&from, k->along);
	for (int i = 0; i < k->n_parts; i++) {
		char name[VN_NAME_MAX];
		vn_name_map_name(k->parts[i], o->n, name, sizeof name);
		vn_looks      w = looks_of(j, name, e->step);
		const int64_t n = *w.axes && target_dims(&from, w.axes, &to, text, sizeof text) ? part_size(&w, &from, &to)
		                                                                                : -1;
		if (n < 0)
			return vn_name_map_fail(j, o->rule, "how much of %s is %s is unknown: %s", e->name, name,
			                        j->use->like->recording ? "the other recording has neither that tensor nor a plan"
			                                                : "give --model MODEL");
		before += i < o->part ? n : 0;
		total += n;
	}
	if (total != from.atom[along].size)
		return vn_name_map_fail(j, o->rule, "%s has %" PRId64 " numbers along %s, its parts take %" PRId64, e->name,
		                        from.atom[along].size, k->along, total);
	if (!target_dims(&from, own.axes, &to, text, sizeof text) || !replace_along(&own, &from, along, &to, &mine))
		return vn_name_map_fail(j, o->rule, "%s cannot be cut out of %s", o->name, e->name);
	int       n;
	vn_piece *piece = vn_dims_pieces(&mine, &to, 0, o->entry, &shape, &n);
	if (!piece)
		return vn_name_map_fail(j, o->rule, "%s cannot be cut out of %s: their axes do not fit", o->name, e->name);
	for (int i = 0; i < n; i++)
		piece[i].from += start + before * from.atom[along].stride;
	vn_entry made = rename_entry(e, o->name);
	made.shape = shape;
	set_axes(&made, text);
	const vn_status st = vn_derive_add(j->made, &made, piece, n, VN_JOIN_PLACED, j->err);
	free(piece);
	return st;
}

vn_status vn_name_map_place(vn_name_map_job *j, const vn_name_map_outcome *o)
{
	if (o->rule == VN_MAP_LEFT)
		return vn_derive_keep(j->made, vn_recording_entry(j->r, o->entry), 0, o->entry, j->err);
	return o->part >= 0 ? place_part(j, o) : place_whole(j, o);
}
