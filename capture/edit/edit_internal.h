/* edit_internal.h: what edit.c and edit_tensor.c share. Nobody else includes it. */
#ifndef VN_CAPTURE_EDIT_INTERNAL_H
#define VN_CAPTURE_EDIT_INTERNAL_H

#include "capture/edit/edit.h"
#include "capture/file/h5.h"

struct vn_edit {
	const char *path;
	hid_t       file;
	bool        failed;
	vn_error    err;
	int64_t     rot; /* of a byte to be changed once the file is closed; 0: none */
};

/* `good`, or the first failure. */
void vn_edit_settle(vn_edit *e, bool good, const char *object);

#endif
