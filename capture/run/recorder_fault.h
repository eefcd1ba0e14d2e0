/* recorder_fault.h: mistakes in recording a run, made on purpose.
 *
 * These are the faults of specs/models.md 9.8 that a changed plan cannot express, because they happen
 * between the engine and the file. For the selected checkpoints the file gets the bytes of another
 * call, bytes read in another format, or only some rows. The engine itself computes correctly, and
 * decodes the same tokens.
 *
 * Owner    the plan is borrowed and must outlive the reader.
 * Threads  as a sink's.
 */
#ifndef VN_CAPTURE_MISREAD_H
#define VN_CAPTURE_MISREAD_H

#include "libref/plan/tap.h"

int         vn_n_recorder_faults(void);
const char *vn_recorder_fault_id(int i);    /* "P12.swapped" */
const char *vn_recorder_fault_means(int i); /* one line */
/* By its id, or "P13" for the first of P13's; of what stands before an @. -1: none. */
int         vn_recorder_fault_find(const char *what);
/* How many checkpoints of a plan it fits. */
int         vn_recorder_fault_count(int i, const vn_plan *p);

typedef struct vn_recorder_fault vn_recorder_fault;

vn_status vn_recorder_fault_create(const vn_plan *plan, vn_recorder_fault **m, vn_error *err);
void      vn_recorder_fault_destroy(vn_recorder_fault *m);
/* "P13@layer2.*": the last that selects a checkpoint holds. Refused: a pattern that selects nothing it fits. */
vn_status vn_recorder_fault_inject(vn_recorder_fault *m, const char *what, vn_error *err);
/* Of which checkpoints it files what a prompt before made: want (n_values). false: of none. They are to be run, with this sink, before
 * the next. */
bool      vn_recorder_fault_former(const vn_recorder_fault *m, bool *want);
vn_sink   vn_recorder_fault_keep(vn_recorder_fault *m);
/* What goes to `behind` through it; each tensor is held whole. VN_ERR_USAGE from it: numbers of which there is no such recorder_fault. */
vn_sink   vn_recorder_fault_sink(vn_recorder_fault *m, const vn_sink *behind);

#endif
