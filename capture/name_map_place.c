/* name_map_place.c: one tensor of theirs as a checkpoint of ours: axes, parts, sums. */
#include "capture/name_map_inside.h"

#include "capture/dims.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how long axes are ------------------------------------------------------------------ */

static void note_length(vn_map_job *j, const char *word, size_t n, int64_t size)
{
	int i = 0;
	while (i < j->n_lengths && (strlen(j->length[i].word) != n || memcmp(j->length[i].word, word, n) != 0))
		i++;
	if (i == j->n_lengths) {
		if (i == VN_MAP_WORDS || n >= sizeof j->length[i].word)
			return;
		memcpy(j->length[i].word, word, n);
		j->length[i].word[n] = '\0';
		j->length[j->n_lengths++].size = size;
	} else if (j->length[i].size != size) {
		j->length[i].size = -1;
	}
}

static void note_lengths(vn_map_job *j, const char *axes, const vn_shape *shape)
{
	for (int k = 0; k < shape->rank && *axes; k++) {
		const size_t n = strcspn(axes, " ");
		note_length(j, axes, n, shape->dim[k]);
		axes += n;
		axes += strspn(axes, " ");
	}
}

/* Axes that always mean the same number in one model. */
void vn_map_lengths(vn_map_job *j)
{
	const vn_recording *like = j->use->like;
	const vn_plan *plan = like ? vn_recording_plan(like) : NULL;
	for (int i = 0; like && !plan && i < vn_recording_count(like); i++)
		note_lengths(j, vn_entry_axes(vn_recording_entry(like, i)), &vn_recording_entry(like, i)->shape);
	for (int i = 0; plan && i < plan->n_values; i++) {
		const vn_shape shape = vn_value_shape(&plan->value[i], 1, 1);
		note_lengths(j, vn_point_get(plan->value[i].point)->axes, &shape);
	}
}

/* Of one rank of several (specs/models.md, chapter 8). */
static int64_t of_rank(const vn_map_job *j, const char *word, int64_t size)
{
	static const char *const sharded[] = { "head", "kv_head", "ffn", "vocab", "qkv", "lin_key", "lin_head", "lin_mix" };
	for (size_t i = 0; size > 0 && j->use->ranks > 1 && i < sizeof sharded / sizeof *sharded; i++)
		if (strcmp(word, sharded[i]) == 0)
			return strcmp(word, "kv_head") == 0 && size < j->use->ranks ? 1 : size / j->use->ranks;
	return size;
}

static const vn_step *step_of(const vn_recording *r, int number)
{
	const vn_step *s;
	const int n = vn_recording_steps(r, &s);
	for (int i = 0; i < n; i++)
		if (s[i].number == number)
			return &s[i];
	return NULL;
}

/* A checkpoint of ours as it is meant to be: its axes and how long they are. */
typedef struct wanted {
	const vn_map_job *j;
	char       axes[72];
	vn_shape   shape; /* rank 0: not known */
	int64_t    rows;
} wanted;

static wanted wanted_of(const vn_map_job *j, const char *name, int step)
{
	const vn_recording *like = j->use->like;
	const vn_plan *plan = like ? vn_recording_plan(like) : NULL;
	const int entry = like ? vn_recording_find(like, step, name) : -1, value = plan ? vn_plan_find(plan, name) : -1;
	const vn_step *s = step_of(j->r, step);
	const char *dot = strchr(name, '.');
	wanted w = { .j = j, .rows = s ? s->rows : -1 };
	vn_point p;
	if (entry >= 0 && *vn_entry_axes(vn_recording_entry(like, entry))) {
		snprintf(w.axes, sizeof w.axes, "%s", vn_entry_axes(vn_recording_entry(like, entry)));
		w.shape = vn_recording_entry(like, entry)->shape;
	} else if (value >= 0) {
		snprintf(w.axes, sizeof w.axes, "%s", vn_point_get(plan->value[value].point)->axes);
		w.shape = vn_value_shape(&plan->value[value], s ? s->tokens : 0, s ? s->position + s->tokens : 0);
	} else if (vn_point_from_name(dot ? dot + 1 : name, &p)) {
		snprintf(w.axes, sizeof w.axes, "%s", vn_point_get(p)->axes);
	}
	return w;
}

