/* text.h: parses numbers given by users or files, and makes text safe for a terminal. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parses the integer at the start of text: digits with an optional minus. Returns what follows it;
 * NULL, with *x unchanged: there is no integer, or it overflows. */
const char *vn_text_digits(const char *text, int64_t *x);
/* Parses text as a whole as an integer from low to high. False leaves *x unchanged. */
bool        vn_text_whole(const char *text, int64_t low, int64_t high, int64_t *x);
/* Parses text as a whole as a decimal number from low to high: "0.7", "1e-3", but not "nan" or
 * "0x1". False leaves *x unchanged. */
bool        vn_text_real(const char *text, double low, double high, double *x);

/* Return what is printed; the caller frees it. NULL: no memory. */
__attribute__((format(printf, 1, 2))) char *vn_text_new(const char *format, ...);
__attribute__((format(printf, 1, 0))) char *vn_text_new_args(const char *format, va_list args);

/* Writes a number as people do, with the fewest digits that give it back: 0.1, 1e-6, 500000.
 * Returns text. */
char *vn_text_number(double x, char text[32]);

/* Appends to text (size bytes); what does not fit is cut off. */
__attribute__((format(printf, 3, 4))) void vn_text_add(char *text, size_t size, const char *format, ...);

/* Returns which of the words "a|b|c" this is, from 0 on; -1: none. words may be NULL. */
int         vn_text_word(const char *words, const char *word);
bool        vn_text_is_word(const char *words, const char *word);
/* Writes the words "a|b|c" as "a, b or c"; what does not fit is cut off. Returns text. */
const char *vn_text_words(const char *words, char *text, size_t room);

/* Copies text without its NUL to line + at, and returns the offset after it. For signal handlers,
 * which may not call snprintf. The caller ensures that there is room. */
size_t vn_text_put(char *line, size_t at, const char *text);

/* Escapes unprintable characters (vn_utf8_printable) in place, within `room` bytes, as \n,
 * \u{202e}, \xff. Applying it twice changes nothing more. What does not fit is cut off. Returns
 * text. */
char                                       *vn_text_clean(char *text, size_t room);
/* vsnprintf, then vn_text_clean. */
__attribute__((format(printf, 3, 0))) char *vn_text_print(char *text, size_t room, const char *format, va_list args);
/* Writes "512 bytes", "4.3 kB", "12.0 MB" or "3.1 GB". Returns text. */
char                                       *vn_text_bytes(int64_t bytes, char text[24]);
/* The last part of a path: what follows its last '/'. */
const char                                 *vn_text_file(const char *path);
/* Does text end with this, whatever the case of ASCII letters? */
bool                                        vn_text_ends(const char *text, const char *end);
/* Where word is in text, whatever the case of ASCII letters; NULL: nowhere. */
const char                                 *vn_text_find(const char *text, const char *word);
/* The order of two names as of strcmp, but by the value of numbers in them: step2, step10. */
int                                         vn_text_order(const char *a, const char *b);
/* Is it a C0 control or DEL? Names may not contain these. */
bool                                        vn_text_control(char c);
