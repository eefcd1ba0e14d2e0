/* scan.h: walks an untrusted HDF5 file, in a child (child.h), and sends what it finds as frames.
 *
 * An error is a FAILED frame and ends the process, so nothing is ever freed. The parent (receive.c)
 * checks every frame.
 */
#pragma once

#include "capture/recording/frames.h"

/* Work for vn_child_start, with a vn_scan as ctx: everything except the tensors' numbers; the
 * numbers of some tensors, in native order, or one child's share of them. Both end with DONE or
 * FAILED. */
void vn_scan_file(void *ctx, int pipe);
void vn_scan_numbers(void *ctx, int pipe);
