/* reference_rows.h: checks on some rows whether a long reference recording was made by its model.
 *
 * A run of the model checks every number, and takes as long as the floor. Instead, for a prompt in
 * one call, of VN_REFERENCE_LONG tokens or more, each recorded value is computed from the recorded
 * values before it, in the reference's own precision: a few tokens at equal distances, and the
 * token in which the floor's run is farthest from the reference. If one of them differs by more
 * than a hundredth of the allowed error, only a run of the model can decide.
 *
 * Reads   opened.ref, opened.model, request.options, the checkpoints
 * Fills   nothing of the comparison
 */
#pragma once

#include "compare/floor/floor_check.h"
#include "compare/match/names.h"
#include "libref/plan/policy.h"

enum { VN_REFERENCE_LONG = 128 };

/* *agrees: every measured checkpoint was checked and is the model's. False: one is not, or rows
 * cannot decide it (a short prompt, several calls, missing values between operations that mix
 * tokens). worst (checkpoints): a token to check, or -1. own (checkpoints):
 * the nmse and the worst token's nmse of the rows; set if it agrees. */
vn_status vn_reference_rows(const vn_floor_parts *f, const vn_names *names, const int64_t *worst, double (*own)[2],
                            bool *agrees, vn_error *err);