static int64_t size_of(void *context, const char *word)
{
	const wanted *w = context;
	vn_dims d;
	const char *why;
	if (strcmp(word, "token") == 0)
		return w->rows;
	if (*w->axes && vn_dims_parse(w->axes, &d, &why)) {
		const int i = vn_dims_find(&d, word);
		if (i >= 0 && i < w->shape.rank)
			return of_rank(w->j, word, w->shape.dim[i]);
	}
	for (int i = 0; i < w->j->n_lengths; i++)
		if (strcmp(w->j->length[i].word, word) == 0)
			return of_rank(w->j, word, w->j->length[i].size);
	return -1;
}

/* ---- one tensor ------------------------------------------------------------------------- */

/* An entry of ours made of an entry of theirs: words of another engine are not said of it. */
static vn_entry named(const vn_entry *from, const char *name)
{
	const char *dot = strchr(name, '.');
	vn_entry e = *from;
	vn_point p;
	int64_t  layer = -1;
	snprintf(e.name, sizeof e.name, "%s", name);
	e.point[0] = e.op[0] = e.basis[0] = '\0';
	e.layer = strncmp(name, "layer", 5) == 0 && vn_text_digits(name + 5, &layer) ? (int)layer : -1;
	if (vn_point_from_name(dot ? dot + 1 : name, &p)) {
		snprintf(e.point, sizeof e.point, "%s", vn_point_get(p)->name);
		snprintf(e.basis, sizeof e.basis, "%s", vn_point_get(p)->basis);
	}
	return e;
}

static void label(vn_entry *e, const char *axes)
{
	const size_t n = strlen(axes) < sizeof e->axes ? strlen(axes) : 0; /* none is better than half */
	memcpy(e->axes, axes, n);
	e->axes[n] = '\0';
}

static vn_status keep_shape(vn_map_job *j, const vn_map_outcome *o, vn_entry *e)
{
	e->axes[0] = '\0';
	return vn_derive_keep(j->made, e, 0, o->entry, j->err);
}

/* `to` as text: a batch of several stays the outermost axis. */
static bool target_dims(const vn_dims *from, const char *axes, vn_dims *to, char *text, size_t room)
{
	const int batch = vn_dims_find(from, "batch");
	const char *why;
	const bool several = batch >= 0 && from->atom[batch].size > 1 && strncmp(axes, "batch", 5) != 0;
	return snprintf(text, room, "%s%s", several ? "batch " : "", axes) < (int)room && *text && vn_dims_parse(text, to, &why);
}

static void cut(const vn_map_rule *k, wanted *w, vn_dims *from)
{
	const int i = k->cut ? vn_dims_find(from, k->cut) : -1;
	const int64_t most = i >= 0 ? size_of(w, k->cut) : -1;
	if (most >= 0 && from->atom[i].size > most)
		from->atom[i].size = most;
}

static vn_status place_whole(vn_map_job *j, const vn_map_outcome *o)
{
	const vn_map_rule *k = &j->m->rule[o->rule];
	const vn_entry    *e = vn_recording_entry(j->r, o->entry);
	wanted    w = wanted_of(j, o->name, e->step);
	vn_entry  made = named(e, o->name);
	vn_dims   from, to;
	vn_shape  shape;
	vn_piece *piece = NULL, *all = NULL;
	const char *why, *axes = k->axes ? k->axes : e->axes;
	char      text[80];
	int       n = 0;
	vn_status st = VN_OK;

	if (!k->axes && !k->n_plus && !k->cut && (!*e->axes || strcmp(e->axes, w.axes) == 0))
		return vn_derive_keep(j->made, &made, 0, o->entry, j->err);
	if (!vn_dims_parse(*axes ? axes : w.axes, &from, &why) || !vn_dims_fit(&from, &e->shape, size_of, &w))
		return keep_shape(j, o, &made);
	cut(k, &w, &from);
	if (!target_dims(&from, k->to_axes ? k->to_axes : *w.axes ? w.axes : axes, &to, text, sizeof text)
	    || !(piece = vn_dims_pieces(&from, &to, 0, o->entry, &shape, &n)))
		return keep_shape(j, o, &made);
	made.shape = shape;
	label(&made, k->to_axes ? w.axes : text);
	if (!(all = malloc((size_t)n * (size_t)(1 + k->n_plus) * sizeof *all))) {
		st = vn_fail(j->err, VN_ERR_NOMEM, "%s: no memory for %s", vn_recording_path(j->r), o->name);
		goto done;
	}
	memcpy(all, piece, (size_t)n * sizeof *all);
	for (int i = 0; i < k->n_plus; i++) {
		char term[VN_NAME_MAX];
		const int other = vn_map_name(k->plus[i], o->n, term, sizeof term) ? vn_recording_find(j->r, e->step, term) : -1;
		if (other < 0 || !vn_shape_equal(&vn_recording_entry(j->r, other)->shape, &e->shape)) {
			st = vn_map_fail(j, o->rule, "%s has another shape than %s, and they are to be added", term, e->name);
			goto done;
		}
		for (int p = 0; p < n; p++) {
			all[(i + 1) * n + p] = piece[p];
			all[(i + 1) * n + p].entry = other;
		}
	}
	st = vn_derive_add(j->made, &made, all, n * (1 + k->n_plus), k->n_plus ? VN_JOIN_SUMMED : VN_JOIN_PLACED, j->err);
done:
	free(all);
	free(piece);
	return st;
}

