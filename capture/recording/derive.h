/* derive.h: a recording made of others, tensor by tensor.
 *
 * Another engine's dump has the same numbers under other names, several in one
 * tensor, one spread over the files of several ranks, a row of a batch, a cache in
 * pages. A derived recording says of each of its tensors which boxes of which
 * tensors it is; reading it gathers them. Names, axes and shapes are then those of
 * a checkpoint file, and whoever reads it need not know where it came from.
 *
 * Nothing is read before it is asked for, and no more than is asked for (vn_recording_read): the whole of a tensor is in
 * memory only where vn_recording_data wants it so, and of a source where it is small and compressed, chunked or
 * big-endian. A tensor that is one whole tensor of a source is that tensor: same bytes, same digest, no copy.
 */
#ifndef VN_CAPTURE_DERIVE_H
#define VN_CAPTURE_DERIVE_H

#include "capture/recording/recording.h"

/* A box of the result, and where its numbers are: element (i, j...) of the box, which
 * begins at `to` in the result, is element from + i stride[0] + j stride[1]... of the
 * source. */
typedef struct vn_piece {
	int      base, entry;          /* which source, which of its tensors */
	int64_t  to[VN_MAX_RANK], size[VN_MAX_RANK];
	int64_t  from, stride[VN_MAX_RANK];
} vn_piece;

/* How pieces that cover one place become one number. */
typedef enum vn_joined { VN_JOIN_PLACED /* none does: each element is in one piece */, VN_JOIN_SUMMED } vn_joined;

/* An empty recording over n sources, with the tokens, facts, model and plan of the
 * first. Takes the sources unless it fails. path: what messages call it. */
vn_status vn_derive(const char *path, vn_recording *const *base, int n, vn_recording **r, vn_error *err);
/* One that nobody made: no tensor, no token, nothing said. path: where it was looked for. */
vn_status vn_derive_nothing(const char *path, vn_recording **r, vn_error *err);
/* One more tensor: e's name, step, axes, dtype and shape... count; its digest and
 * statistics do not unless it is a whole tensor of a source. The pieces are copied, and its words.
 * Every element must be covered, once unless summed. The dtype is the pieces' (a sum
 * is made in double and kept in f64 for f64, else in f32). */
vn_status vn_derive_add(vn_recording *r, const vn_entry *e, const vn_piece *piece, int n, vn_joined how, vn_error *err);
/* A tensor that stays what it is, under another name or not. */
vn_status vn_derive_keep(vn_recording *r, const vn_entry *e, int base, int entry, vn_error *err);
/* Sorted, checked, ready to be read. */
vn_status vn_derive_end(vn_recording *r, vn_error *err);

/* Which tensors of the recording at the bottom, that is made of none, entry i is made of: each once, as many as there is
 * room for. Returns how many these are. Only the first source of each is followed. */
int vn_derive_origins(const vn_recording *r, int i, int *list, int room);
/* Is entry i, or a tensor that it is made of, a sum of several tensors (of the partial results of ranks)? Its numbers
 * are then rounded in another order than those of the engine that recorded the parts. */
bool vn_derive_is_sum(const vn_recording *r, int i);

/* Instead of what the first source says, one prompt. ids and positions (n) are copied. */
vn_status vn_derive_tokens(vn_recording *r, const int32_t *ids, const int32_t *positions, int64_t n, vn_error *err);
void      vn_derive_steps(vn_recording *r, const vn_step *step, int n); /* no more than it has */
/* Its sources are all ranks of one run: it is none of them (vn_recording_ranks). */
void      vn_derive_ranks(vn_recording *r, int n);
/* Weights and plan are of parts of a model only. */
void      vn_derive_forget_model(vn_recording *r);

#endif
