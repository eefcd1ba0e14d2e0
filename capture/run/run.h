/* run.h: records a run: any engine, executing a model's plan, into a file.
 *
 * Threads  one thread; the store has one of its own.
 * Errors   the file is then as store.h says; the error names what remains of it.
 */
#pragma once

#include "capture/run/against.h"
#include "capture/run/engine.h"
#include "capture/run/follow.h"
#include "capture/run/recorder_fault.h"
#include "libref/text/tokenizer.h"

/* What to record, and where. */
typedef struct vn_recipe {
	const char          *path;
	bool                 force;
	const int32_t       *ids; /* the prompt: step 0 */
	int64_t              n_ids;
	/* to record the text of the tokens; NULL: not recorded */
	const vn_tokenizer  *tokenizer;
	int64_t              decode; /* tokens after the prompt, one step each */
	/* (decode) which tokens; NULL: chosen (libref/exec/sample.h) */
	const int32_t       *forced;
	double               temperature; /* 0: greedy */
	uint64_t             seed;
	const char *const   *pattern;
	int                  n_patterns;
	int                  first_layer, last_layer; /* -1: all */
	/* a recording that the run follows (follow.h), whose ids are those above; it says what is
	 * recorded of each call, in place of the members around this one; NULL: none */
	const vn_follow     *follow;
	vn_tap_rows          rows;
	int64_t              first, last; /* VN_ROWS_RANGE */
	const char          *precision, *command;
	/* faults of engine and recording, as given by the user; NULL: none */
	const char          *inject;
	vn_recorder_fault   *recorder_fault; /* fault of the recording; NULL: none */
	const vn_weight_row *weights;        /* the model's table; NULL: computed with `threads` */
	int                  threads;        /* 0: one per processor */
	const char          *scenario;       /* its name among those of one command; NULL: the only one */
	/* a recording to judge the run by, so that only what is outside its limits is written
	 * (screen.h); NULL: none */
	const char          *against, *limits; /* limits NULL: those of the precision */
	const vn_run_judge  *judge;            /* if against */
	bool                 stop_at_first;
	bool                 validate, guard; /* as vn_engine_options: checks that decide whether a run succeeds */
} vn_recipe;

typedef struct vn_recorded {
	int64_t tensors, bytes;
	double  seconds;              /* in total */
	double  compiling, computing; /* inside the engine: compiling code for the device; the rest */
	bool    compiled;             /* no earlier run had left that code, and this one does */
	/* weight tensors that hold NaN or infinities; recorded nevertheless */
	int     nonfinite_weights;
	char    nonfinite[VN_NAME_MAX + 96]; /* the first of them, as half a sentence */
	/* of a judged run: how many tensors were judged, left out, and outside; the first of these in
	 * words */
	int64_t judged, left_out, outside;
	char    found[VN_OPINION_WORDS + VN_NAME_MAX + 64];
	bool    stopped; /* the run ended at that tensor */
} vn_recorded;

/* Are all n token ids in the vocabulary? VN_ERR_USAGE names the first that is not. */
vn_status vn_ids_check(const int32_t *ids, int64_t n, const vn_plan *plan, vn_error *err);

/* Checks everything about a recipe that does not need an engine: ids in the vocabulary, length
 * within the context (decoded tokens included), layers and rows that exist, patterns that select
 * something, a path that can be written. */
vn_status vn_recipe_check(const vn_recipe *r, const vn_plan *plan, vn_error *err);

/* Adds the recipe's settings to the facts of a run. */
void vn_recipe_facts(const vn_recipe *r, vn_facts *facts);
/* Adds all facts of a run that are known before it. */
void vn_run_facts(const vn_recipe *r, const vn_engine *e, vn_facts *facts);

/* Counts the weights (rows, n) that hold NaN or infinities. */
void      vn_recorded_weights(const vn_weight_row *rows, int n, vn_recorded *done);
/* What the run is judged by; r->against is not NULL. */
vn_status vn_recipe_judged_by(const vn_recipe *r, const vn_model *m, vn_judged_by *by, vn_error *err);

/* Runs the recipe and writes the file. *done: what was recorded. */
vn_status vn_record(const vn_recipe *r, const vn_model *m, const vn_engine *e, vn_recorded *done, vn_error *err);
