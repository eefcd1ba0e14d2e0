/* replayed_words.h: where a result of a replay file is, and what else the file says of it, in
 * words.
 *
 * Reads   opened.ref, opened.cand, opened.replayed, the checkpoints, result.judged
 * Fills   the caller's text
 */
#pragma once

#include "compare/comparison/checkpoint.h"
#include "compare/replayed/replayed.h"

/* If a checkpoint was computed together with operations of other modules, writes where that is:
 * "model.layers.0.self_attn, at or before model.layers.0.self_attn.o_proj". Returns text; NULL: the
 * checkpoint is the place. */
const char *vn_replayed_place(const vn_opened *o, const vn_checkpoint *p, char text[VN_WORDS]);

/* Adds what the file says of the result: its region, operations that the reference lacks, another
 * order. Nothing without a replay file. */
void vn_replayed_add_words(const vn_opened *o, const struct vn_replayed_findings *judged, const vn_checkpoint *p,
                           char text[VN_WORDS]);

/* Writes the places of the origins, "model.layers.*.mlp.gate (2)", and returns text, if there are
 * fewer places than origins; else NULL. */
const char *vn_replayed_origins(const vn_opened *o, const vn_checkpoints *all, const vn_localised *localised,
                                char text[VN_WORDS]);
