/* dims.c: see dims.h. */
#include "capture/view/dims.h"

#include "libref/base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BOXES = 65536 };

bool vn_dims_parse(const char *text, vn_dims *d, const char **why)
{
	bool group = false, empty = true;
	*d = (vn_dims) { .rank = 0 };
	for (const char *p = text;; p++) {
		if (*p == ' ')
			continue;
		if (!*p)
			break;
		if (*p == '(' || *p == ')') {
			if (group == (*p == '('))
				return *why = "brackets do not pair up, or nest", false;
			if (*p == ')' && empty)
				return *why = "an empty group", false;
			group = *p == '(';
			empty = true;
			d->rank += group;
			continue;
		}
		size_t n = 0;
		while (isalnum((unsigned char)p[n]) || p[n] == '_')
			n++;
		if (n == 0)
			return *why = "an axis word has only letters, digits and _", false;
		vn_atom *a = &d->atom[d->n];
		if (n >= sizeof a->word || d->n == VN_MOST_ATOMS)
			return *why = "too long", false;
		memcpy(a->word, p, n);
		a->word[n] = '\0';
		if (vn_dims_find(d, a->word) >= 0)
			return *why = "a repeated word", false;
		d->rank += !group;
		a->axis = d->rank - 1;
		a->size = -1;
		if (isdigit((unsigned char)*a->word) && !vn_text_whole(a->word, 1, 1 << 20, &a->size))
			return *why = "a number out of range", false;
		d->n++;
		empty = false;
		p += n - 1;
	}
	if (group)
		return *why = "brackets do not pair up, or nest", false;
	if (d->rank == 0)
		return *why = "no axes", false;
	return true;
}

int vn_dims_find(const vn_dims *d, const char *word)
{
	for (int i = 0; i < d->n; i++)
		if (strcmp(d->atom[i].word, word) == 0)
			return i;
	return -1;
}

/* Sizes the atoms of one axis so that their product is its length. */
static bool fit_axis(vn_dims *d, int axis, int64_t length, vn_dims_size *size, void *context)
{
	int     open = -1, n = 0;
	int64_t product = 1;
	for (int i = 0; i < d->n; i++)
		n += d->atom[i].axis == axis;
	for (int i = 0; i < d->n; i++) {
		vn_atom *a = &d->atom[i];
		if (a->axis != axis)
			continue;
		if (a->size < 0)
			a->size = n == 1 ? length : size(context, a->word);
		if (a->size < 0 && open >= 0)
			return false;
		if (a->size < 0)
			open = i;
		else if (a->size > 0 && product > INT64_MAX / a->size)
			return false;
		else
			product *= a->size;
	}
	if (open < 0)
		return product == length;
	if (product == 0 || length % product != 0)
		return false;
	d->atom[open].size = length / product;
	return true;
}

bool vn_dims_fit(vn_dims *d, const vn_shape *shape, vn_dims_size *size, void *context)
{
	const int gone = d->rank - shape->rank;
	if (gone < 0 || gone > 1 || (gone == 1 && (d->n < 2 || d->atom[1].axis == 0)))
		return false;
	if (gone == 1)
		d->atom[0].size = 1;
	for (int axis = gone; axis < d->rank; axis++)
		if (!fit_axis(d, axis, shape->dim[axis - gone], size, context))
			return false;
	int64_t step = 1;
	for (int i = d->n - 1; i >= 0; i--) {
		d->atom[i].stride = step;
		step *= d->atom[i].size;
	}
	return true;
}

/* One axis of the result: its atoms, with adjacent ones joined when one stride covers both. */
typedef struct joined_axis {
	int     n;
	int64_t size[VN_MOST_ATOMS], stride[VN_MOST_ATOMS];
} joined_axis;

static void join_axis(joined_axis *j, int64_t size, int64_t stride)
{
	if (size == 1)
		return;
	if (j->n && j->stride[j->n - 1] == size * stride) {
		j->size[j->n - 1] *= size;
		j->stride[j->n - 1] = stride;
		return;
	}
	j->size[j->n] = size;
	j->stride[j->n++] = stride;
}

vn_piece *vn_dims_pieces(const vn_dims *from, vn_dims *to, int base, int entry, vn_shape *shape, int *n)
{
	joined_axis axis[VN_MAX_RANK] = { 0 };
	int64_t     boxes = 1;

	*n = 0;
	if (to->rank > VN_MAX_RANK)
		return NULL;
	for (int i = 0; i < from->n; i++)
		if (from->atom[i].size != 1 && vn_dims_find(to, from->atom[i].word) < 0)
			return NULL;
	*shape = (vn_shape) { .rank = to->rank };
	for (int k = 0; k < to->rank; k++)
		shape->dim[k] = 1;
	for (int i = 0; i < to->n; i++) {
		const int f = vn_dims_find(from, to->atom[i].word);
		if (f < 0)
			return NULL;
		to->atom[i].size = from->atom[f].size;
		shape->dim[to->atom[i].axis] *= from->atom[f].size;
		join_axis(&axis[to->atom[i].axis], from->atom[f].size, from->atom[f].stride);
	}
	/* Each axis is walked box by box, except for its innermost run. */
	for (int k = 0; k < to->rank; k++)
		for (int i = 0; i + 1 < axis[k].n; i++)
			boxes = boxes > MOST_BOXES ? boxes : boxes * axis[k].size[i];
	vn_piece *list = boxes > MOST_BOXES || boxes < 1 ? NULL : calloc((size_t)boxes, sizeof *list);
	for (int64_t b = 0; list && b < boxes; b++) {
		vn_piece *p = &list[(*n)++];
		int64_t   rest = b;
		p->base = base;
		p->entry = entry;
		for (int k = to->rank - 1; k >= 0; k--) {
			const joined_axis *j = &axis[k];
			int64_t            inner = j->n ? j->size[j->n - 1] : shape->dim[k];
			p->size[k] = inner;
			p->stride[k] = j->n ? j->stride[j->n - 1] : 1;
			for (int i = j->n - 2; i >= 0; i--) {
				const int64_t at = rest % j->size[i];
				rest /= j->size[i];
				p->to[k] += at * inner;
				p->from += at * j->stride[i];
				inner *= j->size[i];
			}
		}
	}
	return list;
}
