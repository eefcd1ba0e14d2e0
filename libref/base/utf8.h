/* utf8.h: bytes that may be UTF-8, and how to show them on a terminal.
 *
 * Well-formed is as in the Unicode standard: no overlong forms, no surrogates, nothing above
 * U+10FFFF. Lengths are in bytes; a NUL is an ordinary character.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the length of the character at the start of text, 1 to 4; 0: it is not well-formed. */
int      vn_utf8_length(const char *text, size_t bytes);
/* Does a character start here that continues beyond the text? bytes must be at least 1. */
bool     vn_utf8_cut(const char *text, size_t bytes);
/* Returns the code point of a well-formed character. */
uint32_t vn_utf8_point(const char *text);
/* Returns the length of the character that ends at the end of text; 0: it is not well-formed. */
int      vn_utf8_length_before(const char *text, size_t bytes);
/* Return how many bytes at the start of text are well-formed characters (good), or are not
 * (bad). */
size_t   vn_utf8_good(const char *text, size_t bytes);
size_t   vn_utf8_bad(const char *text, size_t bytes);

/* Replaces each byte that is not part of a well-formed character by '?'. Returns text. */
char *vn_utf8_clean(char *text);

/* The only place that decides which characters a terminal, a log or a page may get unchanged.
 * Letters, signs and emoji of every script may pass. Not: controls (C0, DEL, C1), direction
 * controls, characters without width (joiners, variation selectors, tags, fillers), line
 * separators, private and unassigned code points. */
bool   vn_utf8_printable(uint32_t point);
/* Returns how many bytes at the start of text are printable. marks: combining marks so far, 0 at
 * first; the fifth on one letter is not printable, nor is the # of a command that runners of CI
 * look for in a log (##[, ##vso[). */
size_t vn_utf8_plain(const char *text, size_t bytes, int *marks);
/* Returns how many bytes at the end of text may be the start of such a command, or of "::". */
size_t vn_utf8_command_begun(const char *text, size_t bytes);
/* Writes the escape for the unprintable character at the start of text: \n, \r or \t; \u{202e} for
 * any other character; \xff for a byte that is not UTF-8. Returns the length of the character, at
 * least 1. bytes must be at least 1. */
#define VN_UTF8_CODE 12
size_t vn_utf8_code(const char *text, size_t bytes, char code[VN_UTF8_CODE]);

/* Show any bytes in one line. escape also doubles backslashes, so that unescape, which works in
 * place and returns the length, restores the bytes; shown leaves backslashes alone, so that
 * applying it twice changes nothing more. The caller frees the result; NULL without memory. */
char  *vn_utf8_escape(const char *text, size_t bytes);
char  *vn_utf8_shown(const char *text, size_t bytes);
size_t vn_utf8_unescape(char *text);
