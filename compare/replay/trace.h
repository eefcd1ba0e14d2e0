/* trace.h: finds the operations between a value and the captured tensors from which it was
 * computed.
 *
 * A cell is a value in a step (steps count from 0). A replay records for each cell which rows it
 * took from the candidate, and which checkpoint was charged with an error. If inputs were not
 * captured, an error may come from any operation of the span. An error that was charged once is not
 * charged again.
 */
#pragma once

#include "libref/plan/plan.h"

#include <stdint.h>

typedef enum vn_kept_rows { VN_KEPT_NOTHING, VN_KEPT_ROWS, VN_KEPT_ALL } vn_kept_rows;

typedef struct vn_trace {
	const vn_plan *plan; /* borrowed */
	unsigned char *kept; /* (steps, values) vn_kept_rows */
	/* (steps, values): checkpoint charged with a span that contains the cell; -1 */
	int           *charged_to;
	uint32_t      *stamp, now; /* marks of the current walk; now + 1: for all rows */
	/* cells; todo in pairs, with a bit for all rows */
	size_t        *span, *todo, n_span, n_todo;
} vn_trace;

vn_status vn_trace_init(vn_trace *t, const vn_plan *plan, int steps, vn_error *err);
void      vn_trace_finish(vn_trace *t); /* t may be zeroed */

void vn_trace_keep(vn_trace *t, int step, int value, vn_kept_rows rows);

vn_kept_rows vn_trace_kept(const vn_trace *t, int step, int value);

/* Walks back from a computed value to the values that were taken from the candidate. *nodes: the
 * number of operations on the way, including its own. *charged_to: a checkpoint that was charged
 * with one of them; -1: none. */
void vn_trace_span(vn_trace *t, int step, int value, int *nodes, int *charged_to);
/* Charges the operations of the last span to a checkpoint. */
void vn_trace_charge(vn_trace *t, int point);
