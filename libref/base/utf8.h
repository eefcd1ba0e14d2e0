/* utf8.h: bytes that may be UTF-8, and how a terminal may be shown them.
 *
 * Well-formed is what the Unicode standard calls so: no overlong forms, no
 * surrogates, nothing above U+10FFFF. Bytes are counted, a NUL is one of them.
 */
#ifndef VN_LIBREF_BASE_UTF8_H
#define VN_LIBREF_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that begins at text, 1 to 4; 0 when no well-formed one does. */
int      vn_utf8_length(const char *text, size_t bytes);
/* The code point of a well-formed character. */
uint32_t vn_utf8_point(const char *text);
/* The same backwards: the character that ends at the end of text, 0 when none does. */
int      vn_utf8_length_before(const char *text, size_t bytes);
/* Bytes at the start of text that are well-formed characters, and bytes at its start that are none. */
size_t   vn_utf8_good(const char *text, size_t bytes);
size_t   vn_utf8_bad(const char *text, size_t bytes);

/* Each byte of no well-formed character becomes '?'. Returns text. */
char    *vn_utf8_clean(char *text);

/* One line that shows any bytes: printable characters as they are; a backslash
 * as \\, newline, return and tab as \n \r \t, other controls, formats and code
 * points without a meaning as \u{200d}, a byte of no character as \xff. The
 * caller's to free; NULL without memory. unescape, in place, gives the bytes
 * back and returns how many. */
char    *vn_utf8_escape(const char *text, size_t bytes);
size_t   vn_utf8_unescape(char *text);

#endif
