/* edit.h: changing a recording that is whole, as no engine would: for what tests readers.
 *
 * vn_edit_file opens a file for writing in a child process (child.h: the file may
 * be a stranger's) and lets `change` at it there. What `change` does to its own
 * memory is therefore lost, and it starts no threads. The calls below remember
 * their first failure, which vn_edit_file reports; after one they do nothing.
 *
 * Objects are paths in the file: "/step.0/layer3/q_rope".
 * Errors   name the file and the object; the file is then in no known state.
 */
#ifndef VN_CAPTURE_EDIT_H
#define VN_CAPTURE_EDIT_H

#include "libref/base/error.h"
#include "libref/base/tensor.h"

typedef struct vn_edit vn_edit;

vn_status vn_edit_file(const char *path, void (*change)(vn_edit *e, void *ctx), void *ctx, vn_error *err);
/* Remember a failure that is the caller's. */
void vn_edit_fail(vn_edit *e, const char *object, const char *why);

/* The path of checkpoint `name` in a step, into VN_EDIT_PATH bytes; returns path. */
enum { VN_EDIT_PATH = 192 };
char *vn_edit_path(int step, const char *name, char *path);

/* A tensor's numbers, in the format and shape that it has. honest: digest and
 * statistics become theirs, as an engine writes them that computed these. */
void vn_edit_numbers(vn_edit *e, const char *object, const vn_tensor *t, bool honest);

/* A tensor in another place: another dataset under the name, with the old one's attributes. */
typedef enum vn_edit_way {
	VN_EDIT_PLAIN,      /* contiguous, honest */
	VN_EDIT_COUNTED,    /* 16-bit whole numbers that call themselves nothing */
	VN_EDIT_BIG_ENDIAN, /* the same bytes, said to be big-endian */
	VN_EDIT_UNWRITTEN,  /* room that was never given */
	VN_EDIT_GAP,        /* in chunks by rows, the last never written */
	VN_EDIT_PACKED_GAP, /* the same, compressed */
	VN_EDIT_ROTTEN,     /* compressed with a checksum, and then a byte of it changed */
	VN_EDIT_ELSEWHERE,  /* numbers in another file */
	VN_EDIT_VIRTUAL     /* a view of another dataset */
} vn_edit_way;
void vn_edit_replace(vn_edit *e, const char *object, const vn_tensor *t, vn_edit_way way);
/* The same with ones in front, and more axes than vn_shape holds. */
void vn_edit_many_axes(vn_edit *e, const char *object, const vn_tensor *t);

/* Attributes, new or in place of the old; text NULL: none any more. */
void vn_edit_text(vn_edit *e, const char *object, const char *key, const char *text);
void vn_edit_whole(vn_edit *e, const char *object, const char *key, int64_t value);

void vn_edit_unlink(vn_edit *e, const char *object);
void vn_edit_move(vn_edit *e, const char *from, const char *to);
void vn_edit_swap(vn_edit *e, const char *a, const char *b);
typedef enum vn_edit_link { VN_EDIT_HARD, VN_EDIT_SOFT, VN_EDIT_EXTERNAL } vn_edit_link;
/* name: not there any more, then a link to target (of the file itself, or of another). */
void vn_edit_point(vn_edit *e, const char *name, vn_edit_link kind, const char *target);

/* Token ids or positions; honest: with their digest. */
void vn_edit_ids(vn_edit *e, const char *object, const int32_t *id, int64_t n, bool honest);
/* In the first line of a list of strings that has `from`, `to` in its place. */
void vn_edit_line(vn_edit *e, const char *object, const char *from, const char *to);
/* /model/weights: a row's column, text or number; and the table without its last row. */
void vn_edit_weight_text(vn_edit *e, int row, const char *column, const char *text);
void vn_edit_weight_real(vn_edit *e, int row, const char *column, double value);
void vn_edit_weights_fewer(vn_edit *e);

#endif
