/* recorder_fault.h: makes mistakes in recording a run, on purpose.
 *
 * These are the faults of chapter P of specs/faults.md that a changed plan cannot express, because
 * they happen between the engine and the file. For the selected checkpoints, the file gets the
 * bytes of another call, bytes read in another format, or only some rows. The engine itself
 * computes correctly, and decodes the same tokens.
 *
 * Owner    the plan is borrowed and must outlive the vn_recorder_fault.
 * Threads  as a sink's.
 */
#pragma once

#include "libref/plan/tap.h"

int         vn_n_recorder_faults(void);
const char *vn_recorder_fault_id(int i);    /* "P12.swapped" */
const char *vn_recorder_fault_means(int i); /* one line */
/* Finds a recorder fault by its id; "P13" finds the first of P13's. Reads up to an '@'. -1:
 * none. */
int         vn_recorder_fault_find(const char *what);
/* Does it fit a value of a plan? And how many of its checkpoints? */
bool        vn_recorder_fault_fits(int i, const vn_plan *p, int value);
int         vn_recorder_fault_count(int i, const vn_plan *p);

typedef struct vn_recorder_fault vn_recorder_fault;

vn_recorder_fault *vn_recorder_fault_create(const vn_plan *plan);
void               vn_recorder_fault_destroy(vn_recorder_fault *m);
/* Adds a fault: "P13@layer2.*". If several select a checkpoint, the last one applies. Fails if the
 * pattern selects nothing that the fault fits. */
vn_status          vn_recorder_fault_inject(vn_recorder_fault *m, const char *what, vn_error *err);
/* Sets want (n_values) to the checkpoints that get the numbers of an earlier prompt; returns false
 * if there are none. If there are, that prompt must be run first, with the sink of
 * vn_recorder_fault_keep. */
bool               vn_recorder_fault_former(const vn_recorder_fault *m, bool *want);
vn_sink            vn_recorder_fault_keep(vn_recorder_fault *m);
/* Returns a sink that passes tensors on to `behind`, changed. Each tensor is held whole. It fails
 * with VN_ERR_USAGE on numbers that the fault cannot change. */
vn_sink            vn_recorder_fault_sink(vn_recorder_fault *m, const vn_sink *behind);
