/* yaml.h: a strict reader of one YAML document, event by event.
 *
 * It reads vernier's own small languages, limits and name maps. Everything that they do not use is
 * refused: anchors and aliases (so nothing can be expanded), tags, further documents, invalid
 * UTF-8. Every error starts with file, line and column.
 *
 * A reader is positioned at one event. Functions that take a value start at the current event and
 * leave the reader at the value's last event; vn_yaml_next moves on.
 */
#pragma once

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct vn_yaml vn_yaml;

typedef enum vn_yaml_kind {
	VN_YAML_WORD,
	VN_YAML_LIST,
	VN_YAML_MAP,
	VN_YAML_END_LIST,
	VN_YAML_END_MAP,
	VN_YAML_OTHER
} vn_yaml_kind;

/* Opens a document. what: "limits", "a name map": the kind of file, for messages. path and text are
 * borrowed until close. */
vn_status vn_yaml_open(const char *path, const char *text, size_t n, const char *what, vn_yaml **y, vn_error *err);
void      vn_yaml_close(vn_yaml *y);

enum { VN_YAML_MOST = 1 << 20 }; /* bytes that a file may have (vn_read_text) */

vn_status    vn_yaml_next(vn_yaml *y);
vn_yaml_kind vn_yaml_at(const vn_yaml *y);
int          vn_yaml_line(const vn_yaml *y); /* of the current event, from 1 */
int          vn_yaml_column(const vn_yaml *y);

/* Fail with "PATH:LINE:COLUMN: ..." at the current event, or at a given place. Return
 * VN_ERR_FORMAT. */
__attribute__((format(printf, 2, 3))) vn_status vn_yaml_fail(vn_yaml *y, const char *format, ...);
__attribute__((format(printf, 4, 5))) vn_status vn_yaml_fail_at(vn_yaml *y, int line, int column, const char *format,
                                                                ...);

/* Reads one word, which is borrowed until vn_yaml_next. what: its name in messages. */
vn_status vn_yaml_word(vn_yaml *y, const char *what, const char **text);
/* Reads one word as a copy, which the caller frees. *to must be NULL; otherwise the key was given
 * twice, an error. */
vn_status vn_yaml_copy(vn_yaml *y, const char *what, char **to);
/* Reads a finite number. */
vn_status vn_yaml_number(vn_yaml *y, const char *what, double *value);

/* Called for each key of a map, with the reader at its value; must leave the reader at the end of
 * the value. line, column: of the key. Keys are cut to 127 bytes. */
typedef vn_status vn_yaml_each(void *context, const char *key, int line, int column);
vn_status         vn_yaml_map(vn_yaml *y, const char *what, vn_yaml_each *each, void *context);

/* A key of the document. read is called with the reader at its value, and must leave it at the end
 * of the value. */
typedef struct vn_yaml_section {
	const char *name;
	vn_status (*read)(void *context);
} vn_yaml_section;
/* Reads the whole document: a map with "version: 1", which is required, and each of the n sections
 * (at most 31) at most once. file: "a name map", for messages. */
vn_status vn_yaml_document(vn_yaml *y, const char *file, const vn_yaml_section *section, int n, void *context);
