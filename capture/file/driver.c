/* driver.c: see driver.h. */
#include "capture/file/driver.h"

#include "capture/file/disk.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"
#include "libref/base/grow.h"

#include <errno.h>
#include <hdf5.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A write of HDF5 that is not on disk yet. */
typedef struct pending_write {
	haddr_t    at;
	size_t     bytes;
	H5FD_mem_t type;
	void      *data;
} pending_write;

struct vn_driver {
	int            fd;
	const char    *path;
	haddr_t        eoa, eof; /* in HDF5's view of the file */
	haddr_t        length;   /* the file on disk has at least this many bytes */
	bool           gathers;  /* structure lies together */
	haddr_t        held;     /* bytes on disk before this offset stay unchanged; 0: none */
	haddr_t        from, to; /* what was written between a hold and its release: nothing referred to it then */
	pending_write *log;      /* in write order */
	size_t         n_log;
	void          *seen; /* addresses published earlier, a tree of tsearch, except those in [from, to) */
};

/* The handle HDF5 holds: its own fields and our file. */
typedef struct handle {
	H5FD_t     pub;
	vn_driver *driver;
} handle;

static vn_driver *driver_of(const H5FD_t *f)
{
	return ((const handle *)f)->driver;
}

static H5FD_t *drv_open(const char *name, unsigned flags, hid_t fapl, haddr_t maxaddr)
{
	vn_driver *const *in = H5Pget_driver_info(fapl);
	handle           *h = in ? calloc(1, sizeof *h) : NULL;
	(void)name, (void)flags, (void)maxaddr;
	if (h)
		h->driver = *in;
	return h ? &h->pub : NULL;
}

static herr_t drv_close(H5FD_t *f)
{
	free(f);
	return 0;
}

static int drv_cmp(const H5FD_t *a, const H5FD_t *b)
{
	return (driver_of(a) > driver_of(b)) - (driver_of(a) < driver_of(b));
}

static herr_t drv_query(const H5FD_t *f, unsigned long *flags)
{
	*flags = H5FD_FEAT_DEFAULT_VFD_COMPATIBLE | (f && driver_of(f)->gathers ? H5FD_FEAT_AGGREGATE_METADATA : 0);
	return 0;
}

static haddr_t drv_get_eoa(const H5FD_t *f, H5FD_mem_t type)
{
	(void)type;
	return driver_of(f)->eoa;
}

static herr_t drv_set_eoa(H5FD_t *f, H5FD_mem_t type, haddr_t eoa)
{
	(void)type;
	driver_of(f)->eoa = eoa;
	return 0;
}

/* Every part starts at a multiple of 64, so that mapped numbers are aligned. Large tensors start at
 * a page, so that they can be written directly. */
uint64_t vn_driver_place(vn_driver *d, size_t bytes, bool numbers)
{
	const haddr_t to = numbers && bytes >= 4 * VN_DISK_PAGE ? VN_DISK_PAGE : 64;
	const haddr_t at = (d->eoa + to - 1) / to * to;

	d->eoa = at + bytes;
	return at;
}

static haddr_t drv_alloc(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, hsize_t size)
{
	(void)dxpl;
	return vn_driver_place(driver_of(f), size, type == H5FD_MEM_DRAW);
}

static haddr_t drv_get_eof(const H5FD_t *f, H5FD_mem_t type)
{
	(void)type;
	return driver_of(f)->eof;
}

static herr_t drv_read(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t bytes, void *buffer)
{
	vn_driver *d = driver_of(f);
	char      *to = buffer;
	size_t     have = 0;

	(void)type, (void)dxpl;
	while (have < bytes) {
		ssize_t n = pread(d->fd, to + have, bytes - have, (off_t)(at + have));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			vn_trouble_note(strerror(errno)); /* HDF5 would report a damaged file */
			return -1;
		}
		if (n == 0 && at + have < d->length) { /* HDF5 may loop for ever on zeros in its structures */
			vn_trouble_note("the file became shorter");
			return -1;
		}
		if (n == 0)
			break;
		have += (size_t)n;
	}
	memset(to + have, 0, bytes - have);
	for (size_t i = 0; i < d->n_log; i++) {
		const pending_write *p = &d->log[i];
		haddr_t              first = p->at > at ? p->at : at;
		haddr_t              last = p->at + p->bytes < at + bytes ? p->at + p->bytes : at + bytes;
		if (first < last)
			memcpy(to + (first - at), (const char *)p->data + (first - p->at), (size_t)(last - first));
	}
	return 0;
}

