/* trouble.c: see trouble.h. */
#include "libref/base/trouble.h"

#include "libref/base/text.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_uint        count;
static atomic_flag        told = ATOMIC_FLAG_INIT;
static atomic_bool        readable; /* set last, when the record is complete */
static char               first[VN_ERROR_MAX];
static bool               program;
static _Thread_local bool sparing;

void vn_trouble_note(const char *text)
{
	if (sparing)
		return;
	if (text && *text && !atomic_flag_test_and_set(&told)) {
		snprintf(first, sizeof first, "%s", text);
		atomic_store(&readable, true);
	}
	atomic_fetch_add(&count, 1);
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
	vn_error own;

	if (atomic_load(&count) == mark)
		return VN_OK;
	if (!err)
		err = &own;
	if (atomic_load(&readable))
		snprintf(err->text, sizeof err->text, "%s: the result is unreliable, because something failed: %.800s", what,
		         first);
	else
		snprintf(err->text, sizeof err->text, "%s: the result is unreliable, because memory ran out", what);
	vn_text_clean(err->text, sizeof err->text);
	vn_trouble_note(err->text);
	return VN_ERR_NOMEM;
}

const char *vn_trouble_text(void)
{
	return atomic_load(&count) == 0 ? NULL : atomic_load(&readable) ? first : "memory ran out";
}

bool vn_trouble_spare(bool begin)
{
	const bool before = sparing;
	sparing = begin;
	return before;
}
