/* session.h: a model, its planted faults and an engine, for one recording or for several in
 * sequence.
 *
 * The first recording opens the engine and computes the table of weights, which later recordings
 * reuse. For a GPU, threads compute the table while the weights are loaded, unless the number of
 * threads is given.
 *
 * Owner    the options and texts are borrowed until vn_session_close.
 * Threads  one at a time.
 */
#pragma once

#include "capture/run/run.h"
#include "libref/model/weight_table.h"

typedef struct vn_session {
	vn_model          *m;
	vn_engine_options  run;
	vn_engine          e;
	vn_faulty         *faulty;
	vn_weight_row     *table;  /* (weights of the plan); NULL: not computed yet */
	vn_weight_table   *making; /* threads that compute it; NULL: none */
	const char *const *inject;
	int                n_inject;
	char               injected[VN_FACT_VALUE]; /* all of them */
} vn_session;

/* Opens the model and makes the faults (inject, n: FAULT@GLOB). Call vn_session_close afterwards,
 * also after a failure. */
vn_status vn_session_open(vn_session *s, const char *model, const vn_engine_options *run, const char *const *inject,
                          int n, vn_error *err);
/* Returns the table of weights; NULL: no memory. */
const vn_weight_row *vn_session_table(vn_session *s);
/* Adds all facts that a recording would have before its run. Opens the engine. */
vn_status            vn_session_facts(vn_session *s, const vn_recipe *r, vn_facts *facts, vn_error *err);
/* Records, with the faults of the session. *done: what was recorded. */
vn_status            vn_session_record(vn_session *s, const vn_recipe *r, vn_recorded *done, vn_error *err);
void                 vn_session_close(vn_session *s); /* s may be zeroed */
