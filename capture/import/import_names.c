/* import_names.c: decides which names are checkpoint names, finds the nearest to others, and prints
 * the list of --dry-run; see import.h. */
#include "capture/import/import.h"
#include "capture/recording/derive.h"
#include "capture/recording/recording_internal.h"
#include "capture/store/label.h"
#include "capture/view/dims.h"

#include "libref/base/alloc.h"
#include "libref/base/nearest.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Whether a word is an axis of some checkpoint, one of the extra axes a recording may
 * have, or a length. */
static bool known_word(const char *word)
{
	bool known = isdigit((unsigned char)*word) || vn_text_is_word("batch|block|slot", word);
	for (int p = 0; p < VN_N_POINTS && !known; p++)
		known = vn_axes_find(vn_point_get((vn_point)p)->axes, word) >= 0;
	return known;
}

/* Whether these are the words of a checkpoint's axes, in any order and grouping. */
static bool own_words(const vn_dims *d, const char *axes)
{
	size_t n;
	vn_axes_word(axes, d->n, &n);
	for (int i = 0; i < d->n && !n; i++)
		n = vn_axes_find(axes, d->atom[i].word) < 0;
	return n == 0;
}

/* The first axis longer than the model's that is not one rank's part of it either; -1: none. Skips
 * padded axes and axes as long as the run. */
static int axis_off(const vn_entry *e, const char *axes, const vn_value *v, vn_shape *own)
{
	*own = vn_value_shape(v, 1, 1);
	for (int a = 0; a < own->rank && a < e->shape.rank; a++) {
		char          word[24];
		size_t        n;
		const char   *w = vn_axes_word(axes, a, &n);
		const int64_t is = e->shape.dim[a];
		snprintf(word, sizeof word, "%.*s", (int)n, w);
		if (!vn_text_is_word("token|key|row|vocab", word) && (is < 1 || own->dim[a] % is != 0))
			return a;
	}
	return -1;
}

vn_status vn_import_check_dims(const vn_import *i, int entry, vn_error *err)
{
	const vn_entry      *e = vn_recording_entry(i->r, entry), *from;
	const vn_point_info *p = vn_label_point(e->name);
	const vn_dump       *d = i->dump;
	const int            value = i->plan ? vn_plan_find(i->plan, e->name) : -1;
	vn_dims              is, said;
	vn_shape             own;
	const char          *why, *word;
	char                 shape[VN_SHAPE_TEXT];
	size_t               n;
	int                  origin, line, axis;

	if (!p || !*e->axes || vn_derive_origins(i->r, entry, &origin, 1) != 1)
		return VN_OK;
	from = vn_recording_entry(i->original, origin);
	line = d->array[i->original->source[origin].foreign - 1].line;
	if (!line || !vn_dims_parse(e->axes, &is, &why) || !vn_dims_parse(from->axes, &said, &why))
		return VN_OK;
	for (int k = 0; k < is.n; k++)
		if (!known_word(is.atom[k].word) && vn_dims_find(&said, is.atom[k].word) >= 0)
			return vn_fail(err, VN_ERR_FORMAT,
			               "%s/manifest.jsonl:%d: %s: its dims '%s' have an unknown axis, '%s'; %s has '%s'", d->path,
			               line, from->name, from->axes, is.atom[k].word, e->name, p->axes);
	if (value < 0 || strcmp(e->axes, p->axes) != 0 || !own_words(&said, p->axes) ||
	    (axis = axis_off(e, p->axes, &i->plan->value[value], &own)) < 0)
		return VN_OK;
	word = vn_axes_word(p->axes, axis, &n);
	return vn_fail(err, VN_ERR_FORMAT,
	               "%s/manifest.jsonl:%d: %s: by its dims '%s', the shape %s has %.*s = %" PRId64
	               ", the model has %" PRId64 "; %s has '%s'",
	               d->path, line, from->name, from->axes, vn_shape_text(&from->shape, shape), (int)n, word,
	               e->shape.dim[axis], own.dim[axis], e->name, p->axes);
}

bool vn_import_knows(const vn_plan *plan, const char *name)
{
	if (strcmp(vn_name_in_layer(name), "block_table") == 0)
		return true;
	return plan ? vn_plan_find(plan, name) >= 0 : vn_label_point(name) != NULL;
}

/* The first number in a name, taken as its layer; -1: none. */
static int number_in(const char *name)
{
	int64_t     n;
	const char *p = name + strcspn(name, "0123456789");
	return *p && vn_text_digits(p, &n) && n <= 99999 ? (int)n : -1;
}

/* The last word of a name without numbers: "up_proj" for "model.layers.3.mlp.up_proj.in"
 * and "up_proj-3". */
static void last_word(const char *name, char *to, size_t room)
{
	size_t end = strlen(name), at;
	end -= end > 3 && strcmp(name + end - 3, ".in") == 0 ? 3 : 0;
	while (end > 0 && (isdigit((unsigned char)name[end - 1]) || strchr(".-/", name[end - 1])))
		end--;
	for (at = end; at > 0 && !strchr("./", name[at - 1]); at--)
		;
	snprintf(to, room, "%.*s", (int)(end - at), name + at);
}