/* Metadata held back is rewritten often, so only its last state is kept. */
static bool replace_kept(vn_driver *d, haddr_t at, size_t bytes, const void *buffer)
{
	for (size_t i = 0; i < d->n_log; i++)
		if (d->log[i].at == at && d->log[i].bytes == bytes) {
			memcpy(d->log[i].data, buffer, bytes);
			return true;
		}
	return false;
}

/* Adds a write to the one before, if it continues that. Only what lies beyond the held part: it is
 * published in the order in which it was written. */
static bool continue_write(vn_driver *d, haddr_t at, size_t bytes, const void *buffer)
{
	enum { ENOUGH = 64 << 10 };
	pending_write *p = d->n_log ? &d->log[d->n_log - 1] : NULL;
	void          *longer;

	if (!d->held || at < d->held || !p || p->at < d->held || p->at + p->bytes != at || p->bytes >= ENOUGH ||
	    !(longer = realloc(p->data, p->bytes + bytes)))
		return false;
	memcpy((char *)longer + p->bytes, buffer, bytes);
	p->data = longer;
	p->bytes += bytes;
	return true;
}

static herr_t drv_write(H5FD_t *f, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t bytes, const void *buffer)
{
	vn_driver *d = driver_of(f);

	(void)dxpl;
	if (at < d->held && replace_kept(d, at, bytes, buffer))
		return 0;
	if (at + bytes > d->eof)
		d->eof = at + bytes;
	if (continue_write(d, at, bytes, buffer))
		return 0;
	pending_write p = { .at = at, .bytes = bytes, .type = type };
	if (!VN_GROW(d->log, d->n_log) || !(p.data = malloc(bytes ? bytes : 1)))
		return -1;
	memcpy(p.data, buffer, bytes);
	d->log[d->n_log++] = p;
	return 0;
}

static herr_t drv_get_handle(H5FD_t *f, hid_t fapl, void **to)
{
	(void)fapl;
	*to = driver_of(f);
	return 0;
}

/* HDF5 asks to flush or truncate; we decide that ourselves. */
static herr_t drv_flush(H5FD_t *f, hid_t dxpl, hbool_t closing)
{
	(void)f, (void)dxpl, (void)closing;
	return 0;
}

static const H5FD_class_t driver_class = {
#ifdef H5FD_CLASS_VERSION /* HDF5 1.14, which reserves driver values below 256 for its own */
	.version = H5FD_CLASS_VERSION,
	.value = 256,
#endif
	.name = "vernier",
	.maxaddr = (haddr_t)1 << 62,
	.fc_degree = H5F_CLOSE_STRONG,
	.fapl_size = sizeof(vn_driver *),
	.open = drv_open,
	.close = drv_close,
	.cmp = drv_cmp,
	.query = drv_query,
	.alloc = drv_alloc,
	.get_eoa = drv_get_eoa,
	.set_eoa = drv_set_eoa,
	.get_eof = drv_get_eof,
	.get_handle = drv_get_handle,
	.read = drv_read,
	.write = drv_write,
	.flush = drv_flush,
	.fl_map = H5FD_FLMAP_DICHOTOMY
};

long long vn_driver_id(void)
{
	static hid_t id = H5I_INVALID_HID;
	if (id < 0)
		id = H5FDregister(&driver_class);
	return id;
}

vn_driver *vn_driver_create(int fd, const char *path, int64_t bytes)
{
	vn_driver *d = calloc(1, sizeof *d);

	if (d) {
		d->fd = fd;
		d->path = path;
		d->eof = d->length = (haddr_t)bytes;
	}
	return d;
}

void vn_driver_gather(vn_driver *d)
{
	d->gathers = true;
}

uint64_t vn_driver_end(long long file)
{
	void *d = NULL;
	return H5Fget_vfd_handle((hid_t)file, H5P_DEFAULT, &d) >= 0 && d ? ((const vn_driver *)d)->eoa : 0;
}

const void *vn_driver_info(vn_driver *d)
{
	/* HDF5 copies it immediately. */
	static vn_driver *in;
	in = d;
	return &in;
}

/* Drops the entries of the log, except those that are held back. */
static void drop_published(vn_driver *d)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->n_log; i++)
		if (d->log[i].at < d->held)
			d->log[kept++] = d->log[i];
		else
			free(d->log[i].data);
	d->n_log = kept;
}

