/* fuzz_object_header.c: headers of datasets, read by our reader and by HDF5: both must give the
 * same answer for the same bytes.
 *
 * Input: an HDF5 file. Our reader reads it wherever a header seems to begin. Its answer (dtype,
 * shape, offset, attributes) must be HDF5's answer about the object at that address. If only one of
 * the two refuses it, that is a difference too. The answer "HDF5 must read it" is always right.
 *
 * Where two headers share a block, HDF5 answers by the order in which it is asked. So a difference
 * counts if it is there again in a file opened anew, and ours must not have changed.
 *
 * HDF5 crashes and hangs on some damaged files, so it is asked in a child, and only of headers that
 * ours has read. A crash of HDF5 there is no failure of ours. A hundred inputs are checked at once,
 * the last ones at exit, so the input at fault may be an earlier one: it is written to the folder
 * $FUZZ_FOUND (default: the current one). HDF5's own function corrects the checksums after each
 * mutation, or no mutation would get past them. */
#include "capture/file/child.h"
#include "capture/recording/scan_tensor.h"
#include "tests/fuzz/mutate.h"

#include "tests/support/counted.h"
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

uint32_t H5_checksum_lookup3(const void *data, size_t bytes, uint32_t start); /* of libhdf5, in no header of its */
size_t   LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t   LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

enum { MOST_HEADERS = 16, MOST_BYTES = 1 << 16, INPUTS = 100 };

/* ---- checksums ------------------------------------------------------------------------------ */

static uint64_t number(const uint8_t *p, size_t n)
{
	uint64_t x = 0;
	while (n-- > 0)
		x = x << 8 | p[n];
	return x;
}

static void put_sum(uint8_t *p, size_t n)
{
	const uint32_t sum = H5_checksum_lookup3(p, n, 0);
	for (int i = 0; i < 4; i++)
		p[n + (size_t)i] = (uint8_t)(sum >> 8 * i);
}

/* This loop visits every byte of every input: libFuzzer learns nothing from it, and its tracing
 * would cost most of the time. */
#ifdef __clang__
#define NOT_TRACED __attribute__((no_sanitize("coverage")))
#else
#define NOT_TRACED
#endif

NOT_TRACED static bool is(const uint8_t *data, size_t size, size_t at, const char *four)
{
	return at + 4 <= size && data[at] == (uint8_t)four[0] && data[at + 1] == (uint8_t)four[1] &&
	       data[at + 2] == (uint8_t)four[2] && data[at + 3] == (uint8_t)four[3];
}

/* Does a header seem to begin there? */
NOT_TRACED static bool begins(const uint8_t *data, size_t size, size_t at)
{
	return is(data, size, at, "OHDR") || (data[at] == 1 && data[at + 1] == 0 && data[at + 2] && data[at + 4]);
}

/* Lists the places where pieces of metadata seem to begin: only headers, or others too. */
NOT_TRACED static size_t find_places(const uint8_t *data, size_t size, bool all, size_t *place, size_t most)
{
	size_t n = 0;
	for (size_t at = 0; at + 16 <= size && n < most; at++)
		if (begins(data, size, at) || (all && (is(data, size, at, "OCHK") || is(data, size, at, "GCOL"))))
			place[n++] = at;
	return n;
}

/* Corrects the checksum of a piece of a header and of the pieces that its messages continue in.
 * head: bytes before a message. */
static void seal_piece(uint8_t *data, size_t size, size_t from, size_t front, uint64_t n, size_t head, int depth)
{
	if (depth > 8 || from > size || front + n + 4 > size - from || n > size)
		return;
	for (size_t at = from + front, end = at + (size_t)n; at + head <= end;) {
		const size_t bytes = (size_t)number(data + at + 1, 2);
		if (data[at] == 16 && bytes >= 16 && at + head + 16 <= end) { /* a continuation: OCHK, messages, sum */
			const uint64_t to = number(data + at + head, 8), m = number(data + at + head + 8, 8);
			if (to > from && to < size && m >= 8 && is(data, size, (size_t)to, "OCHK"))
				seal_piece(data, size, (size_t)to, 4, m - 8, head, depth + 1);
		}
		at += head + bytes;
	}
	put_sum(data + from, front + (size_t)n);
}

