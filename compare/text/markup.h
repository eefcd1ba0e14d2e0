/* markup.h: writes untrusted text as XML, HTML or Markdown.
 *
 * XML does not allow control characters, invalid UTF-8 or noncharacters, escaped or not. So
 * vn_utf8_shown makes them readable first (\u{1b}, \xff), and then only five characters need
 * escapes.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

/* For content, and for attributes in double or single quotes, of XML and HTML. */
void                                       vn_xml_text(FILE *out, const char *text);
/* Same for several lines: newlines stay. */
void                                       vn_xml_lines(FILE *out, const char *text);
/* For content of the HTML page (compare/report/html): escapes of unprintable characters are marked
 * up. */
void                                       vn_html_text(FILE *out, const char *text);
/* Writes the format, with each text in place of its %s as vn_html_text does. */
__attribute__((format(printf, 2, 3))) void vn_html_say(FILE *out, const char *format, ...);
/* Writes a code span, in which nothing is markup, a mention or a link. Shows at most the first
 * `most` bytes. cell: it is in a table, where | ends a cell. */
void                                       vn_markdown_code(FILE *out, const char *text, size_t most, int cell);
/* Writes the format, with each text in place of its %s as vn_markdown_code does. */
__attribute__((format(printf, 4, 5))) void vn_markdown_say(FILE *out, size_t most, int cell, const char *format, ...);
/* Writes a sentence that vernier words, as it is. If it may be markup, a mention or a link, because
 * somebody edited the report that it is read from, it becomes a code span. */
void                                       vn_markdown_text(FILE *out, const char *text, int cell);
/* A cell of CSV (RFC 4180): quoted where it holds a comma, a quote or a line break. A text that a
 * spreadsheet would run as a formula (it begins with = + - or @ and is not a number) is preceded by
 * an apostrophe. */
void                                       vn_csv_text(FILE *out, const char *text);
/* A fenced block of lines. */
void                                       vn_markdown_fence(FILE *out, const char *lines);

/* Prints row i of a table, or returns false if the table leaves it out. */
typedef bool vn_markdown_row(const void *ctx, int i, FILE *out);
/* Writes as many of n rows as fit into `room` bytes. *left: the number of rows that `print` prints;
 * then, of those left out for lack of room. */
void         vn_markdown_rows(FILE *out, size_t room, vn_markdown_row *print, const void *ctx, int n, int *left);
