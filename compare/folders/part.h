/* part.h: divides the pairs of two folders among processes, each of which takes one part.
 *
 * Every process computes the same division from the sizes of the files alone, so they need not talk
 * to each other. The largest pairs are dealt first, each to the part with the fewest bytes so far.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { VN_MOST_PARTS = 100000 };

typedef struct vn_folder_part {
	int index, of; /* 1 to `of`; of 0: everything */
} vn_folder_part;

/* Reads "I/N", or "N": then I is the number that the scheduler gave this process, counted from its
 * first: SLURM_ARRAY_TASK_ID (an array job), OMPI_COMM_WORLD_RANK (mpirun of Open MPI), PMI_RANK
 * (mpirun of MPICH), SLURM_PROCID (srun), JOB_COMPLETION_INDEX (an indexed job of Kubernetes); the
 * first that is set. VN_ERR_USAGE: another text, a number out of range, none of these variables, or
 * a scheduler that says that it runs another number of processes. */
vn_status vn_folder_part_read(const char *text, vn_folder_part *part, vn_error *err);

/* Sets mine (n) for the items that belong to the part, and order (n) to all items, the largest
 * first. bytes (n): their sizes. */
void vn_folder_part_deal(const int64_t *bytes, int n, vn_folder_part part, bool *mine, int *order);
