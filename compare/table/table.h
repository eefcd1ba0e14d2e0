/* table.h: a table of the first values and the statistics of every checkpoint, for a reference and
 * its candidates.
 *
 * A group is one checkpoint: one line of the reference and one of each candidate. Values are those
 * of one token; statistics are of the whole tensor. Each tensor is read again, in pieces, since a
 * comparison keeps no numbers.
 *
 * Owner    many and the comparisons are borrowed: those given to vn_many_add, in that order, still
 *          open. A candidate that was not compared has lines without numbers.
 */
#pragma once

#include "compare/many/many.h"

#include "libref/base/stats.h"

enum { VN_TABLE_VALUES = 64, VN_TABLE_WORST = -1 };

typedef enum vn_table_form {
	VN_TABLE_TEXT,
	VN_TABLE_JSON,
	VN_TABLE_MARKDOWN,
	VN_TABLE_HTML,
	VN_TABLE_CSV
} vn_table_form;

typedef struct vn_table {
	const vn_many        *many;
	vn_comparison *const *of;    /* (many->n) */
	int                   first; /* values, at most VN_TABLE_VALUES */
	/* position in the call; VN_TABLE_WORST: where a candidate differs most */
	int64_t               token;
	vn_table_form         form;
} vn_table;

/* One recording's line of a group. */
typedef struct vn_table_line {
	bool     there;
	int      n; /* number of values; 0: the tensor does not have the token */
	double   value[VN_TABLE_VALUES];
	vn_stats stats;
} vn_table_line;

typedef struct vn_table_group {
	int64_t       token;                  /* of the call; -1: the tensor has no token axis */
	vn_table_line line[1 + VN_MANY_MOST]; /* [0] reference */
} vn_table_group;

/* Reads the group of one row of many. */
vn_status vn_table_read(const vn_table *t, int row, vn_table_group *g, vn_error *err);

/* Writes the whole table in its form. */
vn_status vn_table_write(const vn_table *t, FILE *out, vn_error *err);