NOT_TRACED static size_t seal(uint8_t *data, size_t size, uint64_t chance)
{
	(void)chance;
	for (size_t at = 0; at + 16 <= size; at++)
		if (is(data, size, at, "OHDR")) {
			const unsigned flags = data[at + 5], width = 1u << (flags & 3);
			const size_t   front = 6u + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0) + width;
			if (front <= size - at)
				seal_piece(data, size, at, front, number(data + at + front - width, width), flags & 4 ? 6 : 4, 0);
		}
	return size;
}

/* ---- HDF5, in a child ------------------------------------------------------------------------ */

typedef enum stage { OPENING, OURS, THEIRS, DIFFERENT, DONE } stage;

typedef struct input {
	size_t   bytes;
	int      n; /* headers that ours has read */
	uint64_t address[MOST_HEADERS];
	uint8_t  data[MOST_BYTES];
} input;

/* The memory that parent and child share: the inputs, and the child's progress. */
typedef struct shared {
	stage          at;
	bool           alone;                /* HDF5 is asked without us */
	bool           again;                /* about a header that differed, with the file opened anew */
	int            n, which, header;     /* number of inputs; the current one; its current header */
	vn_seen_tensor ours, theirs, before; /* before: ours at the first time */
	input          in[INPUTS];
} shared;

static shared *both;
static int     file = -1, refusal = -1;

/* Compares the bits of numbers, also of NaN. */
static bool same(const vn_seen_tensor *a, const vn_seen_tensor *b)
{
	return a->order == b->order && a->layer == b->layer && a->dtype == b->dtype && a->rank == b->rank &&
	       a->has_stats == b->has_stats && memcmp(a->dim, b->dim, sizeof a->dim) == 0 &&
	       memcmp(&a->min, &b->min, sizeof a->min) == 0 && memcmp(&a->max, &b->max, sizeof a->max) == 0 &&
	       memcmp(&a->mean, &b->mean, sizeof a->mean) == 0 && memcmp(&a->rms, &b->rms, sizeof a->rms) == 0 &&
	       memcmp(&a->absmax, &b->absmax, sizeof a->absmax) == 0 && a->nan == b->nan && a->inf == b->inf &&
	       a->offset == b->offset && strcmp(a->point, b->point) == 0 && strcmp(a->op, b->op) == 0 &&
	       strcmp(a->basis, b->basis) == 0 && strcmp(a->axes, b->axes) == 0 && strcmp(a->digest, b->digest) == 0 &&
	       strcmp(a->source_line, b->source_line) == 0;
}

static void look_at(const vn_scan *s, hid_t f, vn_header_reader *r, uint64_t address)
{
	const vn_seen_tensor none = { .order = VN_NOT_SAID, .layer = VN_NOT_SAID, .address = address };
	int64_t              stored[2] = { 0 };

	both->ours = both->theirs = none;
	both->at = OURS;
	if (!both->alone && (!r || !vn_scan_tensor_header(s, r, "x", &both->ours, &stored[0])))
		return;
	both->at = THEIRS;
	const hid_t o = H5Oopen_by_addr(f, address);
	if (o < 0 || H5Iget_type(o) != H5I_DATASET)
		vn_refuse(s, "x", "no dataset");
	vn_scan_tensor(s, o, "x", &both->theirs, &stored[1]);
	if (both->alone || !same(&both->ours, &both->theirs) || stored[0] != stored[1] ||
	    (both->again && !same(&both->ours, &both->before))) {
		both->at = DIFFERENT;
		_exit(0);
	}
	both->again = false;
	H5Oclose(o);
}

/* Checks input after input, from the next one on. vn_refuse ends the child; the parent sees its
 * progress. */
