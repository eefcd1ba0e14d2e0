/* like.c: see like.h. */
#include "capture/view/like.h"

#include "capture/view/dims.h"
#include "libref/plan/point.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <string.h>

static void note_length(vn_like *l, const char *word, size_t n, int64_t size)
{
	int i = 0;
	while (i < l->n && (strlen(l->length[i].word) != n || memcmp(l->length[i].word, word, n) != 0))
		i++;
	if (i == l->n) {
		if (i == VN_LIKE_WORDS || n >= sizeof l->length[i].word)
			return;
		memcpy(l->length[i].word, word, n);
		l->length[i].word[n] = '\0';
		l->length[l->n++].size = size;
	} else if (l->length[i].size != size) {
		l->length[i].size = -1;
	}
}

static void note_lengths(vn_like *l, const char *axes, const vn_shape *shape)
{
	size_t      n;
	const char *w = vn_axes_word(axes, 0, &n);
	for (int k = 0; k < shape->rank && n; w = vn_axes_word(axes, ++k, &n))
		note_length(l, w, n, shape->dim[k]);
}

void vn_like_init(vn_like *l, const vn_recording *r, const vn_plan *plan, int ranks)
{
	*l = (vn_like) { .recording = r, .plan = plan ? plan : r ? vn_recording_plan(r) : NULL, .ranks = ranks };
	for (int i = 0; r && !l->plan && i < vn_recording_count(r); i++)
		note_lengths(l, vn_entry_axes(vn_recording_entry(r, i)), &vn_recording_entry(r, i)->shape);
	for (int i = 0; l->plan && i < l->plan->n_values; i++) {
		const vn_shape shape = vn_value_shape(&l->plan->value[i], 1, 1);
		note_lengths(l, vn_point_get(l->plan->value[i].point)->axes, &shape);
	}
}

vn_looks vn_like_of(const vn_like *l, const char *name, const vn_step *s)
{
	const int   entry = l->recording ? vn_recording_find(l->recording, s ? s->number : 0, name) : -1;
	const int   value = l->plan ? vn_plan_find(l->plan, name) : -1;
	const char *dot = strchr(name, '.');
	vn_looks    w = { .like = l, .rows = s ? s->rows : -1 };
	vn_point    p;
	if (entry >= 0 && *vn_entry_axes(vn_recording_entry(l->recording, entry))) {
		snprintf(w.axes, sizeof w.axes, "%s", vn_entry_axes(vn_recording_entry(l->recording, entry)));
		w.shape = vn_recording_entry(l->recording, entry)->shape;
	} else if (value >= 0) {
		snprintf(w.axes, sizeof w.axes, "%s", vn_point_get(l->plan->value[value].point)->axes);
		w.shape = vn_value_shape(&l->plan->value[value], s ? s->tokens : 0, s ? s->position + s->tokens : 0);
	} else if (vn_point_from_name(dot ? dot + 1 : name, &p)) {
		snprintf(w.axes, sizeof w.axes, "%s", vn_point_get(p)->axes);
	}
	return w;
}

bool vn_like_sharded(const char *word)
{
	return vn_text_is_word("head|kv_head|ffn|vocab|qkv|lin_key|lin_head|lin_mix", word);
}

int64_t vn_like_of_rank(const vn_like *l, const char *word, int64_t size)
{
	if (size <= 0 || l->ranks == 1 || !vn_like_sharded(word))
		return size;
	return strcmp(word, "kv_head") == 0 && size < l->ranks ? 1 : size / l->ranks;
}

int64_t vn_looks_size(void *looks, const char *word)
{
	const vn_looks *w = looks;
	vn_dims         d;
	const char     *why;
	if (strcmp(word, "token") == 0)
		return w->rows;
	if (*w->axes && vn_dims_parse(w->axes, &d, &why)) {
		const int i = vn_dims_find(&d, word);
		if (i >= 0 && i < w->shape.rank)
			return vn_like_of_rank(w->like, word, w->shape.dim[i]);
	}
	for (int i = 0; i < w->like->n; i++)
		if (strcmp(w->like->length[i].word, word) == 0)
			return vn_like_of_rank(w->like, word, w->like->length[i].size);
	return -1;
}