void vn_import_nearest(const vn_plan *plan, const char *name, char *to, size_t room)
{
	const int layer = number_in(name);
	char      word[VN_NAME_MAX], tried[VN_NAME_MAX];
	int       best = -1;
	last_word(name, word, sizeof word);
	for (int p = 0; p < VN_N_POINTS; p++) {
		const vn_point_info *x = vn_point_get((vn_point)p);
		if (x->place != VN_INSIDE_LAYER)
			snprintf(tried, sizeof tried, "%s", x->name);
		else
			snprintf(tried, sizeof tried, "layer%d.%s", layer < 0 ? 0 : layer, x->name);
		if (plan && vn_plan_find(plan, tried) < 0)
			continue;
		const int whole = vn_nearest_distance(name, tried), part = vn_nearest_distance(word, x->name),
				  d = 2 * (whole < part ? whole : part) + (x->place != VN_INSIDE_LAYER && layer >= 0);
		if (best < 0 || d < best) {
			best = d;
			snprintf(to, room, "%s", tried);
		}
	}
	if (best < 0)
		snprintf(to, room, "none");
}

/* Names repeat in every step; each is listed once. */
static bool is_listed(const vn_recording *r, const vn_entry *e)
{
	return e->step > 0 && vn_recording_find(r, e->step - 1, e->name) >= 0;
}

/* ---- the list -------------------------------------------------------------------------------- */

static void print_origins(const vn_import *i, int entry, bool *used, FILE *to)
{
	enum { SHOWN = 4 };
	const int     room = vn_recording_count(i->original);
	VN_FREED int *list = vn_alloc((size_t)room, sizeof *list);
	const int     n = vn_derive_origins(i->r, entry, list, room);
	for (int k = 0; k < n; k++) {
		char name[4 * VN_NAME_MAX];
		used[list[k]] = true;
		snprintf(name, sizeof name, "%s", vn_recording_entry(i->original, list[k])->name);
		if (k < SHOWN)
			vn_say(to, "%s%s", k ? " + " : "", vn_text_clean(name, sizeof name));
	}
	if (n > SHOWN)
		fprintf(to, " + %d more", n - SHOWN);
}

static void print_mapped(const vn_import *i, bool *used, FILE *to)
{
	char shape[VN_SHAPE_TEXT];
	int  step = 0;
	for (int k = 0; k < vn_recording_count(i->r); k++) {
		const vn_entry *e = vn_recording_entry(i->r, k);
		int             origin;
		if (!vn_import_knows(i->plan, e->name)) {
			if (vn_derive_origins(i->r, k, &origin, 1))
				used[origin] = true;
			continue;
		}
		if (e->step != step)
			fprintf(to, "  step %d\n", e->step);
		step = e->step;
		vn_say(to, "  %-24s %-5s %-16s <- ", e->name, vn_dtype_name(e->dtype), vn_shape_text(&e->shape, shape));
		print_origins(i, k, used, to);
		fputc('\n', to);
	}
}

void vn_import_list(const vn_import *i, FILE *to)
{
	const int      n = vn_recording_count(i->original);
	VN_FREED bool *used = vn_alloc_zero((size_t)n, sizeof *used);
	char           name[VN_NAME_MAX], near[VN_NAME_MAX];
	int            gone = 0, steps = vn_recording_steps(i->r, &(const vn_step *) { NULL });
	vn_say(to, "%s: %s, %d tensors in %d step%s\n", vn_recording_path(i->r), i->dump->kind, n, steps,
	       steps == 1 ? "" : "s");
	fprintf(to, "checkpoints: %d\n", vn_recording_count(i->r) - i->unmapped);
	print_mapped(i, used, to);
	if (i->unmapped)
		vn_say(to, "left over, not checkpoint names: %d%s%s\n", i->unmapped_names, steps > 1 ? ", each name once" : "",
		       i->of_head ? "; some seem to be of a multi-token-prediction head: --mtp" : "");
	for (int k = 0; i->unmapped && k < vn_recording_count(i->r); k++) {
		const vn_entry *e = vn_recording_entry(i->r, k);
		if (vn_import_knows(i->plan, e->name) || is_listed(i->r, e))
			continue;
		snprintf(name, sizeof name, "%s", e->name);
		vn_import_nearest(i->plan, e->name, near, sizeof near);
		vn_say(to, "  %-40s nearest: %s\n", vn_text_clean(name, sizeof name), near);
	}
	for (int k = 0; k < n; k++)
		gone += !used[k];
	if (gone)
		fprintf(to, "left out by a map, or intermediate: %d\n", gone);
	for (int k = 0; gone && k < n; k++) {
		snprintf(name, sizeof name, "%s", vn_recording_entry(i->original, k)->name);
		if (!used[k] && !is_listed(i->original, vn_recording_entry(i->original, k)))
			vn_say(to, "  %s\n", vn_text_clean(name, sizeof name));
	}
	if (i->n_troubles)
		fprintf(to, "cannot be imported: %d\n", i->n_troubles);
	for (int k = 0; k < i->n_troubles && k < VN_IMPORT_TROUBLES; k++)
		vn_say(to, "  %s\n", i->trouble[k]);
	if (i->n_troubles > VN_IMPORT_TROUBLES)
		fprintf(to, "  and %d more\n", i->n_troubles - VN_IMPORT_TROUBLES);
}
