/* weight.h: a row of /model/weights in its file format (specs/checkpoint.md). */
#ifndef VN_CAPTURE_WEIGHT_H
#define VN_CAPTURE_WEIGHT_H

#include "libref/base/digest.h"
#include "libref/plan/plan.h"

#include <stdint.h>

enum { VN_WEIGHT_SHAPE_TEXT = 96 }; /* for four axes; older readers accept no more */

typedef struct vn_scribe_weight {
	char    name[VN_NAME_MAX], dtype[8], shape[VN_WEIGHT_SHAPE_TEXT], digest[VN_DIGEST_TEXT];
	double  min, max, mean, rms;
	int64_t nan, inf;
} vn_scribe_weight;

#endif
