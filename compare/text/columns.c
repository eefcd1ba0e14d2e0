/* columns.c: see columns.h. */
#include "compare/text/columns.h"

#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <stdio.h>

vn_arrange vn_columns_arranged(vn_column_order order, int64_t width)
{
	const int64_t half = width / 2;
	return order == VN_COLUMNS_PAIRS    ? (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = half, .b = 2 }
	       : order == VN_COLUMNS_HALVES ? (vn_arrange) { VN_ARRANGE_TRANSPOSED, .a = 2, .b = half }
	                                    : (vn_arrange) { VN_ARRANGE_ROUND, .a = 0 };
}

const char *vn_columns_name(vn_column_order order)
{
	return order == VN_COLUMNS_PAIRS ? "(freq 2)" : order == VN_COLUMNS_HALVES ? "(2 freq)" : "";
}

/* The axis names, the last one with the order of its columns. */
static void name_axes(vn_column_order order, const char *axes, int rank, char text[96])
{
	size_t n;
	text[0] = 0;
	for (int i = 0; i < rank - 1; i++) {
		const char *word = vn_axes_word(axes, i, &n);
		if (n)
			vn_text_add(text, 96, "%.*s ", (int)n, word);
		else
			vn_text_add(text, 96, "axis%d ", i);
	}
	vn_text_add(text, 96, "%s", vn_columns_name(order));
}

void vn_text_say_columns(vn_column_order order, const char *axes, int rank, char *text, size_t room)
{
	char is[96], should[96];
	name_axes(order, axes, rank, is);
	name_axes(order == VN_COLUMNS_PAIRS ? VN_COLUMNS_HALVES : VN_COLUMNS_PAIRS, axes, rank, should);
	snprintf(text, room, "declare this order in a name map with axes: \"%s\", to_axes: \"%s\"", is, should);
}
