/* sequence.c: see sequence.h. */
#include "capture/recording/sequence.h"

#include "libref/base/order.h"
#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <limits.h>
#include <stdlib.h>

/* The position that a name implies: a layer and a point in it, or before or after all layers. */
enum { IN_FRONT = -1, BEHIND = INT_MAX };
typedef struct meaning {
	int layer, point;
} meaning;

static meaning meaning_of(const vn_sequence_entry *x)
{
	const int  named = vn_name_layer(x->name), layer = named >= 0 ? named : x->layer;
	vn_point   p = VN_N_POINTS;
	/* Foreign names may be labelled with a point. */
	const bool known = (vn_point_from_name(vn_name_in_layer(x->name), &p) || vn_point_from_name(x->point, &p)) &&
	                   (vn_point_get(p)->place == VN_INSIDE_LAYER) == (layer >= 0);

	if (layer >= 0)
		return (meaning) { layer, known ? (int)p : VN_N_POINTS };
	return known ? (meaning) { vn_point_get(p)->place == VN_BEFORE_LAYERS ? IN_FRONT : BEHIND, (int)p }
	             : (meaning) { BEHIND, VN_N_POINTS };
}

static int compare_meanings(meaning a, meaning b)
{
	if (a.layer != b.layer)
		return a.layer < b.layer ? -1 : 1;
	return (a.point > b.point) - (a.point < b.point);
}

/* An item to sort. after: number of items in its step with a stated place that come before it. */
typedef struct placed_item {
	const vn_sequence_entry *x;
	meaning                  means;
	int                      index, after;
} placed_item;

/* Of what is said, -1 is the largest. */
VN_ORDER_BY(by_said, placed_item, VN_ORDER(x->x->step, y->x->step),
            VN_ORDER((unsigned)x->x->said, (unsigned)y->x->said), VN_ORDER(x->index, y->index))

VN_ORDER_BY(by_all, placed_item, VN_ORDER(x->x->step, y->x->step), VN_ORDER(x->after, y->after),
            VN_ORDER(x->x->said < 0, y->x->said < 0), x->x->said < 0 ? compare_meanings(x->means, y->means) : 0,
            VN_ORDER(x->x->second, y->x->second), vn_text_order(x->x->name, y->x->name), VN_ORDER(x->index, y->index))

/* Sets `after` of the n items of one step, which are sorted by stated place; items with the same
 * place count once. An item without a place comes after the last placed item whose name implies an
 * earlier position. low: (n) scratch. */
static void place_items(placed_item *list, int n, meaning *low)
{
	int known = 0, places = 0;
	while (known < n && list[known].x->said >= 0) {
		places += known == 0 || list[known].x->said != list[known - 1].x->said;
		list[known].after = places;
		low[known] = list[known].means;
		known++;
	}
	for (int i = known - 2; i >= 0; i--)
		if (list[i].x->second || compare_meanings(low[i + 1], low[i]) < 0)
			low[i] = low[i + 1];
	for (int i = known; i < n; i++) {
		int from = 0, to = known; /* low rises */
		while (from < to) {
			const int middle = from + (to - from) / 2;
			if (compare_meanings(low[middle], list[i].means) < 0)
				from = middle + 1;
			else
				to = middle;
		}
		list[i].after = from > 0 ? list[from - 1].after : 0;
	}
}

vn_status vn_sequence(const vn_sequence_entry *x, int n, int *order, vn_error *err)
{
	VN_FREED placed_item *list = malloc(((size_t)n + 1) * sizeof *list);
	VN_FREED meaning     *low = malloc(((size_t)n + 1) * sizeof *low);
	if (!list || !low) {
		return vn_fail(err, VN_ERR_NOMEM, "no memory for the order of %d tensors", n);
	}
	for (int i = 0; i < n; i++)
		list[i] = (placed_item) { .x = &x[i], .means = meaning_of(&x[i]), .index = i };
	qsort(list, (size_t)n, sizeof *list, by_said);
	for (int from = 0, to; from < n; from = to) {
		for (to = from; to < n && list[to].x->step == list[from].x->step; to++)
			;
		place_items(list + from, to - from, low);
	}
	qsort(list, (size_t)n, sizeof *list, by_all);
	for (int i = 0; i < n; i++)
		order[i] = list[i].index;
	return VN_OK;
}
