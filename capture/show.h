/* show.h: what `vernier show` and its JSON share. */
#ifndef VN_CAPTURE_SHOW_H
#define VN_CAPTURE_SHOW_H

#include "capture/recording.h"

/* The whole recording, or entry i when i >= 0 (data: its numbers), as JSON to
 * stdout; schema "vernier-show/1". False when it cannot be written. */
bool vn_show_json(const vn_recording *r, int i, const void *data);

/* Element k of data as a double. */
double vn_show_value(const void *data, vn_dtype dtype, int64_t k);

#endif
