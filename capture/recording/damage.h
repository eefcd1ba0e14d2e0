/* damage.h: numbers that are not those that were written. */
#ifndef VN_CAPTURE_DAMAGE_H
#define VN_CAPTURE_DAMAGE_H

#include "capture/recording/recording.h"

/* The digest that entry i's numbers have now, where that is not the one in the file; else now is empty, and so it is
 * where the file holds none (entry->digest). Reads the tensor and gives its memory back. */
vn_status vn_damage_of(vn_recording *r, int i, vn_digest *now, vn_error *err);

#endif
