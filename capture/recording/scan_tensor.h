/* scan_tensor.h: one tensor of a stranger's file, for scan.c in the child. */
#ifndef VN_CAPTURE_SCAN_TENSOR_H
#define VN_CAPTURE_SCAN_TENSOR_H

#include "capture/file/object_header.h"
#include "capture/recording/scan_read.h"

/* For tensors that can be read without HDF5; NULL when none of this file can. */
vn_header_reader *vn_scan_reader(const vn_scan *s, hid_t file);

/* What *t does not have yet: what the dataset is and says. The header alone, at t->address: false when HDF5 must look
 * at it; then with the dataset opened. Refusals end the process (scan.h). */
bool vn_scan_tensor_header(const vn_scan *s, vn_header_reader *r, const char *object, vn_seen_tensor *t);
void vn_scan_tensor(const vn_scan *s, hid_t d, const char *object, vn_seen_tensor *t);

#endif
