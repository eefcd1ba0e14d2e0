/* scribe_publish.c: when what the scribe has made reaches the disk. See scribe_internal.h. */
#include "capture/store/scribe_internal.h"

#include "libref/base/progress.h"

/* Seconds between two states on disk, which bounds the loss of a killed process besides the current tensor.
 * Publishing takes well under a millisecond, or a few with thousands of steps. */
static const double PUBLISH_EVERY = 0.1;

vn_status vn_desk_failed(const vn_desk *d, const char *what, vn_error *err)
{
	return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot write %s", d->path, what);
}

vn_status vn_desk_publish(vn_desk *d, vn_error *err)
{
	if (H5Fflush(d->file, H5F_SCOPE_GLOBAL) < 0)
		return vn_fail(err, VN_ERR_IO, "%s: HDF5 cannot flush it", d->path);
	d->published = vn_seconds();
	const vn_status st = vn_driver_publish(d->driver, err);
	if (!st)
		d->on_disk = d->tensors;
	return st;
}

static vn_status publish_when_due(vn_desk *d, vn_error *err)
{
	return vn_seconds() - d->published > PUBLISH_EVERY ? vn_desk_publish(d, err) : VN_OK;
}

vn_status vn_desk_settle(vn_desk *d, bool good, const char *what, bool at_once, vn_error *err)
{
	return !good ? vn_desk_failed(d, what, err) : at_once ? vn_desk_publish(d, err) : publish_when_due(d, err);
}
