/* verify.h: checks the numbers of a recording against the digests in its file.
 *
 * A file may have a digest of each tensor, over all of its stored numbers (specs/checkpoint.md).
 * Before any number of such a tensor is handed out, all of them are read and their digest is
 * computed, once in the life of the recording, whatever is then read: a part, a view, a piece of
 * another tensor. Numbers that contradict their digest are not handed out (VN_ERR_DAMAGED), unless
 * that was allowed. Either way they are remembered: vn_recording_wrong lists them.
 *
 * Code that reads all numbers anyway borrows them unchecked (vn_recording_lend), computes the
 * digest in the same pass, and reports it (vn_recording_vouch). No result may be based on such
 * numbers before vn_recording_verify.
 *
 * For a derived recording (derive.h) all of this applies to the innermost files.
 *
 * Threads  vn_recording_vouch and vn_recording_verify_entry: any, also on one tensor at once; the
 *          others: one at a time.
 */
#pragma once

#include "capture/recording/recording.h"

/* Also hands out numbers that contradict their digest. */
void vn_recording_allow_damage(vn_recording *r);

/* While this is on, contiguous tensors are handed out unchecked, for code that reads a few numbers
 * of tensors that will be measured later. vn_recording_verify checks them afterwards. */
void vn_recording_defer(vn_recording *r, bool on);

/* Same as vn_recording_data, unchecked. *unchecked: the borrower must compute the digest of all
 * these bytes and pass it to vn_recording_vouch. False if the tensor is lent already or was
 * checked. */
vn_status vn_recording_lend(vn_recording *r, int i, const void **data, bool *unchecked, vn_error *err);
void      vn_recording_vouch(vn_recording *r, int i, const vn_digest *found);

/* Checks what was handed out unchecked. Returns VN_OK even if some are wrong; see
 * vn_recording_verified. VN_ERR_IO if another program changed a complete file since it was
 * opened. */
vn_status vn_recording_verify(vn_recording *r, vn_error *err);
/* Checks all tensors that entry i is made of. */
vn_status vn_recording_verify_entry(vn_recording *r, int i, vn_error *err);

/* Accepts the digest of entry i without a check: if some of its numbers were handed out unchecked
 * (vn_recording_defer), vn_recording_verify does not read them. Returns false if entry i is not the
 * whole of one tensor of a checkpoint file. */
bool vn_recording_trust(vn_recording *r, int i);

/* Counts of the stored tensors that were read so far. */
typedef struct vn_verified {
	int64_t checked; /* numbers match the digest */
	int64_t wrong;   /* numbers contradict the digest */
	int64_t without; /* the file has no digest for them */
} vn_verified;
/* Adds the counts to *sum. */
void vn_recording_verified(const vn_recording *r, vn_verified *sum);
/* Reports each wrong tensor in one line: file, step, tensor, both digests. */
void vn_recording_wrong(const vn_recording *r, void (*say)(void *context, const char *words), void *context);

/* Reads entry i and returns the digest of its numbers if it differs from the one in the file; else
 * empty, also if the file has none. */
vn_status vn_recording_found(vn_recording *r, int i, vn_digest *found, vn_error *err);
