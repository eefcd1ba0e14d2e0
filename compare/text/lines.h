/* lines.h: a growing list of lines for a person: notes, warnings, refusals. */
#ifndef VN_COMPARE_LINES_H
#define VN_COMPARE_LINES_H

typedef struct vn_lines {
	int    n;
	char **line;
} vn_lines;

/* Control characters become '?': names come from strangers' files. A line for
 * which there is no memory is dropped. */
__attribute__((format(printf, 2, 3)))
void vn_lines_add(vn_lines *l, const char *format, ...);
/* The same, with the word that allows it behind: " (--allow weights)". */
__attribute__((format(printf, 3, 4)))
void vn_lines_refuse(vn_lines *l, const char *allow, const char *format, ...);
/* The same of what may be told again: a line that is there already is not repeated, and counts: "... (64 times)".
 * first: what stands behind it while it is the only one, as " (rank0.h5)"; "". unit: what is counted. */
__attribute__((format(printf, 4, 5)))
void vn_lines_once(vn_lines *l, const char *first, const char *unit, const char *format, ...);
/* A line in front of the others. */
void vn_lines_first(vn_lines *l, const char *line);
void vn_lines_free(vn_lines *l);

#endif
