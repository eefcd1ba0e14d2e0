/* text.h: words from people and from files: whole numbers, and what a terminal may be shown. */
#ifndef VN_LIBREF_BASE_TEXT_H
#define VN_LIBREF_BASE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

/* A whole number from low to high, all of text: digits with an optional minus.
 * False leaves *x alone. */
bool  vn_text_whole(const char *text, int64_t low, int64_t high, int64_t *x);

/* A terminal obeys control characters: each becomes '?'. Returns text. */
char *vn_text_clean(char *text);
bool  vn_text_control(char c);

#endif
