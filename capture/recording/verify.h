/* verify.h: the numbers of a recording against the digests that its file has of them.
 *
 * A file may have a digest of each tensor, over all of its stored numbers (specs/checkpoint.md). Before any number of
 * such a tensor is handed out, all of them are read and their digest is taken, once in the life of the recording,
 * whatever is then read of it: a part, a view, a piece of another tensor. Numbers that contradict their digest are
 * not handed out (VN_ERR_DAMAGED), unless whoever opened the recording allows it. Either way they are remembered:
 * vn_recording_wrong tells of them after a caller has passed over the failure.
 *
 * Who measures all numbers anyway borrows them unchecked (vn_recording_lend), takes the digest in the same pass and
 * says what it is (vn_recording_vouch). Nothing may come of such numbers before vn_recording_verify.
 *
 * Of a recording made of others (derive.h) all of this is said of the files at the bottom.
 *
 * Threads  vn_recording_vouch and vn_recording_verify_entry: any, also of one tensor at once; the others: one.
 */
#ifndef VN_CAPTURE_VERIFY_H
#define VN_CAPTURE_VERIFY_H

#include "capture/recording/recording.h"

/* Numbers that contradict their digest are handed out as well. */
void vn_recording_allow_damage(vn_recording *r);

/* While this is on, what lies in a file as it is is handed out before it is checked: for a look at a few numbers of
 * tensors that are to be measured afterwards. vn_recording_verify makes up for it. */
void vn_recording_defer(vn_recording *r, bool on);

/* As vn_recording_data. *unchecked: the borrower takes the digest of these bytes, all of the entry's, and vouches for
 * it. Of a tensor that is borrowed already, or was checked, nobody has to. */
vn_status vn_recording_lend(vn_recording *r, int i, const void **data, bool *unchecked, vn_error *err);
void      vn_recording_vouch(vn_recording *r, int i, const vn_digest *found);

/* Checks what was handed out unchecked. VN_OK also where some are wrong (vn_recording_verified). */
vn_status vn_recording_verify(vn_recording *r, vn_error *err);
/* Checks all tensors that entry i is made of. */
vn_status vn_recording_verify_entry(vn_recording *r, int i, vn_error *err);

/* Of the stored tensors that were read so far. */
typedef struct vn_verified {
	int64_t checked; /* whose numbers are those of their digest */
	int64_t wrong;   /* whose numbers contradict it */
	int64_t without; /* of which the file has none */
} vn_verified;
/* Adds to sum. */
void vn_recording_verified(const vn_recording *r, vn_verified *sum);
/* Says which are wrong, a line each: file, step, tensor, both digests. */
void vn_recording_wrong(const vn_recording *r, void (*say)(void *context, const char *words), void *context);

/* The digest that the numbers of entry i have, where it is not the one in the file; else empty, also where the file
 * has none. Reads the tensor. */
vn_status vn_recording_found(vn_recording *r, int i, vn_digest *found, vn_error *err);

#endif
