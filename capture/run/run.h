/* run.h: recording a run: any engine, walking a model's plan, into a file.
 *
 * Threads  one thread; the store has one of its own.
 * Errors   the file is then as store.h says; the text names what is left of it.
 */
#ifndef VN_CAPTURE_RUN_H
#define VN_CAPTURE_RUN_H

#include "capture/run/engine.h"
#include "capture/run/recorder_fault.h"
#include "libref/text/tokenizer.h"

/* What to record and where. */
typedef struct vn_recipe {
	const char        *path;
	bool               force;
	const int32_t     *ids;                     /* the prompt: step 0 */
	int64_t            n_ids;
	const vn_tokenizer *tokenizer;              /* for the text of the tokens; NULL: not recorded */
	int64_t            decode;                  /* tokens behind it, a step each */
	const int32_t     *forced;                  /* (decode) which; NULL: chosen (libref/exec/sample.h) */
	double             temperature;             /* 0: greedy */
	uint64_t           seed;
	const char *const *pattern;
	int                n_patterns;
	int                first_layer, last_layer; /* -1: all */
	vn_tap_rows        rows;
	int64_t            first, last;             /* VN_ROWS_RANGE */
	const char        *precision, *command;
	const char        *inject;                  /* faults of the engine and of the recording, as words; NULL: none */
	vn_recorder_fault      *recorder_fault;               /* of the recording; NULL: none */
	int                threads;                 /* for the table of weights; 0: one a processor */
} vn_recipe;

typedef struct vn_recorded {
	int64_t tensors, bytes;
	double  seconds, computing; /* in all; inside the engine */
	bool    compiled;           /* and that is also the compilation of shaders */
	int     unsound_weights;    /* tensors that hold NaN or infinities: recorded all the same */
	char    unsound[VN_NAME_MAX + 96]; /* the first of them, as half a sentence */
} vn_recorded;

/* Everything about a recipe that can be refused before an engine exists: ids
 * outside the vocabulary, more than the context (decoded ones too), layers and
 * rows the run does not have, patterns that select nothing, a path that cannot
 * be written. */
vn_status vn_recipe_check(const vn_recipe *r, const vn_plan *plan, vn_error *err);

vn_status vn_record(const vn_recipe *r, const vn_model *m, const vn_engine *e, vn_recorded *done, vn_error *err);

#endif