static void work(void)
{
	for (; both->which < both->n; both->which++) {
		const input  *in = &both->in[both->which];
		const vn_scan s = { .fd = file, .path = "fuzz", .bytes = (int64_t)in->bytes, .pipe = refusal };
		both->at = OPENING;
		vn_child_patience(1);
		if (ftruncate(file, 0) != 0 || pwrite(file, in->data, in->bytes, 0) != (ssize_t)in->bytes)
			_exit(1);
		const hid_t       f = vn_scan_open(&s, 0);
		vn_header_reader *r = vn_scan_reader(&s, f);
		for (; both->header < in->n; both->header++)
			look_at(&s, f, r, in->address[both->header]);
		both->at = DONE;
		both->header = 0;
		free(r);
		H5Fclose(f);
	}
	_exit(0);
}

/* Starts a child without a reader's sandbox, because it writes the inputs into our file. Waits for
 * its end and returns how it ended. */
static int run_child(void)
{
	static const int list[] = { SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL, SIGPROF };
	int              status = 0;

	if (ftruncate(refusal, 0) != 0 || lseek(refusal, 0, SEEK_SET) != 0)
		exit(2);
	fflush(NULL);
	const pid_t pid = fork();
	if (pid == 0) {
		const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (size_t i = 0; i < sizeof list / sizeof *list; i++)
			signal(list[i], SIG_DFL);
		dup2(nothing, 1);
		dup2(nothing, 2);
		setrlimit(RLIMIT_CORE, &(struct rlimit) { 0, 0 });
		work();
	}
	if (pid < 0 || TEMP_FAILURE_RETRY(waitpid(pid, &status, 0)) < 0) { /* libFuzzer's timer interrupts it */
		perror("a child of fuzz_object_header");
		exit(2);
	}
	return status;
}

static void show(const char *who, const vn_seen_tensor *t)
{
	fprintf(stderr,
	        "%s: dtype %d rank %d (%" PRId64 " %" PRId64 " %" PRId64 ") offset %" PRId64 " order %" PRId64
	        " layer %" PRId64 " point '%s' op '%s' basis '%s' axes '%s' digest '%s' source line '%s' "
	        "stats %d min %a max %a mean %a rms %a absmax %a nan %" PRId64 " inf %" PRId64 "\n",
	        who, t->dtype, t->rank, t->dim[0], t->dim[1], t->dim[2], t->offset, t->order, t->layer, t->point, t->op,
	        t->basis, t->axes, t->digest, t->source_line, t->has_stats, t->min, t->max, t->mean, t->rms, t->absmax,
	        t->nan, t->inf);
}

static void found(const char *what)
{
	const input *in = &both->in[both->which];
	const size_t front = 2 * sizeof(uint32_t) + sizeof(int32_t); /* of a frame, and of a refusal in it */
	const char  *folder = getenv("FUZZ_FOUND");
	char         text[2048] = "", path[4096];
	ssize_t      n = pread(refusal, text, sizeof text - 1, 0);

	snprintf(path, sizeof path, "%s/header-%08x", folder ? folder : ".", H5_checksum_lookup3(in->data, in->bytes, 0));
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(in->data, 1, in->bytes, f) != in->bytes || fclose(f) != 0)
		perror(path);
	fprintf(stderr, "%s: at %" PRIu64 ": %s: %s\n", path, in->address[both->header], what,
	        n > (ssize_t)front ? text + front : "");
	show("ours  ", &both->ours);
	show("theirs", &both->theirs);
	_exit(1); /* the current input is not at fault */
}

