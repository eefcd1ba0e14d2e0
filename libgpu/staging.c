/* staging.c: see staging.h. */
#include "libgpu/staging.h"

#include "libref/base/grow.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_SIZE ((int64_t)64 << 20)

vn_status vn_staging_create(vn_device *d, vn_staging *s, int64_t size, bool guard, vn_error *err)
{
	vn_status st = VN_OK;

	if (size <= 0)
		size = DEFAULT_SIZE;
	*s = (vn_staging) { .size = ((size_t)size + VN_ZONE - 1) & ~(size_t)(VN_ZONE - 1) };
	for (int i = 0; i < 2 && !st; i++)
		st = vn_buffer_create(
			d, &s->buf[i], &(vn_buffer_need) { VN_FOR_READBACK, s->size, guard, i ? "staging 1" : "staging 0" }, err);
	return st;
}

void vn_staging_destroy(vn_device *d, vn_staging *s)
{
	for (int i = 0; i < 2; i++) {
		vn_buffer_destroy(d, &s->buf[i]);
		free(s->part[i]);
	}
	*s = (vn_staging) { 0 };
}

void vn_staging_clear(vn_staging *s, int i, bool guard)
{
	s->used[i] = 0;
	s->n[i] = 0;
	if (guard)
		memset(s->buf[i].map, 0xFF, s->size);
}

void vn_staging_reset(vn_staging *s, bool guard)
{
	for (int i = 0; i < 2; i++) {
		vn_staging_clear(s, i, guard);
		if (guard) /* zones and all */
			memset((char *)s->buf[i].map - s->buf[i].offset, 0xFF, s->buf[i].total);
	}
	s->handed = 0;
}

vn_status vn_staging_add(vn_staging *s, int i, vn_transfer_part part, vn_error *err)
{
	if (!VN_GROW(s->part[i], s->n[i]))
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a list of taps");
	s->part[i][s->n[i]++] = part;
	return VN_OK;
}