void vn_driver_hold(vn_driver *d)
{
	d->held = d->from = d->eoa;
}

void vn_driver_release(vn_driver *d)
{
	d->held = 0;
}

static void drop_address(void *at)
{
	(void)at; /* the address itself is kept, not a pointer to it */
}

void vn_driver_destroy(vn_driver *d)
{
	if (!d)
		return;
	vn_driver_release(d);
	drop_published(d);
	vn_tree_free(d->seen, drop_address);
	VN_FREE(d->log, d);
}

static int compare_addresses(const void *a, const void *b)
{
	return ((uintptr_t)a > (uintptr_t)b) - ((uintptr_t)a < (uintptr_t)b);
}

static bool is_known_address(const vn_driver *d, haddr_t at)
{
	return (at >= d->from && at < d->to) || tfind((const void *)(uintptr_t)at, &d->seen, compare_addresses) != NULL;
}

/* Order of publishing: data nothing on disk refers to; the file's length; strings, which others
 * refer to; indices of links, which were held; the rest. */
enum { FRESH, LENGTH, STRINGS, INDICES, LINKS, N_STAGES, LATER };

static int stage_of(const vn_driver *d, const pending_write *p)
{
	if (p->at < d->held)
		return LATER;
	if (p->at == 0)
		return LENGTH;
	if (!is_known_address(d, p->at))
		return FRESH;
	return p->type == H5FD_MEM_GHEAP ? STRINGS : p->type == H5FD_MEM_OHDR ? LINKS : INDICES;
}

/* A file shorter than its superblock claims cannot be opened. */
static vn_status lengthen_file(vn_driver *d, vn_error *err)
{
	const off_t is = lseek(d->fd, 0, SEEK_END); /* lseek, because fstat also takes paths and the sandbox forbids it */
	if (is < 0 || ((haddr_t)is < d->eoa && ftruncate(d->fd, (off_t)d->eoa) != 0))
		return vn_fail(err, VN_ERR_IO, "%s: cannot be made longer: %s", d->path, strerror(errno));
	d->length = d->eoa;
	return VN_OK;
}

/* Writes all of an empty file at once: a page. */
static vn_status write_first(vn_driver *d, vn_error *err)
{
	char page[VN_DISK_PAGE] = "";

	for (size_t i = 0; i < d->n_log; i++)
		memcpy(page + d->log[i].at, d->log[i].data, d->log[i].bytes);
	const vn_status st = vn_write_at((vn_open_file) { d->fd, d->path }, "its structure", page, (size_t)d->eoa, 0, err);
	d->length = st ? 0 : d->eoa;
	return st;
}

static vn_status write_in_order(vn_driver *d, vn_error *err)
{
	vn_status st = VN_OK;
	int      *stage = malloc((d->n_log + 1) * sizeof *stage);

	if (!stage)
		return vn_fail(err, VN_ERR_NOMEM, "%s: no memory", d->path);
	for (size_t i = 0; i < d->n_log; i++)
		stage[i] = stage_of(d, &d->log[i]);
	for (int now = FRESH; now < N_STAGES && !st; now++) {
		if (now == LENGTH)
			st = lengthen_file(d, err);
		for (size_t i = 0; i < d->n_log && !st; i++) {
			const pending_write *p = &d->log[i];
			if (stage[i] != now)
				continue;
			st = vn_write_at((vn_open_file) { d->fd, d->path }, "its structure", p->data, p->bytes, (long long)p->at,
			                 err);
		}
	}
	free(stage);
	return st;
}

vn_status vn_driver_publish(vn_driver *d, vn_error *err)
{
	vn_status st = d->length == 0 && d->eoa <= VN_DISK_PAGE ? write_first(d, err) : write_in_order(d, err);

	/* Only now: after a failure everything is written again in the same order. */
	if (!st && d->from && !d->held && !d->to)
		d->to = d->eof;
	for (size_t i = 0; i < d->n_log && !st && !d->held; i++)
		if (!is_known_address(d, d->log[i].at) &&
		    !tsearch((const void *)(uintptr_t)d->log[i].at, &d->seen, compare_addresses))
			st = vn_fail(err, VN_ERR_NOMEM, "%s: no memory", d->path);
	if (!st)
		drop_published(d);
	return st;
}
