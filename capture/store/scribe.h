/* scribe.h: the process that writes the structure of a checkpoint file.
 *
 * HDF5 1.10 crashes, or exits silently, if it gets no memory. So it runs in a child process of the
 * store, which has the file open, executes requests (scribe_file.c, scribe_about.c), and answers.
 * Whatever happens to it, the store gets an answer or one clear error. The store, not the scribe,
 * renames the file (place.h). The store also writes the numbers of large tensors itself, at the
 * place that the answer names. Small tensors are sent with their numbers, many in one message.
 *
 * If the store's process ends, the scribe is killed at once (PR_SET_PDEATHSIG), and the file stays
 * as it was last published. The kernel regards the thread that forked it as its parent, so start it
 * in a thread that outlives it.
 *
 * It runs in a sandbox (sandbox.h), like code that reads untrusted files: it has the descriptors of
 * the file and of its socket, memory, and nothing else.
 *
 * Threads  one at a time per scribe.
 */
#pragma once

#include "capture/file/place.h"
#include "capture/store/label.h"
#include "capture/store/message.h"
#include "libref/base/digest.h"
#include "libref/base/stats.h"

#include <sys/types.h>

/* The requests. Their data is described at the functions that execute them. */
/* clang-format off */
typedef enum vn_scribe_request {
	VN_SCRIBE_CREATE, VN_SCRIBE_RUN, VN_SCRIBE_IDS_DIGEST, VN_SCRIBE_TEXTS, VN_SCRIBE_FACTS, VN_SCRIBE_MODEL,
	VN_SCRIBE_STEP, VN_SCRIBE_ALIASES, VN_SCRIBE_START, VN_SCRIBE_FINISH, VN_SCRIBE_SMALL, VN_SCRIBE_CLOSE
} vn_scribe_request;
/* clang-format on */

/* What VN_SCRIBE_START, VN_SCRIBE_FINISH and VN_SCRIBE_SMALL send. START sends no stats and no
 * digest. */
typedef struct vn_scribe_tensor {
	vn_tensor_label label;
	vn_dtype        dtype;
	vn_shape        shape;
	vn_stats        stats;
	vn_digest       digest;
} vn_scribe_tensor;

/* A row of /model/weights in its file format (specs/checkpoint.md). */
enum { VN_WEIGHT_SHAPE_TEXT = 96 }; /* for four axes; older readers accept no more */
typedef struct vn_scribe_weight {
	char    name[VN_NAME_MAX], dtype[8], shape[VN_WEIGHT_SHAPE_TEXT], digest[VN_DIGEST_TEXT];
	double  min, max, mean, rms;
	int64_t nan, inf;
} vn_scribe_weight;

typedef struct vn_scribe {
	pid_t       pid;
	int         socket; /* -1: none */
	bool        asked;  /* an answer is outstanding */
	const char *path;   /* for messages */
} vn_scribe;

/* Forks the scribe. */
vn_status vn_scribe_start(vn_scribe *s, const vn_place *place, vn_error *err);
/* Sends a request and finishes the message. No answer may be outstanding. */
vn_status vn_scribe_ask(vn_scribe *s, vn_scribe_request request, vn_message *m, vn_error *err);
/* Waits for the answer to the last request; returns at once if none is outstanding. value may be
 * NULL. */
vn_status vn_scribe_answer(vn_scribe *s, int64_t *value, vn_error *err);
/* vn_scribe_ask, then vn_scribe_answer. */
vn_status vn_scribe_do(vn_scribe *s, vn_scribe_request request, vn_message *m, int64_t *value, vn_error *err);
/* Waits for its end, which comes when the socket is closed. s may be zeroed with socket -1. */
void      vn_scribe_end(vn_scribe *s);

/* In the child: the file that it writes; the execution of a request; what is done if none came for
 * this time: what waits to be published is published, and a failure is that of the next request. */
enum { VN_SCRIBE_SILENCE_MS = 100 };
typedef struct vn_scribe_file vn_scribe_file;
vn_scribe_file               *vn_scribe_file_create(int fd, const char *path); /* NULL: no memory */
vn_status vn_scribe_file_do(vn_scribe_file *f, vn_scribe_request request, vn_message *m, int64_t *value, vn_error *err);
void      vn_scribe_file_idle(vn_scribe_file *f);
