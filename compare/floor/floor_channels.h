/* floor_channels.h: the floor of a channel pool (judge/pool_channels.h), measured on the same rows.
 *
 * Reads   opened.floor or a run's tensors, result.channel_pool
 * Fills   floor of each channel pool, and of the checkpoints that it charges
 */
#ifndef VN_COMPARE_FLOOR_CHANNELS_H
#define VN_COMPARE_FLOOR_CHANNELS_H

#include "compare/judge/pool_channels.h"

/* From the recording opened.floor, when every checkpoint has its own floor. */
vn_status vn_floor_channels_of_file(vn_comparison *c, vn_channel_entry *entry, vn_error *err);

/* From a run, of which nothing is kept but these rows: what it made of p. side 0: the run; 1: a finer one that it is held against. */
vn_status vn_floor_channels_keep(vn_comparison *c, const vn_checkpoint *p, int side, const vn_tensor *t, vn_error *err);
/* When it is over: against the finer one, or the reference. joins: a floor is there already, this one comes to it (vn_floor_join);
 * twice: this run stands for both. Gives the rows back. */
vn_status vn_floor_channels_take(vn_comparison *c, bool finer, bool joins, bool twice, vn_error *err);
/* Gives them back where the run failed. */
void      vn_floor_channels_drop(vn_comparison *c);

#endif
