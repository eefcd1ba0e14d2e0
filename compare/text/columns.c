/* columns.c: see columns.h. */
#include "compare/text/columns.h"

#include "libref/base/text.h"
#include "libref/plan/point.h"

#include <stdio.h>

int64_t vn_column_at(vn_column_order lie, int64_t width, int64_t j)
{
	const int64_t half = width / 2;
	return lie == VN_COLUMNS_PAIRS ? j % half * 2 + j / half : lie == VN_COLUMNS_HALVES ? j % 2 * half + j / 2 : j;
}

const char *vn_columns_name(vn_column_order lie)
{
	return lie == VN_COLUMNS_PAIRS ? "(freq 2)" : lie == VN_COLUMNS_HALVES ? "(2 freq)" : "";
}

/* The axes' names with the last one's columns in that order. */
static void name_axes(vn_column_order lie, const char *axes, int rank, char text[96])
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
	vn_text_add(text, 96, "%s", vn_columns_name(lie));
}

void vn_say_columns(vn_column_order lie, const char *axes, int rank, char *text, size_t room)
{
	char is[96], should[96];
	name_axes(lie, axes, rank, is);
	name_axes(lie == VN_COLUMNS_PAIRS ? VN_COLUMNS_HALVES : VN_COLUMNS_PAIRS, axes, rank, should);
	snprintf(text, room, "a name map says so with axes: \"%s\", to_axes: \"%s\"", is, should);
}
