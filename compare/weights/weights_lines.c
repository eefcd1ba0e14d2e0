/* weights_lines.c: groups weights that differ in the same way into one line: "all 24 layers:
 * self_attn.q_proj.weight". */
#include "compare/weights/weights_internal.h"
#include "capture/file/output.h"
#include "libref/base/alloc.h"
#include "libref/base/order.h"
#include "libref/base/say.h"
#include "libref/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS_NAMED = 3, SET = 64 };

/* One difference, to be grouped into a line. */
typedef struct line_item {
	vn_weight_difference d;
	const int           *layers; /* (n_layers), ascending: of all differences of this name found in this way */
	int                  n_layers;
	bool                 all;      /* no other layer has a weight of this name */
	char                 set[SET]; /* the layers for a person, truncated if long: "layers 0-3, 7" */
} line_item;

static int by_evidence(const vn_weight_difference *x, const vn_weight_difference *y)
{
	int order = strcmp(x->id, y->id);
	if (!order)
		order = (int)x->proof - (int)y->proof;
	return order ? order : (int)x->certain - (int)y->certain;
}

/* Orders differences by what was found: weights share a line if the finding, its parameters, the
 * mistake and the proof are the same. */
static int in_one_way(const vn_weight_difference *x, const vn_weight_difference *y)
{
	const int order = (x->key > y->key) - (x->key < y->key);
	return order ? order : by_evidence(x, y);
}

VN_ORDER_BY(by_part, line_item, in_one_way(&x->d, &y->d), strcmp(x->d.part, y->d.part),
            VN_ORDER(x->d.layer, y->d.layer))

/* Is 0 if both share a line. */
static int by_line(const line_item *x, const line_item *y)
{
	int order = in_one_way(&x->d, &y->d);
	if (!order)
		order = (int)x->all - (int)y->all;
	if (!order)
		order = (x->n_layers > y->n_layers) - (x->n_layers < y->n_layers);
	return order ? order : memcmp(x->layers, y->layers, (size_t)x->n_layers * sizeof *x->layers);
}

VN_ORDER_BY(by_line_and_part, line_item, by_line(x, y), by_part(x, y))

/* Number of layers that have a weight of this name on either side. */
static int layers_of(const vn_weight_name *all, int n, const char *part)
{
	int count = 0;
	for (int i = 0; i < n; i++)
		count += all[i].layer >= 0 && strcmp(all[i].tail, part) == 0;
	return count;
}

/* Writes "layers 0-3, 7", truncated if long. */
static void say_layers(const int *layer, int n, bool all, char set[SET])
{
	*set = 0;
	if (layer[0] < 0)
		return;
	if (all) {
		snprintf(set, SET, "all %d layers", n);
		return;
	}
	snprintf(set, SET, n > 1 ? "layers " : "layer ");
	for (int i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && layer[j] == layer[j - 1] + 1; j++)
			;
		char one[32];
		snprintf(one, sizeof one, j - i > 1 ? "%s%d-%d" : "%s%d", i ? ", " : "", layer[i], layer[j - 1]);
		if (strlen(set) + strlen(one) + 16 > SET) {
			vn_text_add(set, SET, " and more");
			return;
		}
		vn_text_add(set, SET, "%s", one);
	}
}

/* layer: (n), the layers of the items, which come by part. */
static void mark_layers(line_item *x, int n, const int *layer, const vn_weight_name *all, int n_all)
{
	for (int i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && in_one_way(&x[i].d, &x[j].d) == 0 && strcmp(x[i].d.part, x[j].d.part) == 0; j++)
			;
		x[i].layers = layer + i;
		x[i].n_layers = j - i;
		x[i].all = j - i > 1 && j - i == layers_of(all, n_all, x[i].d.part);
		say_layers(x[i].layers, x[i].n_layers, x[i].all, x[i].set);
		for (int k = i + 1; k < j; k++) {
			const vn_weight_difference d = x[k].d;
			x[k] = x[i];
			x[k].d = d;
		}
	}
}

