/* damage.c: see damage.h. */
#include "capture/damage.h"

#include <string.h>

vn_status vn_damage_of(vn_recording *r, int i, vn_digest *now, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, i);
	const void     *data;

	*now = (vn_digest) { "" };
	if (!*e->digest.hex)
		return VN_OK;
	const vn_status st = vn_recording_data(r, i, &data, err);
	if (st)
		return st;
	const vn_digest d = vn_digest_of(data, (size_t)vn_shape_count(&e->shape) * vn_dtype_size(e->dtype));
	vn_recording_release(r, i);
	if (strcmp(d.hex, e->digest.hex) != 0)
		*now = d;
	return VN_OK;
}
