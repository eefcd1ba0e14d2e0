/* edit_internal.h: shared by edit.c and edit_tensor.c; included nowhere else. */
#ifndef VN_CAPTURE_EDIT_INTERNAL_H
#define VN_CAPTURE_EDIT_INTERNAL_H

#include "capture/edit/edit.h"
#include "capture/file/h5.h"

struct vn_edit {
	const char *path;
	hid_t       file;
	bool        failed;
	vn_error    err;
	int64_t     rot; /* offset of a byte to be changed after the file is closed; 0: none */
};

/* If not `good`, records the failure, unless there is one already. */
void vn_edit_settle(vn_edit *e, bool good, const char *object);

#endif
