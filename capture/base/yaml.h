/* yaml.h: one YAML document read strictly, event by event.
 *
 * For the small languages of ours that are YAML: limits, name maps. What they do
 * not have is refused where it stands: anchors and aliases (so nothing can be
 * expanded), tags, further documents, bad UTF-8. Every complaint starts with file,
 * line and column.
 *
 * A reader stands at one event. Functions that take a value read the one at hand and
 * leave the reader at its last event; vn_yaml_next goes on.
 */
#ifndef VN_CAPTURE_YAML_H
#define VN_CAPTURE_YAML_H

#include "libref/base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct vn_yaml vn_yaml;

typedef enum vn_yaml_kind { VN_YAML_WORD, VN_YAML_LIST, VN_YAML_MAP, VN_YAML_END_LIST, VN_YAML_END_MAP, VN_YAML_OTHER } vn_yaml_kind;

/* what: "limits", "a name map": what the file is, for messages. path and text are borrowed until close. */
vn_status    vn_yaml_open(const char *path, const char *text, size_t n, const char *what, vn_yaml **y, vn_error *err);
void         vn_yaml_close(vn_yaml *y);

/* The text of such a file, of at most 1 MiB; the caller's to free. id: which file it is, by whatever path; may be NULL. */
typedef struct vn_yaml_id {
	uint64_t device, inode;
} vn_yaml_id;
vn_status    vn_yaml_file(const char *path, const char *what, char **text, size_t *n, vn_yaml_id *id, vn_error *err);

vn_status    vn_yaml_next(vn_yaml *y);
vn_yaml_kind vn_yaml_at(const vn_yaml *y);
int          vn_yaml_line(const vn_yaml *y); /* of the event at hand, from 1 */
int          vn_yaml_column(const vn_yaml *y);

/* "PATH:LINE:COLUMN: ..." of the event at hand, or of a place. Returns VN_ERR_FORMAT. */
__attribute__((format(printf, 2, 3))) vn_status vn_yaml_fail(vn_yaml *y, const char *format, ...);
__attribute__((format(printf, 4, 5))) vn_status vn_yaml_fail_at(vn_yaml *y, int line, int column, const char *format, ...);
vn_status vn_yaml_no_memory(vn_yaml *y);

/* The one word that must stand here, borrowed until next; what: its name in messages. */
vn_status vn_yaml_word(vn_yaml *y, const char *what, const char **text);
/* A copy, the caller's to free; *to must be NULL: else it is there twice. */
vn_status vn_yaml_copy(vn_yaml *y, const char *what, char **to);
/* A finite number. */
vn_status vn_yaml_number(vn_yaml *y, const char *what, double *value);

/* A map's keys one by one: each is called at the value, and must leave the reader at its
 * end. line, column: of the key. Keys are cut to 127 bytes. */
typedef vn_status vn_yaml_each(void *context, const char *key, int line, int column);
vn_status vn_yaml_map(vn_yaml *y, const char *what, vn_yaml_each *each, void *context);

/* A key of the document. read is called at its value, and must leave the reader at its end. */
typedef struct vn_yaml_section {
	const char *name;
	vn_status (*read)(void *context);
} vn_yaml_section;
/* The whole document: a map of "version: 1", which must be there, and of the n sections (at most 31), each at most once.
 * file: "a name map", for messages. */
vn_status vn_yaml_document(vn_yaml *y, const char *file, const vn_yaml_section *section, int n, void *context);

#endif