/* Judges why a child ended early. The next child continues after the header that ended it. */
static void judge(int status)
{
	const bool refused = WIFEXITED(status) && WEXITSTATUS(status) == 0;

	const bool differs = both->at == DIFFERENT || (both->at == THEIRS && refused && !both->alone);

	if (differs && !both->alone && !both->again) {
		both->again = true;
		both->before = both->ours;
		return;
	}
	if (differs)
		found(both->alone             ? "refused by us, read by HDF5"
		      : both->at == DIFFERENT ? "another answer"
		                              : "read by us, refused by HDF5");
	if (both->at == OURS && !refused)
		found("ours crashed");
	if (both->at == OURS && both->again)
		found("read by us, then refused");
	if (both->at == OURS) { /* refused: HDF5 must refuse it too */
		both->alone = true;
		return;
	}
	both->alone = both->again = false;
	if (both->at != OPENING && ++both->header < both->in[both->which].n)
		return;
	both->header = 0;
	both->which++;
}

static void ask_both(void)
{
	both->which = both->header = 0;
	both->alone = both->again = false;
	while (both->which < both->n) {
		const int status = run_child();
		if (both->which < both->n)
			judge(status);
	}
	both->n = 0;
}

/* ---- one input ------------------------------------------------------------------------------- */

static void prepare(void)
{
	both = counted_map(sizeof *both);
	file = memfd_create("header", MFD_CLOEXEC);
	refusal = memfd_create("refusal", MFD_CLOEXEC);
	if (both == MAP_FAILED || file < 0 || refusal < 0)
		exit(2);
	fuzz_quiet_children();
	atexit(ask_both);
}

/* The attributes that are asked for, as scan_tensor.c asks. */
typedef struct attributes {
	char    axes[64];
	int64_t order;
	double  max;
} attributes;

static const vn_header_attribute list[] = {
	{ "axes", VN_ATTRIBUTE_TEXT, offsetof(attributes, axes), 64 },
	{ "order", VN_ATTRIBUTE_WHOLE, offsetof(attributes, order), 0 },
	{ "max", VN_ATTRIBUTE_REAL, offsetof(attributes, max), 0 },
};

