/* guard.c: finds writes outside of buffers; see guard.h. */
#include "libgpu/guard.h"
#include "libref/base/grow.h"

#include <stdlib.h>

void vn_guard_clear(vn_guard *g)
{
	g->n = 0;
	g->no_memory = false;
}

void vn_guard_destroy(vn_device *d, vn_guard *g)
{
	vn_buffer_destroy(d, &g->readback);
	free(g->zone);
	*g = (vn_guard) { 0 };
}

void vn_guard_zone(vn_guard *g, vn_buffer *b, VkDeviceSize at, VkDeviceSize bytes, const char *before,
                   const char *after)
{
	if (!VN_GROW(g->zone, g->n)) {
		g->no_memory = true;
		return;
	}
	g->zone[g->n++] = (vn_zone) { .b = b, .at = at, .bytes = bytes, .before = before, .after = after };
}

void vn_guard_buffer(vn_guard *g, vn_buffer *b)
{
	const VkDeviceSize end = b->offset + b->size;

	vn_guard_zone(g, b, 0, b->offset, NULL, b->name);
	vn_guard_zone(g, b, end, b->total - end, b->name, NULL);
}

vn_status vn_guard_prepare(vn_device *d, vn_guard *g, vn_error *err)
{
	VkDeviceSize bytes = 0;

	if (g->no_memory)
		return vn_fail(err, VN_ERR_NOMEM, "no memory for a list of guard zones");
	for (int i = 0; i < g->n; i++)
		bytes += g->zone[i].bytes;
	return vn_buffer_ensure(d, &g->readback, &(vn_buffer_need) { VN_FOR_READBACK, bytes, false, "guard zones" }, err);
}

void vn_guard_encode(vn_encoder *e, vn_guard *g)
{
	VkDeviceSize to = 0;

	for (int i = 0; i < g->n; i++) {
		const vn_zone *z = &g->zone[i];
		/* The encoder counts offsets from the first byte inside the zones; modulo 2^64 the sum is
		 * also right for bytes before it. */
		vn_encode_copy_out(e, z->b, z->at - z->b->offset, &g->readback, to, z->bytes);
		to += z->bytes;
	}
}

vn_status vn_guard_check(const vn_guard *g, vn_error *err)
{
	const unsigned char *byte = g->readback.map;

	for (int i = 0; i < g->n; i++) {
		const vn_zone *z = &g->zone[i];
		for (VkDeviceSize k = 0; k < z->bytes; k++, byte++) {
			if (*byte == 0xFF)
				continue;
			if (z->before && z->after)
				return vn_fail(err, VN_ERR_DEVICE,
				               "something wrote between %s and %s, %llu bytes after the end of the first", z->before,
				               z->after, (unsigned long long)k);
			if (z->before)
				return vn_fail(err, VN_ERR_DEVICE, "%s was overrun: something wrote %llu bytes after its end",
				               z->before, (unsigned long long)k);
			return vn_fail(err, VN_ERR_DEVICE, "%s was underrun: something wrote %llu bytes before its beginning",
			               z->after, (unsigned long long)(z->bytes - k));
		}
	}
	return VN_OK;
}
