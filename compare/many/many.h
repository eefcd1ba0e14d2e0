/* many.h: compares several candidates with one reference.
 *
 * Each candidate is a comparison of its own, whose document (compare/result/document.h) is reduced
 * to what a report on all of them shows: a few members (the head), and a file with the reports in
 * full and a line per checkpoint. Another process may do this: vn_many_add needs no more.
 * So memory is that of the comparisons that are made at the same time, plus a cell per checkpoint
 * and candidate.
 *
 * A row is one checkpoint. Rows are in the order of the first candidate that was compared;
 * checkpoints that only later candidates have come last.
 *
 * Owner    paths are borrowed; everything else belongs to the vn_many, until vn_many_finish.
 */
#pragma once

#include "compare/result/document.h"

#include <stdio.h>

enum { VN_MANY_MOST = 16 }; /* candidates */
enum { VN_MANY_PAGES = 4 }; /* candidates that an HTML page shows side by side */

typedef struct vn_many_cell {
	bool                 there; /* the comparison has the checkpoint; else the rest is not set */
	bool                 measured, fails, origin;
	/* in a vote: the column of the elected recording, whose numbers the others are compared with */
	bool                 self;
	vn_checkpoint_status status;
	int                  point; /* index in the comparison's result */
	double               nmse, cosine, max_abs, max_rel;
	double               over_floor; /* nmse in floors; NaN: no floor */
} vn_many_cell;

/* The place of a report in the file of a candidate. */
typedef struct vn_many_kept {
	long from, bytes;
} vn_many_kept;

typedef struct vn_many_candidate {
	const char   *path;
	int           status; /* 0 within, 1 outside, 2 not compared */
	/* verdict (as vn_report_say_verdict), counts, start (as in words.h; "" if there is nothing to
	 * say); about, ref_about (who recorded it, and its reference); limits (with the reason for the
	 * choice), floor (its source; "": none); digests (of the reference, of the candidate: checked,
	 * wrong, without); warnings, next (commands to type after this comparison); of status 2:
	 * verdict, trouble (why), refusals */
	json_t       *head;
	int           first; /* row of its first divergence; -1: none */
	vn_many_cell *cell;  /* (n_cells), by row; it has no checkpoint in later rows */
	int           n_cells;
	FILE         *file;       /* NULL: no report is kept */
	vn_many_kept  json, page; /* its report, in full and as the HTML page embeds it; 0 bytes: not kept */
} vn_many_candidate;

typedef struct vn_many_row {
	const char *label; /* as vn_label; both are interned (libref/base/intern.h) */
	const char *name;
	int         step, layer;
} vn_many_row;

/* The place of a label among the rows. */
typedef struct vn_many_label {
	const char *label;
	int         row;
} vn_many_label;

typedef struct vn_many {
	const char       *ref; /* in a vote: how it was decided */
	/* there is no reference: outside means not with the majority (vote.h) */
	bool              vote;
	bool              strict;  /* in a vote: warnings fail a recording that is with the majority */
	int               elected; /* of a vote */
	vn_many_candidate candidate[VN_MANY_MOST];
	int               n;
	vn_many_row      *row;
	int               n_rows;
	vn_many_label    *by_label; /* (n_sorted), sorted */
	int               n_sorted;
	unsigned          keep;  /* vn_many_keep */
	vn_lines          notes; /* on all of them: what the user's settings gave */
} vn_many;

/* Results of vn_many_odd that are not a candidate. */
enum { VN_MANY_NONE = -1, VN_MANY_ALL = -2, VN_MANY_SEVERAL = -3 };

/* What the file of a candidate has beside its rows: its report for vn_many_json, for
 * vn_many_html. */
enum vn_many_keep { VN_MANY_KEEP_JSON = 1, VN_MANY_KEEP_PAGES = 2 };
/* Opens the file for a candidate. */
FILE     *vn_many_open(vn_error *err);
/* Writes what is to be kept into the file, and makes the head. Or makes the head of a candidate
 * that was not compared, with the reason in trouble; without memory, or after a signal (why), this
 * fails. */
vn_status vn_many_reduce(const vn_document *doc, unsigned keep, FILE *file, json_t **head, vn_error *err);
vn_status vn_many_trouble(vn_status why, const vn_error *trouble, const vn_lines *refusals, json_t **head,
                          vn_error *err);
/* Adds the next candidate; one that was not compared needs no file. Takes head and file, also after
 * a failure. VN_ERR_IO: the file does not have what the head says. */
vn_status vn_many_add(vn_many *m, const char *path, json_t *head, FILE *file, vn_error *err);
void      vn_many_finish(vn_many *m);

/* Returns a text of the head, "" if there is none; a list, NULL if there is none. */
const char *vn_many_said(const vn_many_candidate *x, const char *key);
json_t     *vn_many_list(const vn_many_candidate *x, const char *key);
/* Returns a member as a new reference, null if there is none. */
json_t     *vn_many_member(const vn_many_candidate *x, const char *key);
/* Returns the digests of the reference (0) or the candidate (1) that were checked. */
vn_verified vn_many_digests(const vn_many_candidate *x, int side);

/* Returns a candidate's cell, or NULL if it does not have the checkpoint or was not compared. */
const vn_many_cell *vn_many_cell_of(const vn_many *m, int row, int candidate);
/* Returns the odd one out: the only candidate that is outside, if at least two were compared. Else
 * VN_MANY_NONE (none is outside), VN_MANY_ALL (all of at least two are) or VN_MANY_SEVERAL (some
 * are, or the only one). */
int                 vn_many_odd(const vn_many *m, int row);
/* Returns who recorded the reference; "": of a vote, or no candidate was compared. */
const char         *vn_many_ref_about(const vn_many *m);
/* Sets shown[i] (n) of the candidates that the page shows side by side: of those whose page was
 * kept, the VN_MANY_PAGES worst: outside before within, then by where they diverge, then as on the
 * command line. Returns how many were kept. */
int                 vn_many_shown(const vn_many *m, bool shown[VN_MANY_MOST]);
/* Does any candidate fail here? */
bool                vn_many_fails(const vn_many *m, int row);
/* Copies a report of a candidate. Returns false if it cannot be read or written. */
bool                vn_many_copy(const vn_many_candidate *x, const vn_many_kept *text, FILE *out);
/* Returns the worst exit status of all candidates. */
int                 vn_many_status(const vn_many *m);
/* Returns 'A', 'B'... */
char                vn_many_letter(int candidate);
/* Returns how many candidates have this status. */
int                 vn_many_count(const vn_many *m, int status);
/* Adds commands to type now: the first of each candidate that is outside; if none is, of each that
 * was compared. Adds nothing for a vote without a majority. */
void                vn_many_next(const vn_many *m, vn_lines *lines);
/* Adds a few sentences: which candidate is the odd one out and how often, and where each
 * diverges. */
void                vn_many_say(const vn_many *m, vn_lines *lines);
