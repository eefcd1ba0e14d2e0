/* match.h: pairs the tensors of both recordings by name and step.
 *
 * Reads   request.options and limits, opened.ref, opened.cand, opened.plan
 * Fills   the checkpoints; n_neither, cand_map, ref_map and misspelt of what is unpaired; lines of
 *         notes and warnings; of each checkpoint the name, its place in both recordings, vacuous
 *         and, where it cannot be measured (missing, extra, empty, misshapen), status, fails and
 *         detail
 */
#pragma once

#include "compare/comparison/comparison.h"

/* A checkpoint of this entry, of which nothing is known yet. */
vn_checkpoint vn_match_point(const vn_entry *e, int ref, int cand);

/* Do the options select checkpoints of this name (--points)? */
bool vn_match_selects(const vn_opened *o, const char *name);

/* Fills the list of checkpoints. */
vn_status vn_match(const vn_opened *o, vn_checkpoints *all, vn_lines *notes, vn_error *err);

/* Adds notes that explain names that only one side has, and sets cand_map, ref_map and
 * misspelt. Call after vn_match. */
vn_status vn_match_names(const vn_opened *o, const vn_checkpoints *all, vn_unpaired *unpaired, vn_lines *notes,
                         vn_error *err);

/* Counts n_neither. Call after vn_match. */
void vn_match_count_neither(const vn_opened *o, const vn_checkpoints *points, vn_unpaired *unpaired);

/* Warns of a checkpoint that the candidate lacks, though it has its point in the layers before and
 * after it and in most others, unless it fails as missing. Call after vn_match. */
void vn_match_find_gaps(const vn_opened *o, const vn_checkpoints *all, vn_lines *warnings);

/* Sets `vacuous` of every measured checkpoint whose agreement proves nothing: for example, both
 * sides hold one number everywhere, or the numbers of the same point of another layer. */
vn_status vn_match_find_vacuous(const vn_opened *o, vn_checkpoints *all, vn_error *err);
