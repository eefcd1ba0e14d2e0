/* lines.h: a growing list of messages: notes, warnings, refusals. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What a line is about, as data, so that no code needs to read its words. */
typedef struct vn_line_facts {
	const char *allow; /* the word that would have allowed what it refuses; NULL: it refuses nothing by a word */
	size_t      own;   /* length of the line before anything was appended */
	int         times; /* how often it was added */
} vn_line_facts;

typedef struct vn_lines {
	int            n;
	char         **line;
	vn_line_facts *facts; /* (n) */
} vn_lines;

enum { VN_LINE_MAX = 1024 }; /* a longer line is cut */

/* Appends a line. Unprintable characters are escaped (vn_text_clean), since names come from foreign
 * files. If there is no memory, the line is dropped. */
__attribute__((format(printf, 2, 3))) void vn_lines_add(vn_lines *l, const char *format, ...);
/* Same for a line that may occur again: repetitions are counted instead of added, "... (64 times)".
 * first: text after the line while there is only one, such as " (rank0.h5)", or "". unit: what is
 * counted. */
__attribute__((format(printf, 4, 5))) void vn_lines_once(vn_lines *l, const char *first, const char *unit,
                                                         const char *format, ...);
/* Adds a line that refuses, followed by the option that allows it: " (--allow weights)". allow: a
 * literal. */
__attribute__((format(printf, 3, 4))) void vn_lines_refuse(vn_lines *l, const char *allow, const char *format, ...);
/* Same for a line that says itself how it is allowed. */
__attribute__((format(printf, 3, 4))) void vn_lines_refuse_as(vn_lines *l, const char *allow, const char *format, ...);
/* Prints the lines that refuse a comparison, "refused: LINE". Of more than twelve that the same
 * word allows (of config: than three), the first and the number of the others, because between two
 * models everything differs. who: "" or "candidate B: ". list: where all of them can be seen, such
 * as "--format json lists them", or "". */
void vn_lines_print_refusals(const vn_lines *l, const char *who, const char *list, FILE *out);
/* Was a line refused with this word? */
bool vn_lines_refused(const vn_lines *l, const char *allow);
/* Inserts a line before the others. */
void vn_lines_first(vn_lines *l, const char *line);
void vn_lines_free(vn_lines *l);
