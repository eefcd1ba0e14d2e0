/* derive.h: derived recordings: recordings whose tensors are made of other recordings' tensors.
 *
 * Another engine's dump may have the same numbers under other names, several checkpoints in one
 * tensor, one checkpoint spread over the files of several ranks, a batch row, or a paged cache. A
 * derived recording describes each of its tensors as boxes of source tensors, and gathers them when
 * it is read. Its names, axes and shapes are those of a checkpoint file, and readers need not know
 * where it came from.
 *
 * Data is read only on demand, and no more than is asked for (vn_recording_read). A whole tensor is
 * in memory only if vn_recording_data asks for it; a whole source tensor only if it is small and
 * compressed, chunked or big-endian. A tensor that is one whole source tensor shares its bytes and
 * digest, without a copy.
 */
#pragma once

#include "capture/recording/recording.h"

/* Creates an empty recording over n sources, with the tokens, facts, model and plan of the first.
 * Takes ownership of the sources unless it fails. path: its name in messages. */
vn_status vn_derive(const char *path, vn_recording *const *base, int n, vn_recording **r, vn_error *err);
/* Creates a recording without tensors, tokens or facts, for one that does not exist. path: where it
 * was expected. */
vn_status vn_derive_nothing(const char *path, vn_recording **r, vn_error *err);
/* Adds a tensor. Of e: name, step, axes, dtype, shape and the like are used; digest and statistics
 * only if it is a whole source tensor. The pieces and texts are copied. Every element must be
 * covered, and exactly once unless pieces are summed. The dtype is the pieces'; a sum is computed
 * in double and stored as f64 for f64 sources, else as f32. */
vn_status vn_derive_add(vn_recording *r, const vn_entry *e, const vn_piece *piece, int n, vn_joined how, vn_error *err);
/* Adds a whole source tensor, under its own or another name. */
vn_status vn_derive_keep(vn_recording *r, const vn_entry *e, int base, int entry, vn_error *err);
/* Finishes the recording: sorts and checks it. */
vn_status vn_derive_end(vn_recording *r, vn_error *err);

/* Lists the tensors of the innermost recording (one that is not derived) that entry i is made of,
 * each once, at most `room`. Returns how many there are. Follows only the first source of each
 * recording. */
int  vn_derive_origins(const vn_recording *r, int i, int *list, int room);
/* Is entry i, or a tensor that it is made of, a sum of several tensors (of ranks' partial results)?
 * Its numbers are then rounded in another order than in the engine that recorded the parts. */
bool vn_derive_is_sum(const vn_recording *r, int i);
/* Is entry i made of pieces that are all mapped? Then any part of it can be read without making the
 * whole. */
bool vn_derive_in_pieces(const vn_recording *r, int i);

/* Replaces the tokens of the first source by one prompt. Takes ownership of ids and positions (n),
 * which are from malloc. */
void vn_derive_tokens(vn_recording *r, int32_t *ids, int32_t *positions, int64_t n);
/* at most as many as it has */
void vn_derive_steps(vn_recording *r, const vn_step *step, int n);
/* The derived recording joins all n ranks of one run, so it is not one rank
 * (vn_recording_ranks). */
void vn_derive_ranks(vn_recording *r, int n);
/* Removes weights and plan, which are those of a part of the model. */
void vn_derive_forget_model(vn_recording *r);
