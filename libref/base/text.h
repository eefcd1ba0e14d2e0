/* text.h: words from people and from files: numbers, and what a terminal may be shown. */
#ifndef VN_LIBREF_BASE_TEXT_H
#define VN_LIBREF_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A whole number at the start of text, digits with an optional minus: what is
 * behind it. NULL, and *x left alone, when there is none or it does not fit. */
const char *vn_text_digits(const char *text, int64_t *x);
/* A whole number from low to high, all of text. False leaves *x alone. */
bool  vn_text_whole(const char *text, int64_t low, int64_t high, int64_t *x);
/* A decimal number from low to high, all of text: "0.7", "1e-3", not "nan" and
 * not "0x1". False leaves *x alone. */
bool  vn_text_real(const char *text, double low, double high, double *x);

/* Appends to text of size bytes, as far as there is room. */
__attribute__((format(printf, 3, 4)))
void  vn_text_add(char *text, size_t size, const char *format, ...);

/* Copies text to line + at, without its final 0, and returns the place behind it. For signal handlers, which may not call
 * snprintf. The caller has the room. */
size_t vn_text_put(char *line, size_t at, const char *text);

/* In place, in that room: what is not printable (vn_utf8_printable) as \n, \u{202e}, \xff. Twice is as once. What
 * does not fit is cut off. Returns text. */
char *vn_text_clean(char *text, size_t room);
/* vsnprintf, then that. */
__attribute__((format(printf, 3, 0)))
char *vn_text_print(char *text, size_t room, const char *format, va_list args);
/* "512 bytes", "4.3 kB", "12.0 MB", "3.1 GB" */
char *vn_text_bytes(int64_t bytes, char text[24]);
/* C0 and DEL, which no name may hold. */
bool  vn_text_control(char c);

#endif
