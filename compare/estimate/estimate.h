/* estimate.h: fits constants of operations (a RoPE base, an eps, a scale, a window...), to find a
 * wrong value that the catalogue does not list.
 *
 * This is one of the strategies in explain/explain_point.c. The table in estimate.c lists, for each
 * kind of operation, what is fitted and how. The other functions are estimators: they read a number
 * off the candidate's data and try it as a trial (trial/score.h). The table calls those that take
 * an operation (`at`); the others are strategies of their own.
 */
#pragma once

#include "compare/trial/case.h"

/* Fits constants of the operations between the checkpoint and captured values: of each operation
 * alone, then one constant for several operations. */
void vn_estimate(vn_case *t);

/* estimate_arithmetic.c: finds an operation that computes with other arithmetic than the model's:
 * sums of squares that overflow float32, a narrower format than the rest of the run, another
 * activation. */

/* Tries the overflow of a norm: if the sum of squares of a row exceeds float32, a correct norm in
 * float32 gives 0, but the reference, which sums in double, does not. If this explains the
 * checkpoint, an earlier operation is at fault, and no other mistake needs to be tried. */
void vn_estimate_squares(vn_case *t);
/* Tries narrower formats than the run's for the operation or for its result: those that hold all of
 * the candidate's numbers exactly. */
void vn_estimate_narrow(vn_case *t);
/* Tries other activations: all of them on a few numbers, the best one on all. */
void vn_estimate_activation(vn_case *t);

/* estimate_attention.c: estimates which keys an attention saw, and mistakes of attention that none
 * of its constants can express (attend.h): several calls recorded as one, a sink, a cap,
 * intermediate rounding. */

/* Fits a sliding window, also one that keeps the first keys visible. at->node is an attention; at's
 * constants.places says which others have the same window. */
void vn_estimate_window(vn_case *t, const vn_trial *at);
/* Fits blocks of tokens that see each other (A3.blocks). */
void vn_estimate_blocks(vn_case *t, const vn_trial *at);
/* Fits a prefix that all queries of the call see (A3.prefix). */
void vn_estimate_prefix(vn_case *t, const vn_trial *at);
/* Tries by how many places heads of queries, keys or values are rolled (A24). */
void vn_estimate_head_roll(vn_case *t, const vn_trial *at);
/* Tries the simplest ways in which a query sees fewer keys: the one with the largest score; the
 * first; its own; those of the first call. On a few queries a fitted scale or window explains them
 * too, so those are fitted only if these fail. */
void vn_estimate_seen_keys(vn_case *t);
/* Tries the mistakes that no constant expresses. */
void vn_estimate_attend(vn_case *t);

/* estimate_cache.c: estimates which keys and values an attention read instead of the right ones. */

/* Fits, for the checkpoint's own attention: cache slots that hold other tokens, at offsets that the
 * catalogue does not list; and keys of padding. */
void vn_estimate_keys(vn_case *t);
/* Tries a sink, which has the weight of n keys of padding: one more score without a value, of logit
 * log n. n need not be whole. If it is, only a logit that a person wrote is as good as padding. */
void vn_fit_sink(vn_case *t, int node, double n);
/* Tries, for any checkpoint of an attention in a later call: new tokens that are cached one slot
 * early or late (vn_applied_slots). */
void vn_estimate_new_slots(vn_case *t);

/* estimate_linear.c: estimates mistakes of a linear product whose number is not in the catalogue:
 * how often the bias was added, how many ranks there were and which of them are present, how shards
 * were joined, how far rows are padded. For changes of the matrix or the input, it calls
 * estimate_matrix.c. */

/* Applies if the checkpoint is a linear product. The number is estimated from some rows and
 * channels and then tried. */
void vn_estimate_linear(vn_case *t);

/* estimate_rope.c: estimates a rotation, and the positions of its tokens, from its input and
 * output. */

/* Fits theta, the scaling, the rotated width, the pairing of columns and an offset of positions.
 * at->node must be a rotation. */
void vn_estimate_rope(vn_case *t, const vn_trial *at);

/* estimate_rotate.c: estimates mistakes of a rotation that none of its constants can express
 * (vn_other_rotation): rounded angles and tables; calls, recorded as one, that each count from
 * position 0; token ids used as positions; single tokens at other positions than their own. */

/* Tries rounded angles and tables, exchanged sine and cosine, and calls that each count from 0. */
void vn_estimate_rotate(vn_case *t);
/* Tries token ids in place of positions, in every call or in those after the first. Call it before
 * an offset of positions is fitted, because that explains a single token as well. */
void vn_estimate_rotate_by_ids(vn_case *t);
/* Tries wrong positions of one token, or of a run of tokens: with an offset, all at one position,
 * stretched or halved. */
void vn_estimate_rotated_tokens(vn_case *t);
/* In a step of one token: fits a factor of all angles, or of the angles after the first call. at: a
 * rotation. */
void vn_estimate_stretch_of_one(vn_case *t, const vn_trial *at);
