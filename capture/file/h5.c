/* h5.c: see h5.h. */
#include "capture/file/h5.h"

#include "libref/base/room.h"
#include "libref/base/trouble.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static herr_t find_no_memory(unsigned n, const H5E_error2_t *e, void *ctx)
{
	(void)n;
	*(bool *)ctx |= e->min_num == H5E_NOSPACE || e->min_num == H5E_CANTALLOC;
	return 0;
}

/* Notes the error without printing it. A call that got no memory says nothing about the file. */
static herr_t note_error(hid_t stack, void *ctx)
{
	bool starved = false;

	(void)ctx;
	H5Ewalk2(stack, H5E_WALK_UPWARD, find_no_memory, &starved);
	if (starved)
		vn_trouble_note("HDF5 got no memory");
	return 0;
}

static volatile sig_atomic_t starting; /* set until the first file is opened */

/* HDF5 crashes on damaged files, and when memory runs out: at its start, or in the cleanup after
 * the error it reports. */
static void note_crash(int number)
{
	bool starved = false;

	signal(number, SIG_DFL); /* a second crash ends the process */
	if (starting)
		_exit(VN_TROUBLE_STATUS);
	alarm(2); /* the handler must not hang either */
	H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_no_memory, &starved);
	void *volatile some = calloc(1, 1), *volatile more = malloc(1);
	if (starved || !some || !more)
		_exit(VN_TROUBLE_STATUS);
}

/* The handler has its own stack, because without memory HDF5 recurses until the usual
 * one is exhausted. */
static void catch_crashes(void)
{
	static char      room[64 << 10];
	const stack_t    own = { .ss_sp = room, .ss_size = sizeof room };
	struct sigaction act = { .sa_handler = note_crash, .sa_flags = SA_ONSTACK };

	if (sigaltstack(&own, NULL) == 0)
		sigaction(SIGSEGV, &act, NULL);
}

void vn_h5_lock(void)
{
	static bool               ready;
	static _Thread_local bool quiet; /* Debian's HDF5 keeps error reporting per thread */

	pthread_mutex_lock(&lock);
	if (!ready) {
		catch_crashes();
		starting = true;
	}
	if (!quiet && !(quiet = H5Eset_auto2(H5E_DEFAULT, note_error, NULL) >= 0))
		vn_trouble_note("HDF5 does not start");
	if (!ready) {
		/* We close everything ourselves. HDF5's own closing at exit would flush the half-written
		 * file of an aborted run. */
		H5dont_atexit();
		H5PLset_loading_state(0);
		starting = false;
		ready = true;
	}
}

void vn_h5_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

enum { ROOM = 8 << 20 }; /* bytes; the objects of a tensor take a few hundred kB */

vn_status vn_h5_room(const char *path, vn_error *err)
{
	static void *kept; /* until it is needed */

	if (!kept)
		kept = vn_room_keep(ROOM);
	if (kept && vn_room_for(ROOM))
		return VN_OK;
	vn_room_return(kept, ROOM);
	kept = NULL;
	return vn_fail(err, VN_ERR_NOMEM, "%s: no memory for HDF5 to write it", path);
}

bool vn_h5_close(hid_t id)
{
	return id < 0 || H5Idec_ref(id) >= 0;
}

hid_t vn_h5_type(vn_dtype d, bool big)
{
	if (d == VN_BF16)
		return H5Tcopy(big ? H5T_STD_U16BE : H5T_STD_U16LE);
	if (d == VN_F8_E4M3 || d == VN_F8_E5M2)
		return H5Tcopy(big ? H5T_STD_U8BE : H5T_STD_U8LE);
	if (d == VN_I32)
		return H5Tcopy(big ? H5T_STD_I32BE : H5T_STD_I32LE);
	if (d == VN_F64)
		return H5Tcopy(big ? H5T_IEEE_F64BE : H5T_IEEE_F64LE);

	hid_t t = H5Tcopy(big ? H5T_IEEE_F32BE : H5T_IEEE_F32LE);
	/* IEEE binary16: sign 15, exponent 10..14 with bias 15, mantissa 0..9. */
	if (d == VN_F16 && (H5Tset_fields(t, 15, 10, 5, 0, 10) < 0 || H5Tset_ebias(t, 15) < 0 || H5Tset_size(t, 2) < 0)) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

bool vn_h5_says_dtype(vn_dtype d)
{
	return d == VN_BF16 || d == VN_F8_E4M3 || d == VN_F8_E5M2;
}

hid_t vn_h5_text_type(void)
{
	hid_t t = H5Tcopy(H5T_C_S1);
	if (H5Tset_size(t, H5T_VARIABLE) < 0 || H5Tset_cset(t, H5T_CSET_UTF8) < 0) {
		H5Tclose(t);
		return H5I_INVALID_HID;
	}
	return t;
}

static bool put_attribute(hid_t object, const char *name, hid_t disk, hid_t memory, const void *value)
{
	static hid_t scalar = H5I_INVALID_HID; /* kept, like the type below: making them takes a tenth of the time */

	if (scalar < 0)
		scalar = H5Screate(H5S_SCALAR);
	const hid_t attr = H5Acreate2(object, name, disk, scalar, H5P_DEFAULT, H5P_DEFAULT);
	const bool  good = attr >= 0 && H5Awrite(attr, memory, value) >= 0;
	return vn_h5_close(attr) && good;
}

bool vn_h5_put_text(hid_t object, const char *name, const char *text)
{
	static hid_t type = H5I_INVALID_HID;

	if (type < 0)
		type = vn_h5_text_type();
	return type >= 0 && put_attribute(object, name, type, type, &text);
}

bool vn_h5_put_word(hid_t object, const char *name, const char *word)
{
	const hid_t type = H5Tcopy(H5T_C_S1);
	const bool  good = type >= 0 && H5Tset_size(type, strlen(word)) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0 &&
	                  H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 && put_attribute(object, name, type, type, word);
	return vn_h5_close(type) && good;
}

bool vn_h5_put_int(hid_t object, const char *name, int64_t value)
{
	return put_attribute(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

bool vn_h5_put_real(hid_t object, const char *name, double value)
{
	return put_attribute(object, name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, &value);
}