/* Headers that ours reads. */
static void read_all(const uint8_t *data, input *in)
{
	static vn_header_reader r;
	size_t                  place[256];

	r.fd = file;
	r.bytes = (int64_t)in->bytes;
	r.header.n = r.heap.n = 0;
	for (int i = 0; i < VN_COLLECTIONS; i++)
		r.collection[i].whole = false;
	in->n = 0;
	for (size_t i = 0, n = find_places(data, in->bytes, false, place, 256); i < n && in->n < MOST_HEADERS; i++) {
		attributes       s;
		vn_object_header h;
		if (!vn_object_header_read(&r, place[i], list, 3, &s, &h))
			continue;
		MUST(h.shape.rank >= 0 && h.shape.rank <= VN_MAX_RANK && h.type_bytes <= sizeof h.type && h.found <= 7);
		MUST(!(h.found & 1) || strnlen(s.axes, sizeof s.axes) < sizeof s.axes);
		in->address[in->n++] = place[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!both)
		prepare();
	input *in = &both->in[both->n];
	if (size > sizeof in->data)
		return 0;
	if (ftruncate(file, 0) != 0 || (size && pwrite(file, data, size, 0) != (ssize_t)size))
		abort();
	in->bytes = size;
	read_all(data, in);
	if (!in->n)
		return 0;
	memcpy(in->data, data, size);
	if (++both->n == INPUTS)
		ask_both();
	return 0;
}

/* Mutates within one piece of metadata, without moving bytes; now and then by libFuzzer's own
 * mutator. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
	uint64_t     s = seed;
	size_t       place[64];
	const size_t n = find_places(data, size, true, place, 64);

	if (n == 0 || seed % 16 == 0 || !LLVMFuzzerMutate)
		return seal(data, LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, most) : size, 0);
	seed /= 16;
	for (int times = 1 + (int)(seed % 3); times; times--) {
		uint8_t      piece[300];
		const size_t from = place[fuzz_random(&s) % n], room = size - from < sizeof piece ? size - from : sizeof piece;
		const size_t at = from + (size_t)(fuzz_random(&s) % room), some = 1 + (size_t)(fuzz_random(&s) % 16);
		const size_t m = some < size - at ? some : size - at;
		memcpy(piece, data + at, m);
		LLVMFuzzerMutate(piece, m, m);
		memcpy(data + at, piece, m);
	}
	return seal(data, size, 0);
}

#ifndef VERNIER_LIBFUZZER
static void put_attribute(hid_t o, const char *name, hid_t type, const void *value)
{
	const hid_t space = H5Screate(H5S_SCALAR), a = H5Acreate2(o, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	H5Awrite(a, type, value);
	H5Aclose(a);
	H5Sclose(space);
}

/* Writes a file with HDF5: one dataset with a header of version 2, then one of version 1. */
static size_t make_seed(int i, uint8_t *out)
{
	static const float numbers[6] = { 1, 2, 3, 4, 5, 6 };
	const char        *axes = i % 2 ? "token" : "token hidden";
	char               path[] = "/tmp/vn-header-XXXXXX";
	const int          fd = mkstemp(path);
	const hid_t        how = H5Pcreate(H5P_FILE_ACCESS), space = H5Screate_simple(2, (hsize_t[]) { 2, 3 }, NULL),
				text = H5Tcopy(H5T_C_S1);

	H5Tset_size(text, H5T_VARIABLE);
	if (i < 2)
		H5Pset_libver_bounds(how, H5F_LIBVER_V18, H5F_LIBVER_V18);
	const hid_t f = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how);
	const hid_t d = H5Dcreate2(f, "x", H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	H5Dwrite(d, H5T_IEEE_F32LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers);
	put_attribute(d, "axes", text, &axes);
	for (int k = 0; k < 5 * (i % 2); k++)
		put_attribute(d, (char[]) { (char)('a' + k), 0 }, H5T_STD_I64LE, &(int64_t) { k });
	put_attribute(d, "order", H5T_STD_I64LE, &(int64_t) { 7 });
	put_attribute(d, "max", H5T_IEEE_F64LE, &(double) { 0.5 });
	H5Dclose(d);
	H5Tclose(text);
	H5Sclose(space);
	H5Fclose(f);
	H5Pclose(how);
	const ssize_t n = pread(fd, out, FUZZ_ROOM, 0);
	close(fd);
	unlink(path);
	return n > 0 ? (size_t)n : 0;
}

/* fuzz_object_header --sweep FILE...: every byte near the beginning of a piece of metadata
 * set to every value. */
static int sweep(const char *path)
{
	enum { NEAR = 320 };
	static uint8_t data[MOST_BYTES], copy[MOST_BYTES];
	static bool    near[MOST_BYTES];
	size_t         place[256];
	long           done = 0;
	FILE          *f = fopen(path, "rb");
	const size_t   size = f ? fread(data, 1, sizeof data, f) : 0, n = find_places(data, size, true, place, 256);

	if (!f || fclose(f) != 0) {
		perror(path);
		return 2;
	}
	memset(near, 0, sizeof near);
	for (size_t i = 0; i < n; i++)
		memset(near + place[i], true, size - place[i] < NEAR ? size - place[i] : NEAR);
	for (size_t at = 0; at < size; at++)
		for (int x = 0; near[at] && x < 256; x++, done++) {
			memcpy(copy, data, size);
			copy[at] = (uint8_t)x;
			LLVMFuzzerTestOneInput(copy, seal(copy, size, 0));
		}
	ask_both();
	printf("%s: %ld files, no difference\n", path, done);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--sweep") == 0) {
		int st = 0;
		for (int i = 2; i < argc; i++)
			st |= sweep(argv[i]);
		return st;
	}
	const fuzz_plan plan = { make_seed, 4, seal, fuzz_damage };
	static uint8_t  seed[FUZZ_ROOM];
	for (int i = 0; i < 4; i++) {
		LLVMFuzzerTestOneInput(seed, make_seed(i, seed));
		if (both->n != 1) /* then mutations would prove nothing */
			return 1;
		ask_both();
		if (both->at != DONE || both->ours.order != 7 || both->theirs.order != 7)
			return 1;
	}
	return fuzz_main(argc, argv, &plan);
}
#endif
