/* many.h: several candidates judged by one reference.
 *
 * Each candidate is a comparison of its own (compare/chapters), made one after the other. vn_many_add keeps of each
 * what a report of all of them needs: a cell per checkpoint, a few lines, and its JSON report in a temporary file. So
 * memory is that of the largest comparison, and a cell per checkpoint and candidate.
 *
 * A row is one checkpoint. Rows are in the order of the first candidate that was compared; checkpoints that only later
 * candidates have come last.
 *
 * Owner    paths are borrowed; all else is vn_many's, until vn_many_finish.
 */
#ifndef VN_COMPARE_MANY_H
#define VN_COMPARE_MANY_H

#include "compare/comparison/comparison.h"

#include <stdio.h>

enum { VN_MANY_MOST = 16 }; /* candidates */

typedef struct vn_many_cell {
	bool           there;    /* this comparison has the checkpoint; else the rest is not set */
	bool           measured, fails, origin;
	bool           self;     /* of the elected of a vote: its numbers are those that the others are held against */
	vn_status_word status;
	int            point;    /* of the comparison's result */
	double         nmse, cosine, max_abs, max_rel;
	double         over_floor; /* nmse in floors; NaN: no floor */
} vn_many_cell;

typedef struct vn_many_candidate {
	const char   *path;
	int           status;    /* 0 within, 1 outside, 2 not compared */
	char         *trouble;   /* of status 2: why */
	const char   *verdict;   /* as vn_say_verdict */
	char         *counts, *start; /* as words.h has them; "" where there is nothing to say */
	char         *about;     /* "vernier-ref 1.0, f16" */
	char         *limits, *floor; /* with why they were chosen; where it came from, "" for none */
	vn_lines      warnings, refusals;
	int           first;     /* row where it leaves; -1: nowhere */
	vn_many_cell *cell;      /* (n_cells), by row; rows behind the last are not there */
	int           n_cells;
	long          json, json_bytes; /* its report, in vn_many.reports */
} vn_many_candidate;

typedef struct vn_many_row {
	char *label; /* as vn_label */
	char *name;
	int   step, layer;
} vn_many_row;

typedef struct vn_many {
	const char       *ref;     /* of a vote: how it was decided */
	bool              vote;    /* there is no reference: outside is who is not with the majority (vote.h) */
	bool              strict;  /* of a vote: warnings fail some recording that is with the majority */
	int               elected; /* of a vote */
	vn_many_candidate candidate[VN_MANY_MOST];
	int               n;
	vn_many_row      *row;
	int               n_rows, room;
	int              *by_label, n_sorted; /* rows in the order of their labels */
	FILE             *reports; /* NULL: no JSON report is wanted */
} vn_many;

/* What a row says of its candidates. */
enum { VN_MANY_NONE = -1, VN_MANY_ALL = -2, VN_MANY_SEVERAL = -3 };

/* reports: a report in JSON will be asked for. */
vn_status vn_many_begin(vn_many *m, const char *ref, bool reports, vn_error *err);
/* The next candidate, whose comparison is c; chosen: why these limits. st: how it ended, with why in trouble. */
vn_status vn_many_add(vn_many *m, const char *path, vn_comparison *c, const char *chosen, vn_status st, const vn_error *trouble, vn_error *err);
void      vn_many_finish(vn_many *m);

/* The cell of a candidate; NULL: it does not have the checkpoint, or was not compared. */
const vn_many_cell *vn_many_cell_of(const vn_many *m, int row, int candidate);
/* The odd one out: the only candidate that is outside where two or more were compared. Else NONE is outside, ALL of them
 * (two or more), or SEVERAL of more, or the only one that there is. */
int  vn_many_odd(const vn_many *m, int row);
/* Does any candidate fail here? */
bool vn_many_fails(const vn_many *m, int row);
/* The worst status. */
int  vn_many_status(const vn_many *m);
/* 'A', 'B'... */
char vn_many_letter(int candidate);
/* "A", "B, D": those that fail at a row; "" for none. */
enum { VN_MANY_LETTERS = 3 * VN_MANY_MOST };
const char *vn_many_outside(const vn_many *m, int row, char text[VN_MANY_LETTERS]);
/* A few sentences: who is the odd one out how often, where each leaves. */
void vn_many_say(const vn_many *m, vn_lines *lines);

#endif
