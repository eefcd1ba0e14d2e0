/* bytelevel.h: bytes written as printable characters, the alphabet in which
 * byte-level BPE writes its vocabulary (specs/models.md, "Bytes to characters"). */
#ifndef VN_LIBREF_TEXT_BYTELEVEL_H
#define VN_LIBREF_TEXT_BYTELEVEL_H

#include <stdbool.h>
#include <stddef.h>

/* n bytes as characters; to has room for 2n. Returns the length. */
size_t vn_bytelevel_write(char *to, const char *bytes, size_t n);
/* And back; to has room for n. False when text holds other characters. */
bool   vn_bytelevel_read(char *to, size_t *length, const char *text, size_t n);

#endif
