/* digest.c: see digest.h. */
#include "libref/base/digest.h"

#include <string.h>
#include <xxhash.h>

/* The packaged library is built for SSE2. If it brings kernels selected at run time, use those;
 * the digests are the same. */
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

static const char digits[] = "0123456789abcdef";

vn_digest vn_digest_text(const vn_digest_bytes *bytes)
{
	vn_digest d;

	for (size_t i = 0; i < sizeof bytes->byte; i++) {
		d.hex[2 * i] = digits[bytes->byte[i] >> 4];
		d.hex[2 * i + 1] = digits[bytes->byte[i] & 15];
	}
	d.hex[VN_DIGEST_TEXT - 1] = '\0';
	return d;
}

bool vn_digest_pack(const char *text, vn_digest_bytes *bytes)
{
	if (strlen(text) != VN_DIGEST_TEXT - 1 || strspn(text, digits) != VN_DIGEST_TEXT - 1)
		return false;
	for (size_t i = 0; i < sizeof bytes->byte; i++)
		bytes->byte[i] = (unsigned char)((strchr(digits, text[2 * i]) - digits) << 4 |
		                                 (strchr(digits, text[2 * i + 1]) - digits));
	return true;
}

static vn_digest text_of(XXH128_hash_t h)
{
	XXH128_canonical_t bytes; /* big-endian: the same text on every machine */
	vn_digest_bytes    of;

	XXH128_canonicalFromHash(&bytes, h);
	memcpy(of.byte, bytes.digest, sizeof of.byte);
	return vn_digest_text(&of);
}

vn_digest vn_digest_of(const void *data, size_t bytes)
{
	return text_of(XXH3_128bits(data, bytes));
}

vn_digester *vn_digester_create(void)
{
	vn_digester *d = XXH3_createState();
	if (d)
		XXH3_128bits_reset(d);
	return d;
}

void vn_digester_add(vn_digester *d, const void *data, size_t bytes)
{
	XXH3_128bits_update(d, data, bytes);
}

vn_digest vn_digester_finish(vn_digester *d)
{
	vn_digest text = text_of(XXH3_128bits_digest(d));
	XXH3_freeState(d);
	return text;
}
