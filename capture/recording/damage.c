/* damage.c: see damage.h. */
#include "capture/recording/damage.h"

#include "capture/recording/numbers.h"

#include <string.h>

vn_status vn_damage_of(vn_recording *r, int i, vn_digest *now, vn_error *err)
{
	const vn_entry *e = vn_recording_entry(r, i);

	*now = (vn_digest) { "" };
	if (!*e->digest.hex)
		return VN_OK;
	vn_numbers  *s = vn_numbers_open(r, i, err);
	vn_digester *d = s ? vn_digester_create() : NULL;
	vn_status    st = d ? VN_OK : vn_fail(err, VN_ERR_NOMEM, "%s: no memory for the digest of %s", vn_recording_path(r), e->name);
	for (int64_t at = 0; !st && at < vn_numbers_count(s); at += VN_NUMBERS) {
		const size_t n = vn_numbers_left(vn_numbers_count(s), at);
		if (!(st = vn_numbers_raw(s, at, n, err)))
			vn_digester_add(d, s->raw, n * vn_dtype_size(e->dtype));
	}
	const vn_digest sum = d ? vn_digester_finish(d) : (vn_digest) { "" };
	vn_numbers_close(s);
	if (!st && strcmp(sum.hex, e->digest.hex) != 0)
		*now = sum;
	return st;
}
