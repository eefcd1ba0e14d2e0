/* say.h: the only way to print a string that an input may have given.
 *
 * Names, attributes, texts and paths come from untrusted files. A stream of printed.h escapes what
 * a terminal would obey, but it cannot tell a newline of ours from one of theirs, which would forge
 * a line of the report. So nothing but a literal format may break a line: tests/source/said.py
 * refuses a printf of a string anywhere else.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>

/* As fprintf, but each string and character (%s, %c) is shown in one line: what is unprintable, and
 * newlines and tabs, are escaped as vn_utf8_shown does. A precision counts bytes before that, and
 * does not cut inside a character. A width counts bytes after it. The strings of vn_say_colour
 * pass. Returns the number of bytes. Conversions with L, n and m are not known. */
__attribute__((format(printf, 2, 3))) int vn_say(FILE *out, const char *format, ...);
/* The same with a list of arguments, which is left as it was. */
__attribute__((format(printf, 2, 0))) int vn_say_args(FILE *out, const char *format, va_list args);

/* Sequences that colour a terminal; VN_SAY_PLAIN ends them. */
enum { VN_SAY_PLAIN, VN_SAY_BOLD, VN_SAY_DIM, VN_SAY_RED, VN_SAY_GREEN, VN_SAY_COLOURS };
extern const char vn_say_colour[VN_SAY_COLOURS][8];
