/* digest.h: XXH3-128 digests of bytes.
 *
 * They tell two tensors, two sets of weights or two prompts apart. They are not cryptographic: they
 * guard against mistakes, not against malice.
 */
#pragma once

#include "libref/base/error.h"

#include <stdbool.h>
#include <stddef.h>

#define VN_DIGEST_TEXT 33

typedef struct vn_digest {
	char hex[VN_DIGEST_TEXT]; /* 32 lower-case digits; empty: unknown */
} vn_digest;

/* A digest in half the memory, for recordings of millions of tensors. */
typedef struct vn_digest_bytes {
	unsigned char byte[16];
} vn_digest_bytes;

vn_digest vn_digest_of(const void *data, size_t bytes);

/* Reads 32 lower-case hexadecimal digits. Returns false for any other text. */
bool      vn_digest_pack(const char *text, vn_digest_bytes *bytes);
vn_digest vn_digest_text(const vn_digest_bytes *bytes);

/* The same in pieces. create returns NULL if there is no memory; finish frees d. The type is XXH3's
 * own state, which XXH3 allocates with the alignment it needs. */
typedef struct XXH3_state_s vn_digester;
vn_digester                *vn_digester_create(void);
void                        vn_digester_add(vn_digester *d, const void *data, size_t bytes);
vn_digest                   vn_digester_finish(vn_digester *d);
