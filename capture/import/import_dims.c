/* import_dims.c: checks the dims that a manifest states for a checkpoint; see import.h. */
#include "capture/import/import.h"

#include "capture/recording/derive.h"
#include "capture/recording/recording_internal.h"
#include "capture/store/label.h"
#include "capture/view/dims.h"
#include "libref/base/text.h"

#include <ctype.h>
#include <inttypes.h>
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