/* How much of the cut axis a part takes, and its axes in place of it. */
static int64_t part_size(wanted *w, const vn_dims *from, const vn_dims *to)
{
	int64_t n = 1;
	for (int i = 0; i < to->n; i++)
		if (vn_dims_find(from, to->atom[i].word) < 0) {
			const int64_t size = size_of(w, to->atom[i].word);
			n = size < 0 || n < 0 ? -1 : n * size;
		}
	return n;
}

/* from with its atom `along` replaced by the words of to that it does not have. */
static bool replace_along(wanted *w, const vn_dims *from, int along, const vn_dims *to, vn_dims *out)
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
				out->atom[out->n++].size = size_of(w, to->atom[t].word);
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

static vn_status place_part(vn_map_job *j, const vn_map_outcome *o)
{
	const vn_map_rule *k = &j->m->rule[o->rule];
	const vn_entry    *e = vn_recording_entry(j->r, o->entry);
	wanted    own = wanted_of(j, o->name, e->step);
	vn_dims   from, to, mine;
	vn_shape  shape;
	int64_t   before = 0, total = 0;
	char      text[80];
	const char *why;

	if (!vn_dims_parse(k->axes, &from, &why) || !vn_dims_fit(&from, &e->shape, size_of, &own))
		return vn_map_fail(j, o->rule, "the shape of %s is not '%s'", e->name, k->axes);
	const int along = vn_dims_find(&from, k->along);
	for (int i = 0; i < k->n_parts; i++) {
		char name[VN_NAME_MAX];
		vn_map_name(k->parts[i], o->n, name, sizeof name);
		wanted w = wanted_of(j, name, e->step);
		const int64_t n = *w.axes && target_dims(&from, w.axes, &to, text, sizeof text) ? part_size(&w, &from, &to) : -1;
		if (n < 0)
			return vn_map_fail(j, o->rule, "how much of %s is %s: the other recording has neither it nor a plan", e->name, name);
		before += i < o->part ? n : 0;
		total += n;
	}
	if (total != from.atom[along].size)
		return vn_map_fail(j, o->rule, "%s has %" PRId64 " numbers along %s, its parts take %" PRId64, e->name, from.atom[along].size, k->along, total);
	if (!target_dims(&from, own.axes, &to, text, sizeof text) || !replace_along(&own, &from, along, &to, &mine))
		return vn_map_fail(j, o->rule, "%s cannot be cut out of %s", o->name, e->name);
	int n;
	vn_piece *piece = vn_dims_pieces(&mine, &to, 0, o->entry, &shape, &n);
	if (!piece)
		return vn_map_fail(j, o->rule, "%s cannot be cut out of %s: their axes do not fit", o->name, e->name);
	for (int i = 0; i < n; i++)
		piece[i].from += before * from.atom[along].stride;
	vn_entry made = named(e, o->name);
	made.shape = shape;
	label(&made, text);
	const vn_status st = vn_derive_add(j->made, &made, piece, n, VN_JOIN_PLACED, j->err);
	free(piece);
	return st;
}

vn_status vn_map_place(vn_map_job *j, const vn_map_outcome *o)
{
	if (o->rule == VN_MAP_LEFT)
		return vn_derive_keep(j->made, vn_recording_entry(j->r, o->entry), 0, o->entry, j->err);
	return o->part >= 0 ? place_part(j, o) : place_whole(j, o);
}
