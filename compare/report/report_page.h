/* report_page.h: the HTML page of `--format html`, for one candidate and for several.
 *
 * The build makes the page from the files of compare/report/html. Text from recordings reaches it
 * in two ways: escaped by vn_html_text, and as strings of its data, which the script turns into
 * text nodes. The data is the JSON report (specs/json.md) in short (report_page.c).
 */
#pragma once

#include "compare/report/report.h"
#include "compare/text/json.h"

/* HTML with the placeholders @TITLE@, @STORY@ and @DATA@, once each and in this order. What
 * replaces the first two is HTML, readable without the script; @DATA@ is replaced by JSON. */
extern const unsigned char vn_page[];

/* Writes the page from `at` (NULL: its beginning) up to a placeholder. Returns what follows it. */
const char *vn_page_until(const char *at, const char *placeholder, FILE *out);
/* Opens a stream for the JSON in a page, which goes to out; NULL: no memory. */
FILE       *vn_page_data(FILE *out);
/* Closes that stream, whose writing ended with st, and writes the rest of the page. */
vn_status   vn_page_end(FILE *data, const char *rest, vn_status st, FILE *out, vn_error *err);

/* Writes a command to type next, as it is typed in the folder of the page (path; NULL: stdout). */
void vn_page_next(const char *command, bool first, const char *path, FILE *out);

/* A page holds the full numbers of the first checkpoints, this many, and of as many others that
 * fail. The rest are rows. */
enum { VN_PAGE_HOLDS = 2000 };

/* Data that many checkpoints share, each stored once and referred to by number. */
typedef struct vn_page_shared {
	json_t *index; /* maps the text of each item to its number */
	json_t *kind;  /* of rows: operation, shape, status, metrics of the limits; the name if it is not that of the layer
	                * and point */
	json_t *rule;  /* of limits, as in the JSON report */
} vn_page_shared;

/* Returns the number of a value in a list, to which a new value is added; -1 without memory. Takes
 * the reference to value. */
json_int_t vn_page_number(json_t *index, json_t *list, json_t *value);
/* Writes a checkpoint as a row of 9 numbers: its place among all, kind, step, order, nmse, floor,
 * limit fraction, the limit that has this fraction (-1: none), and layer. Returns false without
 * memory. */
bool       vn_page_row(const vn_page_shared *k, const vn_document *doc, const vn_checkpoint *p, int at, FILE *out);