/* Describes the weight of one side. */
static void say_side(const line_item *x, int n, int k, char text[48])
{
	const vn_weight_row *first = x[0].d.row[k];
	bool                 format = true, shape = true;
	char                 dims[VN_SHAPE_TEXT];

	for (int i = 1; first && i < n; i++) {
		format = format && x[i].d.row[k] && x[i].d.row[k]->dtype == first->dtype;
		shape = shape && format && vn_shape_equal(&x[i].d.row[k]->shape, &first->shape);
	}
	if (!first)
		snprintf(text, 48, "-");
	else if (!format)
		snprintf(text, 48, "various");
	else if (shape)
		snprintf(text, 48, "%s %.40s", vn_dtype_name(first->dtype), vn_shape_text(&first->shape, dims));
	else
		snprintf(text, 48, "%s", vn_dtype_name(first->dtype));
}

static char *say_which(const line_item *x, int n)
{
	char  *text = NULL;
	size_t room = 0;
	FILE  *to = vn_alloc_check(open_memstream(&text, &room));
	int    parts = 0;

	vn_say(to, "%s%s", x[0].set, *x[0].set ? ": " : "");
	for (int i = 0; i < n; i++) {
		if (i && strcmp(x[i].d.part, x[i - 1].d.part) == 0)
			continue;
		if (parts++ < PARTS_NAMED)
			vn_say(to, "%s%s", parts > 1 ? ", " : "", x[i].d.part);
	}
	if (parts > PARTS_NAMED)
		fprintf(to, " and %d more", parts - PARTS_NAMED);
	return vn_alloc_check(vn_text_close(to, &text) ? text : NULL);
}

/* Orders lines by their first layer, then by their words: the order is for people, the keys have
 * none. */
VN_ORDER_BY(by_place, line_item *const, VN_ORDER((*x)->d.layer, (*y)->d.layer), strcmp((*x)->d.words, (*y)->d.words),
            by_evidence(&(*x)->d, &(*y)->d), strcmp((*x)->set, (*y)->set), by_line_and_part(*x, *y))

static void make_lines(vn_weights *w, line_item *x)
{
	VN_FREED line_item **start = vn_alloc_zero((size_t)w->n_found, sizeof *start);
	int                  n = 0, at = 0;

	w->line = vn_alloc_zero((size_t)w->n_found, sizeof *w->line);
	for (int i = 0; i < w->n_found; i++)
		if (i == 0 || by_line(&x[i - 1], &x[i]) != 0)
			start[n++] = &x[i];
	qsort(start, (size_t)n, sizeof *start, by_place);
	for (int i = 0; i < n; i++) {
		int k = 1;
		while (start[i] + k < x + w->n_found && by_line(start[i], start[i] + k) == 0)
			k++;
		vn_weight_line *l = &w->line[w->n_lines];
		l->first = at;
		l->n = k;
		for (int s = 0; s < 2; s++)
			say_side(start[i], k, s, l->side[s]);
		l->which = say_which(start[i], k);
		w->n_lines++;
		for (int j = 0; j < k; j++)
			w->found[at++] = start[i][j].d;
	}
}

void vn_weights_group(vn_weights *w, const vn_weight_name *all, int n_all)
{
	VN_FREED line_item *x = vn_alloc_zero((size_t)w->n_found, sizeof *x);
	VN_FREED int       *layer = vn_alloc((size_t)w->n_found, sizeof *layer);

	for (int i = 0; i < w->n_found; i++)
		x[i].d = w->found[i];
	qsort(x, (size_t)w->n_found, sizeof *x, by_part);
	for (int i = 0; i < w->n_found; i++)
		layer[i] = x[i].d.layer;
	mark_layers(x, w->n_found, layer, all, n_all);
	qsort(x, (size_t)w->n_found, sizeof *x, by_line_and_part);
	make_lines(w, x);
}
