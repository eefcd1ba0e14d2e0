/* normal.h: Unicode's canonical composition (NFC), as `tokenizers` does it. */
#ifndef VN_LIBREF_TEXT_NORMAL_H
#define VN_LIBREF_TEXT_NORMAL_H

#include "libref/base/error.h"

#include <stddef.h>

/* text: well-formed UTF-8. *out is text itself if a quick check shows that it is composed already;
 * else new memory in *owned, which the caller frees. */
void vn_nfc(const char *text, size_t bytes, const char **out, size_t *n, char **owned);

#endif
