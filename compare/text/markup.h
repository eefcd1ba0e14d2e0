/* markup.h: text from anywhere, put where XML, HTML or Markdown is read.
 *
 * XML knows no control characters, no UTF-8 that is none and none of the code
 * points without a meaning, escaped or not; a writer of XML passes them on or
 * stops. So vn_utf8_shown makes them readable first (\u{1b}, \xff), and what is
 * left to do is five characters.
 */
#ifndef VN_COMPARE_MARKUP_H
#define VN_COMPARE_MARKUP_H

#include <stdio.h>

/* For content and for attributes in double or single quotes, of XML and of HTML. */
void vn_xml_text(FILE *out, const char *text);
/* The same of several lines, in which newlines stay. */
void vn_xml_lines(FILE *out, const char *text);
/* For content of the page (compare/report/html): codes of what is not printable are marked. */
void vn_html_text(FILE *out, const char *text);
/* A code span: nothing in it is markup, a mention or a link. Of at most `most`
 * bytes the beginning is shown. cell: inside a table, where | ends a cell. */
void vn_markdown_code(FILE *out, const char *text, size_t most, int cell);
/* A cell of CSV (RFC 4180): quoted where it holds a comma, a quote or a line break. A text that a spreadsheet
 * would run as a formula (it begins with = + - or @ and is not a number) is preceded by an apostrophe. */
void vn_csv_text(FILE *out, const char *text);
/* A fenced block of lines. */
void vn_markdown_fence(FILE *out, const char *lines);

#endif
