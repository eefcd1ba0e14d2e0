/* scribe.h: the process that writes the structure of a checkpoint file.
 *
 * HDF5 1.10 crashes, or ends the program without a word, where it gets no memory. So it runs in a child process
 * of the store's, which has the file open, does what it is asked to (scribe_file.c, scribe_about.c), and answers.
 * Whatever becomes of it, the store gets an answer or one clear line, and the file under its final name is none
 * of its business: renaming is the store's (place.h). The numbers of tensors do not pass through here either;
 * the store writes them itself, at the place it is told.
 *
 * When the store's process ends, however, the scribe is killed at once (PR_SET_PDEATHSIG), and the file stays as it
 * was published last. The kernel takes the thread that forked it for its parent: start it in one that outlives it.
 *
 * It runs in a sandbox (sandbox.h), as who reads a stranger's file does: it has the descriptors of the file and of its socket,
 * memory, and nothing else.
 *
 * Threads  one at a time per scribe.
 */
#ifndef VN_CAPTURE_SCRIBE_H
#define VN_CAPTURE_SCRIBE_H

#include "capture/file/place.h"
#include "capture/store/message.h"

#include <sys/types.h>

/* What can be asked for; what is sent with it stands with the function that does it. */
typedef enum vn_errand {
	VN_SCRIBE_CREATE, VN_SCRIBE_RUN, VN_SCRIBE_IDS_DIGEST, VN_SCRIBE_TOKEN_TEXT, VN_SCRIBE_FACTS, VN_SCRIBE_MODEL,
	VN_SCRIBE_STEP, VN_SCRIBE_ALIASES, VN_SCRIBE_START, VN_SCRIBE_FINISH, VN_SCRIBE_CLOSE,
	VN_N_ERRANDS /* none */
} vn_errand;

typedef struct vn_scribe {
	pid_t pid;
	int   socket;      /* -1: none */
	bool  asked;       /* an answer is outstanding */
	const char *path;  /* for messages */
} vn_scribe;

vn_status vn_scribe_start(vn_scribe *s, const vn_place *place, vn_error *err);
/* Sends an errand and ends the message. The answer of the one before is fetched first; its failure is returned,
 * and nothing is sent. */
vn_status vn_scribe_ask(vn_scribe *s, vn_errand errand, vn_message *m, vn_error *err);
/* The answer to what was asked last; at once when there is none outstanding. value may be NULL. */
vn_status vn_scribe_answer(vn_scribe *s, int64_t *value, vn_error *err);
/* Both. */
vn_status vn_scribe_do(vn_scribe *s, vn_errand errand, vn_message *m, int64_t *value, vn_error *err);
/* Waits for its end, which it comes to when nobody can ask any more. Safe on a zeroed one with socket -1. */
void      vn_scribe_end(vn_scribe *s);

/* In the child: what it works with, and each errand. */
typedef struct vn_desk vn_desk;
vn_desk  *vn_desk_create(int fd, const char *path); /* NULL: no memory */
vn_status vn_desk_do(vn_desk *d, vn_errand errand, vn_message *m, int64_t *value, vn_error *err);

#endif
