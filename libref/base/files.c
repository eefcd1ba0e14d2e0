/* files.c: see files.h. */
#include "libref/base/files.h"

#include "libref/base/grow.h"
#include "libref/base/system.h"
#include "libref/base/trouble.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- inputs --------------------------------------------------------------------------------- */

typedef struct file_list {
	vn_file_id *id; /* (n) */
	size_t      n;
} file_list;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static file_list       inputs, made;
static bool            watching;

void vn_inputs_watch(bool on)
{
	watching = on;
	free(inputs.id);
	free(made.id);
	inputs = made = (file_list) { 0 };
}

static bool is_in(const file_list *l, const vn_file_id *id)
{
	for (size_t i = 0; i < l->n; i++)
		if (memcmp(&l->id[i], id, sizeof *id) == 0)
			return true;
	return false;
}

static void note(file_list *l, int fd)
{
	vn_file_id id;

	if (!watching || !vn_file_identify(fd, NULL, &id))
		return;
	pthread_mutex_lock(&lock);
	if (!is_in(&made, &id) && VN_GROW(l->id, l->n))
		l->id[l->n++] = id;
	else if (!is_in(&made, &id))
		vn_trouble_note(NULL);
	pthread_mutex_unlock(&lock);
}

void vn_input_note(int fd)
{
	note(&inputs, fd);
}

void vn_output_note(int fd)
{
	note(&made, fd);
}

static bool is_noted(int fd, const char *path)
{
	vn_file_id id;

	if (!vn_file_identify(fd, path, &id))
		return false;
	pthread_mutex_lock(&lock);
	const bool found = is_in(&inputs, &id);
	pthread_mutex_unlock(&lock);
	return found;
}

bool vn_input_is_open(int fd)
{
	return is_noted(fd, NULL);
}

bool vn_input_is(const char *path)
{
	return is_noted(AT_FDCWD, path);
}

/* ---- writing -------------------------------------------------------------------------------- */

int vn_file_sync(int fd)
{
	int r;

	VN_UNINTERRUPTED(r, fsync(fd));
	/* File systems that cannot sync say this; a write that failed is EIO, ENOSPC or EDQUOT. */
	return r != 0 && (errno == EINVAL || errno == ENOTSUP || errno == ENOSYS) ? 0 : r;
}

static bool is_missing(int number)
{
	return number == EINVAL || number == ENOSYS || number == ENOTSUP || number == EPERM;
}

int vn_file_move(const char *from, const char *to)
{
	if (vn_rename_new(from, to) == 0)
		return 0;
	if (!is_missing(errno))
		return -1;
	if (link(from, to) == 0) {
		unlink(from);
		return 0;
	}
	if (!is_missing(errno))
		return -1;
	const int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -1;
	close(fd);
	if (rename(from, to) == 0)
		return 0;
	const int why = errno;
	unlink(to);
	errno = why;
	return -1;
}
