/* layout.c: see layout.h. */
#include "capture/names/layout.h"

#include "libref/plan/point.h"

#include <stdio.h>
#include <string.h>

int vn_axis_lengths(const char *axes, const vn_shape *shape, vn_axis_length axis[VN_MAX_RANK])
{
	size_t n = 1;
	int    k = 0;
	for (const char *w = vn_axes_word(axes, 0, &n); n && k < shape->rank; w = vn_axes_word(axes, k, &n)) {
		if (n >= sizeof axis[k].word)
			return 0;
		memcpy(axis[k].word, w, n);
		axis[k].word[n] = '\0';
		axis[k].size = shape->dim[k];
		k++;
	}
	return n == 0 && k == shape->rank ? k : 0;
}

/* A search, axis of the tensor by axis, for words whose lengths multiply to its own. */
typedef struct word_search {
	const vn_shape       *shape;
	const vn_axis_length *axis;
	int                   n;
	unsigned              used;                                           /* words, as bits */
	int                   place[VN_MAX_RANK], order[VN_MAX_RANK], filled; /* word order[i] is in axis place[i] */
	char (*list)[VN_LAYOUT_DIMS];
	int found;
} word_search;

/* An axis of length one that no word is in: a batch in front, else any word. */
static const char *extra_word(int axis, int rank)
{
	static const char *const words[] = { "batch", "one1", "one2", "one3", "one4", "one5" };
	return axis < rank && axis < (int)(sizeof words / sizeof *words) ? words[axis] : "";
}

static void write_layout(word_search *s)
{
	char  *to = s->list[s->found];
	size_t n = 0;
	int    i = 0;
	to[0] = '\0';
	for (int a = 0; a < s->shape->rank; a++) {
		const int   first = i;
		const char *gap = a ? " " : "";
		while (i < s->filled && s->place[i] == a)
			i++;
		if (i == first)
			n += (size_t)snprintf(to + n, VN_LAYOUT_DIMS - n, "%s%s", gap, extra_word(a, s->shape->rank));
		for (int k = first; k < i && n < VN_LAYOUT_DIMS; k++)
			n += (size_t)snprintf(to + n, VN_LAYOUT_DIMS - n, "%s%s%s", k == first ? gap : " ",
			                      k == first && i - first > 1 ? "(" : "", s->axis[s->order[k]].word);
		if (i - first > 1 && n < VN_LAYOUT_DIMS)
			n += (size_t)snprintf(to + n, VN_LAYOUT_DIMS - n, ")");
		if (n >= VN_LAYOUT_DIMS)
			return;
	}
	s->found++;
}

static void fill_axis(word_search *s, int a, int64_t left);

/* Puts a word into axis a, of which the words after it must multiply to `left`. */
static void put_word(word_search *s, int a, int64_t left, int w)
{
	const int64_t size = s->axis[w].size;
	if (s->used >> w & 1 || size < 1 || left % size != 0)
		return;
	s->used |= 1u << w;
	s->place[s->filled] = a;
	s->order[s->filled++] = w;
	if (left == size)
		fill_axis(s, a + 1, a + 1 < s->shape->rank ? s->shape->dim[a + 1] : 0);
	fill_axis(s, a, left / size);
	s->filled--;
	s->used &= ~(1u << w);
}

static void fill_axis(word_search *s, int a, int64_t left)
{
	if (s->found == VN_LAYOUTS)
		return;
	if (a == s->shape->rank) {
		if (s->filled == s->n)
			write_layout(s);
		return;
	}
	const bool empty = !s->filled || s->place[s->filled - 1] != a;
	if (empty && left == 1 && s->shape->rank > s->n) /* in front of the words: a batch of one */
		fill_axis(s, a + 1, a + 1 < s->shape->rank ? s->shape->dim[a + 1] : 0);
	for (int w = 0; w < s->n; w++)
		put_word(s, a, left, w);
	if (empty && left == 1 && s->shape->rank <= s->n)
		fill_axis(s, a + 1, a + 1 < s->shape->rank ? s->shape->dim[a + 1] : 0);
}

int vn_layouts(const vn_shape *shape, const vn_axis_length *axis, int n, char list[VN_LAYOUTS][VN_LAYOUT_DIMS])
{
	word_search s = { .shape = shape, .axis = axis, .n = n, .list = list };
	int         kept = 0;
	if (shape->rank < 1 || n < 1 || n > VN_MAX_RANK)
		return 0;
	fill_axis(&s, 0, shape->dim[0]);
	for (int i = 0; i < s.found; i++) {
		int k = 0;
		while (k < kept && strcmp(list[k], list[i]) != 0)
			k++;
		if (k == kept && kept++ != i)
			memcpy(list[kept - 1], list[i], VN_LAYOUT_DIMS);
	}
	return kept;
}
