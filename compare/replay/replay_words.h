/* replay_words.h: writes what a replay found for one checkpoint.
 *
 * Reads   opened.ref, opened.cand, opened.model, the checkpoints
 * Fills   the caller's text
 */
#pragma once

#include "compare/comparison/checkpoint.h"
#include "libref/plan/gemm.h"

/* For a checkpoint with replay.columns: "its columns are in the order (freq 2), and the operation
 * that reads it uses that order: not a mistake; ...", with the axes for a name map. Returns
 * text. */
const char *vn_replay_say_column_order(const vn_opened *o, const vn_checkpoint *p, char text[VN_WORDS]);

/* For a replayed checkpoint: "local error: nmse 0.5 (1e+07 x floor); inherited error: nmse 3e-07,
 * ..."; else "". Returns text. */
const char *vn_replay_say_result(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                 const vn_checkpoint *p, char text[VN_WORDS]);

/* Fills g with the matrix products that made a replayed checkpoint, with the sizes of its step.
 * Returns how many there are; 0: none, or it was not replayed. */
int vn_replayed_products(const vn_opened *o, const vn_checkpoint *p, vn_gemm g[VN_MAX_GEMM]);
