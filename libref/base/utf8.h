/* utf8.h: bytes that may be UTF-8, and how a terminal may be shown them.
 *
 * Well-formed is what the Unicode standard calls so: no overlong forms, no
 * surrogates, nothing above U+10FFFF. Bytes are counted, a NUL is one of them.
 */
#ifndef VN_LIBREF_BASE_UTF8_H
#define VN_LIBREF_BASE_UTF8_H

#include <stdbool.h>
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

/* The one place that decides what a terminal, a log or a page may be given as it is. Letters, signs and emoji of
 * every script are; controls (C0, DEL, C1), what turns the direction of a line, what has no width (joiners, variation
 * selectors, tags, fillers), separators of lines, private and unassigned code points are not. */
bool     vn_utf8_printable(uint32_t point);
/* Bytes at the start of text that are printable. marks: combining marks so far, 0 at first; the fifth of one letter
 * is not printable. */
size_t   vn_utf8_plain(const char *text, size_t bytes, int *marks);
/* How the unprintable character at the start of text is shown, for everybody: \n, \r, \t, others \u{202e}, a byte of
 * no character \xff. Returns the character's bytes, 1 or more; bytes is 1 or more. */
#define VN_UTF8_CODE 12
size_t   vn_utf8_code(const char *text, size_t bytes, char code[VN_UTF8_CODE]);

/* One line that shows any bytes. escape doubles each backslash, and unescape, in place, gives the bytes back and
 * returns how many; shown leaves backslashes alone, so that what is shown twice is as if shown once. The caller's to
 * free; NULL without memory. */
char    *vn_utf8_escape(const char *text, size_t bytes);
char    *vn_utf8_shown(const char *text, size_t bytes);
size_t   vn_utf8_unescape(char *text);

#endif
