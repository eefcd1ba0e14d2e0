/* replayed_file.h: a replay file (specs/checkpoint.md): what PyTorch computes for the results of a
 * run from the run's own recorded results.
 *
 * It belongs to two recordings, a candidate and its reference, which it names by digest.
 *
 * Owner   the file owns its recording and its results; names are interned.
 * Errors  a file that contradicts itself or the two recordings is refused in one line.
 */
#pragma once

#include "capture/recording/recording.h"
#include "libref/base/json.h"

/* How a result is judged: by its numbers; by its whole numbers; as a choice, by the scores that it
 * was made by. */
enum { VN_ALTERNATIVES_MOST = 16 };
typedef enum vn_judged_kind { VN_JUDGED_NUMBERS, VN_JUDGED_IDS, VN_JUDGED_CHOICE } vn_judged_kind;

/* What a result would be if the operation had been another one: a mistake that the replay tried. */
typedef struct vn_tried_mistake {
	const char *word, *is, *due; /* its row of compare/replayed/variants.def, and what its sentence names */
	int         numbers, floor;  /* entries of the file; floor -1: it has none */
} vn_tried_mistake;

/* A mistake in all of the result that is far below the floor: the error is share times the
 * difference that it would make. */
typedef struct vn_projection {
	const char *word, *is, *due; /* as above */
	double      share, error;    /* its standard error */
} vn_projection;

/* A result that was recomputed. */
typedef struct vn_judged_result {
	const char       *name, *reference; /* in the candidate; in the reference */
	const char       *op;               /* its class or function; "": not said */
	const char       *scores, *ids;     /* of a choice; of weights beside ids. "": none */
	int               step, node;       /* node: in the reference's plan */
	int               span;             /* number of nodes computed together; 0: as the region says */
	int               exchanged;        /* choices in its region that are the candidate's, where rounding decides */
	int               ref, cand;        /* entries of the two recordings */
	int               expected, floor, again, again_floor; /* entries of the file; -1: it has none */
	vn_judged_kind    kind;
	/* in which the floor was computed, if the file stores it wider; VN_N_DTYPES: not said */
	vn_dtype          floor_format;
	vn_tried_mistake *alternative;             /* (n_alternatives) */
	int               n_alternatives, n_tried; /* n_tried: mistakes that the replay tried */
	vn_projection    *projection;              /* (n_projections) */
	int               n_projections;
} vn_judged_result;

typedef struct vn_replayed_file {
	vn_recording     *recording;
	vn_judged_result *result; /* (n), in the order of the reference's plan */
	int               n;
	int              *by_name; /* (n): results sorted by step, then name in the candidate */
	vn_dtype          format;  /* in which the candidate computed */
	bool              again;   /* a result has numbers of the second round */
	/* entries of one recording that stand for one of the other, by vn_replayed_pair; -1: none */
	int              *partner; /* (entries of the reference): of the candidate */
	int              *home;    /* (entries of the candidate): of the reference */
} vn_replayed_file;

/* Opens the replay file of these two recordings, as they are in their files. The caller closes
 * *file. */
vn_status vn_replayed_file_open(const char *path, const vn_recording *ref, const vn_recording *cand,
                                vn_replayed_file **file, vn_error *err);
void      vn_replayed_file_close(vn_replayed_file *file);

/* Returns the result of this name in the candidate; -1: it was not judged. */
int vn_replayed_find(const vn_replayed_file *file, int step, const char *name);

/* Finds the results in the recordings as they are compared, and pairs the entries: results as the
 * file says, the inputs and results of the run (in.NAME, out.NAME) by name, others not. */
vn_status vn_replayed_pair(vn_replayed_file *file, const vn_recording *ref, const vn_recording *cand, vn_error *err);

/* Is this a result of the run, or one of its inputs? */
bool vn_replayed_is_result(const char *name);
bool vn_replayed_is_input(const char *name);

/* Returns what its line says of result i, a new reference; NULL: no memory. */
json_t *vn_replayed_line(const vn_replayed_file *file, int i);
