/* scribe_publish.c: publishes the scribe's file: writes its state to disk, at once or when it is
 * due. See scribe_internal.h. */
#include "capture/store/scribe_internal.h"

#include "libref/base/progress.h"

/* Seconds between two states on disk, which bounds the loss of a killed process besides the current
 * tensor; without requests, the scribe's socket keeps this time. Publishing takes well under a
 * millisecond, or a few with thousands of steps. */
static const double PUBLISH_EVERY = VN_SCRIBE_SILENCE_MS / 1000.0;

vn_status vn_scribe_file_failed(const vn_scribe_file *f, const char *what, vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot write %s", f->path, what);
}

vn_status vn_scribe_file_publish(vn_scribe_file *f, vn_error *err)
{
	if (H5Fflush(f->file, H5F_SCOPE_GLOBAL) < 0)
		return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot flush it", f->path);
	f->published = vn_seconds();
	const vn_status st = vn_driver_publish(f->driver, err);
	if (!st) {
		f->on_disk = f->tensors;
		f->changed = false;
	}
	return st;
}

void vn_scribe_file_idle(vn_scribe_file *f)
{
	/* The header of a dataset without a name would change on disk in several places. */
	if (!f->changed || f->broken || f->refused || f->dset >= 0 || vn_h5_room(f->path, NULL))
		return;
	f->late = vn_scribe_file_publish(f, &f->late_err);
	f->broken = f->late != VN_OK;
}

vn_status vn_scribe_file_settle(vn_scribe_file *f, bool good, const char *what, bool at_once, vn_error *err)
{
	if (!good)
		return vn_scribe_file_failed(f, what, err);
	f->changed = true;
	return at_once || vn_seconds() - f->published > PUBLISH_EVERY ? vn_scribe_file_publish(f, err) : VN_OK;
}
