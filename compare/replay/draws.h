/* draws.h: the floor of a span, measured by random roundings.
 *
 * A span is several operations that are computed together, because no tensor between them was
 * captured. Its floor is the error of a correct engine over all of them. One run in the candidate's
 * precision gives one number of a random quantity (for the logits of one token it scatters between
 * a fifth and four times its mean), and for float32 none: the reference adds more precisely than
 * any engine. So the model is run several times more precisely, with the result of every operation
 * rounded at random (random_rounding.h): each run is a draw of a correct engine, which chooses
 * experts as the candidate did, or for itself where that is not known (settle.h). Tensors that the
 * candidate captured are taken from it, as in the replay.
 *
 *   floor               the mean over the draws of the error against the more precise run B
 *   degrees of freedom  how many independent errors the tensor has: 2 / variance of a row's squared
 *                       error relative to its mean, times the rows. The 512 logits of a token share
 *                       the error of one hidden state, which has 4 to 16
 *
 * A recording without spans needs no draws and pays nothing.
 *
 * Reads   opened.cand, opened.ref, opened.model, opened.policy, the measured checkpoints
 * Fills   nothing of the comparison
 */
#pragma once

#include "compare/replay/random_rounding.h"
#include "compare/replay/replay_state.h"

enum { VN_DRAWS_MOST = 8 };

/* Finds out whether a measured checkpoint is the end of a span, and if so creates the engines of
 * r->draws, which is NULL otherwise. step: (steps), of the candidate. Call when the engines of the
 * replay exist. */
vn_status vn_draws_open(vn_replay *r, const vn_step *step, int steps, vn_error *err);
/* In the following functions, nothing is done if r->draws is NULL. */
void      vn_draws_close(vn_replay *r);
/* Begins and ends the step r->at in all draws. keep: as for an engine. */
vn_status vn_draws_begin(vn_replay *r, const int32_t *ids, vn_error *err);
void      vn_draws_end(vn_replay *r, bool keep);
/* Runs node k in all draws and measures its outputs where spans end. Call once a node and step,
 * after both engines of the replay have run it. */
vn_status vn_draws_node(vn_replay *r, int k, vn_error *err);

/* The engines that hold values beside those of the replay. */
int               vn_draws_count(const vn_replay *r);
vn_replay_engine *vn_draws_engine(const vn_replay *r, int i);

/* Returns the floor of a value that the current node made; NULL: no span ends there. */
const vn_span_floor *vn_draws_floor(const vn_replay *r, int value);
/* Sets p's replay.channel and channel_of_steps. f: what vn_draws_floor returned; near: A or B,
 * whichever is nearer to the candidate's tensor cand, in its shape. */
void vn_draws_channels(vn_replay *r, const vn_span_floor *f, const vn_tensor *near, const vn_tensor *cand,
                       vn_checkpoint *p);
/* Judges the steps of a value together, because one row says little: adds the local error l of this
 * step to the value's pool. If the errors of all steps so far are larger than chance allows, this
 * step's limits are no longer widened. Call once a step. */
void vn_draws_pool(const vn_replay *r, int value, vn_replayed *l);
