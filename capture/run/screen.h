/* screen.h: the sink of a judged run (against.h), which decides which tensors go to the store.
 *
 * A tensor outside its limits is written, with the inputs of its operation, so that they can be
 * replayed. One that cannot be judged is written. One that agrees is kept in memory while an
 * operation that reads it is still to be judged, then dropped; a line about it goes into the file
 * at the end. So the memory is that of the tensors between two operations, and of the lines.
 *
 * Inputs that are not selected are replaced by the tensors that they were made from. States of
 * earlier steps (cached keys and values) are not inputs here.
 */
#pragma once

#include "capture/run/against.h"
#include "capture/store/store.h"

typedef struct vn_screen vn_screen;

/* Opens the judge. want (n_values): the selected values, aliases resolved or not; borrowed. stop:
 * the run ends at the first tensor outside its limits. The caller closes *s. */
vn_status vn_screen_open(const vn_run_judge *judge, const vn_run_reference *a, const bool *want, bool stop,
                         vn_screen **s, vn_error *err);
void      vn_screen_close(vn_screen *s); /* NULL is allowed */

/* Returns the sink. Tensors go to `to`, a sink made by vn_store_sink. */
vn_sink   vn_screen_sink(vn_screen *s, const vn_sink *to);
/* Begins a step; the step before it has ended. */
vn_status vn_screen_step(vn_screen *s, int number, int64_t position, const int32_t *ids, int64_t tokens, vn_error *err);
/* Returns the values (n_values) written in this step, second names included if both names were
 * selected. */
const bool *vn_screen_written(const vn_screen *s);
/* Ends the last step and writes the lines. Afterwards the facts are complete. */
vn_status   vn_screen_finish(vn_screen *s, vn_store *to, vn_error *err);

/* Adds what was judged to /run: against, against_limits, judged, stopped. */
void        vn_screen_facts(const vn_screen *s, vn_facts *facts);
/* Did the run end at a tensor outside its limits? The sink then fails with VN_ERR_INTERRUPTED. */
bool        vn_screen_stopped(const vn_screen *s);
/* Sets the numbers of tensors judged, left out and outside. Returns the first one outside, in
 * words, or NULL. */
const char *vn_screen_found(const vn_screen *s, int64_t *judged, int64_t *left_out, int64_t *outside);
