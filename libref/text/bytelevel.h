/* bytelevel.h: writes bytes as printable characters, the alphabet of byte-level BPE vocabularies
 * (specs/models.md, "Bytes to characters"). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Converts n bytes to characters; `to` has room for 2n bytes. Returns the length. */
size_t vn_bytelevel_write(char *to, const char *bytes, size_t n);
/* Converts back; `to` has room for n bytes. Returns false if text has other characters. */
bool   vn_bytelevel_read(char *to, size_t *length, const char *text, size_t n);
