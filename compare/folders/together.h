/* together.h: the outcome of a comparison of folders, pair by pair: a JSON document, which is shown
 * as text, and joined from the parts of several processes (part.h).
 *
 * The document (schema vernier-folders/1, specs/json.md) holds neither times nor names of machines:
 * the parts of any number of processes, joined, give the bytes that one process writes.
 *
 * Owner    the paths of the folders are borrowed; other texts live as long as the program
 *          (libref/base/intern.h); all else is the vn_together's, until vn_together_free.
 */
#pragma once

#include "compare/folders/part.h"
#include "compare/match/folders.h"

#include "libref/base/digest.h"

#include <stdio.h>

/* The outcome of one pair, or of a name that some folders lack. */
typedef struct vn_together_pair {
	const char *name;   /* "prompt1.h5" */
	unsigned    there;  /* bit s: side s has it: the reference's folder, the candidates' */
	int         status; /* as the exit status: 0 within, 1 outside, 2 trouble */
	bool        again;  /* it lacked memory, or was interrupted: this is not said of its files */
	/* with several candidates: the status of each, as a digit, or "-" if neither it nor the
	 * reference has the file; with one: "" */
	char        each[VN_MOST_FOLDERS];
	const char *words; /* "33 checkpoints", "first: layer1.q_rope" */
	/* (sides) who recorded it in each, "vernier-ref 1.0, f16; trained weights"; NULL: unknown */
	const char *by[VN_MOST_FOLDERS];
} vn_together_pair;

typedef struct vn_together {
	const char       *side[VN_MOST_FOLDERS]; /* (sides) the folders as they were given: the reference first */
	int               sides;
	vn_folder_part    part;
	const char       *work;  /* a digest of what is compared, and how */
	int               total; /* pairs of all parts */
	const char      **saw;   /* (n_saw) of all pairs: a digest of the files, a space, the name; none: not shared */
	int               n_saw;
	int               folders[VN_MOST_FOLDERS], others[VN_MOST_FOLDERS]; /* as in vn_folder_pairs */
	vn_together_pair *pair;                                              /* (n), by name */
	int               n;
	const char       *next; /* a command to type now; "": it is too long; NULL: none */
} vn_together;

/* Begins the outcome of these pairs of the folders side (sides), and sets mine (pairs->n): which of
 * them the part compares, and order (pairs->n): all of them, the largest first. asked: everything
 * on the command line that changes a verdict. Call vn_together_free afterwards, also after a
 * failure. VN_ERR_IO: the size of a file cannot be read. */
vn_status vn_together_begin(vn_together *t, const char *const *side, int sides, const vn_folder_pairs *pairs,
                            vn_folder_part part, const char *asked, bool *mine, int *order, vn_error *err);
/* Adds what the files of the next pair hold, of this part or another. */
void      vn_together_saw(vn_together *t, const char *name, vn_digest files);
/* A digest of what is compared, and how, and of what all files hold. */
vn_digest vn_together_same(const vn_together *t);
/* Returns the outcome of a pair as JSON, to be freed; NULL without memory. */
char     *vn_together_pack(const vn_together *t, const vn_together_pair *p);
/* Adds the next pair, in the order of their names: as vn_together_pack returns it, or NULL; and the
 * name as the folder has it. */
vn_status vn_together_add(vn_together *t, const char *name, const char *pair, vn_error *err);
void      vn_together_free(vn_together *t); /* t may be zeroed */

/* Returns the worst status, 0 without pairs. */
int       vn_together_status(const vn_together *t);
/* Writes a line for each pair under "== together", for each of several candidates, and what was
 * ignored. */
void      vn_together_text(const vn_together *t, FILE *out);
/* Writes the JSON. */
vn_status vn_together_json(const vn_together *t, FILE *out, vn_error *err);

/* Reads what vn_together_json wrote. VN_ERR_FORMAT: anything else. Call vn_together_free
 * afterwards, also after a failure. */
vn_status vn_together_read(const char *path, vn_together *t, vn_error *err);
/* Joins the n parts of one comparison, read from the files `path` (n), into *whole.
 * VN_ERR_MISMATCH: a file is no part, a part of another comparison, or repeated; or a part is
 * missing. */
vn_status vn_together_join(const vn_together *part, const char *const *path, int n, vn_together *whole, vn_error *err);
