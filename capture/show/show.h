/* show.h: what `vernier show` and its JSON share. */
#ifndef VN_CAPTURE_SHOW_H
#define VN_CAPTURE_SHOW_H

#include "capture/recording/recording.h"

/* The whole recording, or entry i when i >= 0 (data: its numbers), as JSON to
 * stdout; schema "vernier-show/1". False when it cannot be written. */
bool vn_show_json(const vn_recording *r, int i, const void *data);

/* Words from files may hold anything, and a terminal obeys control characters: with '?' in their place, to stdout. */
void vn_show_put(const char *text);

/* Every digest in the file against the numbers, and every identity (identities.h); a line for each that is not so.
 * 0: all of it holds, 1: some does not, 2: err says. */
int vn_show_check(vn_recording *r, vn_error *err);

/* Element k of data as a double. */
double vn_show_value(const void *data, vn_dtype dtype, int64_t k);

#endif
