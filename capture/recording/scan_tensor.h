/* scan_tensor.h: reads the description of one tensor of an untrusted file, for scan.c in the
 * child. */
#pragma once

#include "capture/recording/scan_read.h"

/* Returns a reader for tensors that can be read without HDF5; NULL if that is impossible for this
 * file. */
vn_header_reader *vn_scan_reader(const vn_scan *s, hid_t file);

/* Complete *t with what the dataset is and states. *stored: bytes of its numbers in the file. The
 * first reads only the header at t->address, and returns false if HDF5 must read it; the second
 * uses the opened dataset. A refusal ends the process (scan.h). */
bool vn_scan_tensor_header(const vn_scan *s, vn_header_reader *r, const char *object, vn_seen_tensor *t,
                           int64_t *stored);
void vn_scan_tensor(const vn_scan *s, hid_t d, const char *object, vn_seen_tensor *t, int64_t *stored);
