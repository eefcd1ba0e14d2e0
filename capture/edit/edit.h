/* edit.h: changes a finished recording in ways that no engine would, to test readers.
 *
 * vn_edit_file opens a file for writing in a child process (child.h: the file may be untrusted) and
 * calls `change` there. So changes that `change` makes to its own memory are lost; it must not
 * start threads. The functions below remember their first failure, which vn_edit_file returns;
 * after a failure they do nothing.
 *
 * Objects are paths in the file: "/step.0/layer3/q_rope".
 *
 * Errors   name the file and the object; the content of the file is then undefined.
 */
#ifndef VN_CAPTURE_EDIT_H
#define VN_CAPTURE_EDIT_H

#include "libref/base/error.h"
#include "libref/base/tensor.h"

typedef struct vn_edit vn_edit;

vn_status vn_edit_file(const char *path, void (*change)(vn_edit *e, void *ctx), void *ctx, vn_error *err);
/* Records a failure that the caller found. */
void      vn_edit_fail(vn_edit *e, const char *object, const char *why);

/* Writes the path of checkpoint `name` in a step to path (VN_EDIT_PATH bytes). Returns path. */
enum { VN_EDIT_PATH = 192 };
char *vn_edit_path(int step, const char *name, char *path);

/* Overwrites a tensor's numbers, in its format and shape. honest: digest and statistics are updated
 * too, as if an engine had computed these numbers. */
void vn_edit_numbers(vn_edit *e, const char *object, const vn_tensor *t, bool honest);

/* How a replaced tensor is stored: a new dataset under the old name, with the old attributes. */
typedef enum vn_edit_way {
	VN_EDIT_PLAIN,      /* contiguous, with correct digest and statistics */
	VN_EDIT_COUNTED,    /* 16-bit integers without the attribute that says which format they are */
	VN_EDIT_BIG_ENDIAN, /* the same bytes, declared big-endian */
	VN_EDIT_UNWRITTEN,  /* space is never allocated */
	VN_EDIT_GAP,        /* chunks by rows, the last one never written */
	VN_EDIT_PACKED_GAP, /* the same, compressed */
	VN_EDIT_ROTTEN,     /* compressed with a checksum, then one byte is changed */
	VN_EDIT_ELSEWHERE,  /* the numbers are in another file */
	VN_EDIT_VIRTUAL     /* a view of another dataset */
} vn_edit_way;
void vn_edit_replace(vn_edit *e, const char *object, const vn_tensor *t, vn_edit_way way);
/* Same with more leading axes of length 1 than vn_shape can hold. */
void vn_edit_many_axes(vn_edit *e, const char *object, const vn_tensor *t);

/* Set an attribute. text NULL: removes it. */
void vn_edit_text(vn_edit *e, const char *object, const char *key, const char *text);
void vn_edit_whole(vn_edit *e, const char *object, const char *key, int64_t value);

void vn_edit_unlink(vn_edit *e, const char *object);
void vn_edit_move(vn_edit *e, const char *from, const char *to);
void vn_edit_swap(vn_edit *e, const char *a, const char *b);
typedef enum vn_edit_link { VN_EDIT_HARD, VN_EDIT_SOFT, VN_EDIT_EXTERNAL } vn_edit_link;
/* Replaces `name` by a link to target, in this file or in another. */
void vn_edit_point(vn_edit *e, const char *name, vn_edit_link kind, const char *target);

/* Overwrites token ids or positions. honest: updates their digest. */
void vn_edit_ids(vn_edit *e, const char *object, const int32_t *id, int64_t n, bool honest);
/* Replaces `from` by `to` in the first line of a list of strings that contains it. */
void vn_edit_line(vn_edit *e, const char *object, const char *from, const char *to);
/* Change a row of /model/weights in one column, as text or as a number; and remove its last row. */
void vn_edit_weight_text(vn_edit *e, int row, const char *column, const char *text);
void vn_edit_weight_real(vn_edit *e, int row, const char *column, double value);
void vn_edit_weights_fewer(vn_edit *e);

#endif
