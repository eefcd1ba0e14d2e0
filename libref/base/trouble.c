/* trouble.c: see trouble.h. */
#include "libref/base/trouble.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_uint        count;
static atomic_flag        told = ATOMIC_FLAG_INIT;
static atomic_bool        readable; /* set last, when the record is complete */
static char               first[VN_ERROR_MAX];
static bool               program;
static _Thread_local bool sparing;

bool vn_trouble_note(const char *text)
{
	bool kept = false;

	if (sparing)
		return false;
	if (text && *text && !atomic_flag_test_and_set(&told)) {
		snprintf(first, sizeof first, "%s", text);
		atomic_store(&readable, true);
		kept = true;
	}
	atomic_fetch_add(&count, 1);
	return kept;
}

bool vn_trouble_is(int number)
{
	switch (number) {
	case ENOMEM:
	case EIO:
	case EMFILE:
	case ENFILE:
	case EAGAIN:
	case ENOSPC:
	case EDQUOT:
	case ENOLCK:
	case EFBIG:
	case EBUSY:
	case ENOBUFS:
	case EPIPE: return true;
	default: return false;
	}
}

unsigned vn_trouble_mark(void)
{
	return program ? 0 : atomic_load(&count);
}

void vn_trouble_program(void)
{
	program = true;
}

vn_status vn_trouble_since(unsigned mark, const char *what, vn_error *err)
{
	if (atomic_load(&count) == mark)
		return VN_OK;
	if (atomic_load(&readable))
		return vn_fail(err, VN_ERR_NOMEM, "%s: the result is unreliable, because something failed: %.800s", what,
		               first);
	return vn_fail(err, VN_ERR_NOMEM, "%s: the result is unreliable, because memory ran out", what);
}

const char *vn_trouble_text(void)
{
	return atomic_load(&count) == 0 ? NULL : atomic_load(&readable) ? first : "memory ran out";
}

void vn_trouble_spare(bool begin)
{
	sparing = begin;
}

bool vn_trouble_sparing(void)
{
	return sparing;
}
