/* digest.c: see digest.h. */
#include "libref/base/digest.h"

#include <stdio.h>
#include <xxhash.h>

/* The library as distributed is built for SSE2; where it brings kernels chosen at run time, theirs. The digests are the same. */
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

static vn_digest text_of(XXH128_hash_t h)
{
	XXH128_canonical_t bytes; /* big-endian: the same text on every machine */
	vn_digest d;

	XXH128_canonicalFromHash(&bytes, h);
	for (size_t i = 0; i < sizeof bytes.digest; i++)
		snprintf(d.hex + 2 * i, 3, "%02x", bytes.digest[i]);
	return d;
}

vn_digest vn_digest_of(const void *data, size_t bytes)
{
	return text_of(XXH3_128bits(data, bytes));
}

/* A digester is XXH3's own state, which it allocates aligned as it wants it. */
static XXH3_state_t *state_of(vn_digester *d)
{
	return (XXH3_state_t *)(void *)d;
}

vn_digester *vn_digester_create(void)
{
	XXH3_state_t *s = XXH3_createState();
	if (s)
		XXH3_128bits_reset(s);
	return (vn_digester *)(void *)s;
}

void vn_digester_add(vn_digester *d, const void *data, size_t bytes)
{
	XXH3_128bits_update(state_of(d), data, bytes);
}

vn_digest vn_digester_finish(vn_digester *d)
{
	vn_digest text = text_of(XXH3_128bits_digest(state_of(d)));
	XXH3_freeState(state_of(d));
	return text;
}
