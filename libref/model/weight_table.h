/* weight_table.h: makes the table of weights of a model (vn_weight_row) in threads of its own,
 * beside other work.
 *
 * Threads  start and finish from one thread.
 * Errors   none: if no thread can be started, finish makes the table.
 */
#pragma once

#include "libref/model/model.h"

typedef struct vn_weight_table vn_weight_table;

/* Starts as many threads as vn_model_table. m and rows (n_weights of the plan) must live until
 * vn_weight_table_finish. NULL: no memory; nothing was started. */
vn_weight_table *vn_weight_table_start(const vn_model *m, int threads, vn_weight_row *rows);
/* Waits until the rows are complete, or, with drop, until the threads have stopped, and frees t. */
void             vn_weight_table_finish(vn_weight_table *t, bool drop);

/* Fewest elements of a weight that several threads share. Smaller only in tests. */
extern size_t vn_weight_table_least;
