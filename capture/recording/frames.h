/* frames.h: the frames in which a child (child.h) sends what it finds in an untrusted HDF5 file,
 * and what it is given to read.
 */
#pragma once

#include "capture/recording/scratch.h"
#include "libref/base/tensor.h"
#include "libref/base/digest.h"
#include "libref/plan/plan.h"

/* Kinds of frames, and their contents. */
typedef enum vn_frame {
	VN_FRAME_FAILED, /* int32 status, text */
	VN_FRAME_ROOT,   /* key NUL value NUL: attributes of /, of /run, of /model; numbers as text */
	VN_FRAME_RUN,
	VN_FRAME_MODEL,
	VN_FRAME_COMPLETE, /* int32 */
	VN_FRAME_BATCH,    /* int64: rows of the lists that follow; 0: single lists */
	VN_FRAME_IDS,      /* int32 each */
	VN_FRAME_POSITIONS,
	VN_FRAME_TOKEN_TEXT, /* text */
	VN_FRAME_LEFT_OUT,
	VN_FRAME_WEIGHT,    /* vn_seen_weight */
	VN_FRAME_PLAN,      /* int32 layers, vocab, context */
	VN_FRAME_PLAN_NODE, /* text */
	VN_FRAME_PLAN_VALUE,
	VN_FRAME_PLAN_WEIGHT,
	VN_FRAME_RUN_PLAN,        /* nothing: the nodes are those of a run (run_plan.h) */
	VN_FRAME_REPLAYED_RESULT, /* text: lines of a replay file */
	VN_FRAME_REPLAYED_UNJUDGED,
	VN_FRAME_REPLAYED_SETTING,
	VN_FRAME_STEP,   /* vn_seen_step */
	VN_FRAME_TENSOR, /* vn_seen_tensor */
	VN_FRAME_UNREAD, /* text: an object that vernier does not read */
	VN_FRAME_DONE
} vn_frame;

/* Attribute `format` of a replay file. */
#define VN_REPLAYED_FORMAT "vernier-replayed"

#define VN_NOT_SAID INT64_MIN /* a value that no file can state */

typedef struct vn_seen_step {
	int64_t number, position, tokens, first_row, rows; /* VN_NOT_SAID */
} vn_seen_step;

typedef struct vn_seen_tensor {
	char     name[VN_NAME_MAX], point[32], op[32], basis[32], axes[64], digest[64], source_line[128];
	int64_t  step, order, layer; /* order, layer: VN_NOT_SAID */
	int32_t  dtype, rank, has_stats;
	int64_t  dim[VN_MAX_RANK];
	double   min, max, mean, rms, absmax;
	int64_t  nan, inf;
	uint64_t address; /* of the object in the file */
	int64_t  offset;  /* of its numbers; -1: HDF5 must read them */
} vn_seen_tensor;

typedef struct vn_seen_weight {
	char    name[VN_NAME_MAX], dtype[16], shape[VN_SHAPE_TEXT], digest[64];
	double  min, max, mean, rms;
	int64_t nan, inf;
} vn_seen_weight;

/* A tensor whose numbers a child reads, and the size of its slot in shared memory. */
typedef struct vn_scan_one {
	char     name[VN_NAME_MAX];
	vn_dtype dtype;
	uint64_t address;
	size_t   bytes;
} vn_scan_one;
static inline size_t vn_scan_span(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

/* The work of a child: the file, and what to read of it. path: for messages. */
typedef struct vn_scan {
	int                fd;
	const char        *path;
	int64_t            bytes;
	/* vn_scan_numbers only: n tensors, memory shared with the parent for one after the other, and
	 * the index of this child among several, which share the chunks of each tensor. */
	const vn_scan_one *tensor;
	int                n;
	vn_scratch         to;
	int                child, children;
	int                pipe;
} vn_scan;

/* Returns how many tensors a file of this size may have, second names included, at least a million.
 * Each takes some hundred bytes of memory and, in files as they are written, at least as many in
 * the file (ours: 800). So memory is at most a few times the size of the file, and never more than
 * some 10 GB. */
static inline int64_t vn_scan_most(int64_t file_bytes)
{
	enum { ALWAYS = 1000000, NEVER_MORE = 1 << 24, BYTES_EACH = 256 };
	const int64_t most = file_bytes / BYTES_EACH;
	return most < ALWAYS ? ALWAYS : most < NEVER_MORE ? most : NEVER_MORE;
}

/* Returns the bytes of a tensor of elements of `width` bytes; -1: a size is negative, or there are
 * more than can be counted. */
static inline int64_t vn_scan_bytes(const int64_t *dim, int rank, int64_t width)
{
	for (int i = 0; i < rank; i++) {
		if (dim[i] < 0 || (dim[i] > 0 && width > INT64_MAX / 4 / dim[i]))
			return -1;
		width *= dim[i];
	}
	return width;
}
