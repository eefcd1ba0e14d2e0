/* floor_channels.h: the floor of a channel pool (judge/pool_channels.h), measured on the same rows.
 *
 * Reads   request.options, opened.floor or the tensors of a run; pools.channel_pool
 * Fills   floor of each channel pool, and of the checkpoints that it charges
 */
#pragma once

#include "compare/judge/pool_channels.h"

/* Measures it from the recording opened.floor. Call when every checkpoint has its own floor. */
vn_status vn_floor_channels_of_file(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, vn_channel_entry *entry,
                                    vn_error *err);

/* Copies the pooled rows of p from tensor t of a run, because the run keeps no tensors. side 0: the
 * floor's run; side 1: the finer run that it is compared with. */
void vn_floor_channels_keep(const vn_checkpoints *all, vn_pools *pools, const vn_checkpoint *p, int side,
                            const vn_tensor *t);
typedef struct vn_floor_run {
	bool finer; /* it is measured against a more precise run, not against the reference */
	bool joins; /* adds its floor to the one that exists (vn_judge_floor_sum) */
	bool twice; /* adds it twice, because this run represents two independent ones */
} vn_floor_run;
/* Call after the run. Measures the kept rows, and frees them. */
vn_status vn_floor_channels_take(const vn_opened *o, vn_checkpoints *all, vn_pools *pools, const vn_floor_run *run,
                                 vn_error *err);
/* Frees the kept rows, after a failed run. */
void      vn_floor_channels_drop(vn_pools *pools);
