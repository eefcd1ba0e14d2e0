/* crew.h: shares numbered pieces of work among worker processes, which are forked from this one.
 *
 * A free worker gets the next piece. What it prints goes to this process, which passes it on piece
 * by piece, in order: so the output is the same for any number of workers. The answer to a piece
 * must not depend on the worker either. Signals that end a program (SIGINT, SIGTERM, SIGHUP) end
 * the workers first; workers whose parent is gone get SIGTERM.
 */
#ifndef VN_LIBREF_BASE_CREW_H
#define VN_LIBREF_BASE_CREW_H

#include "libref/base/cluster.h"

enum { VN_MOST_WORKERS = 256 };

/* Does the pieces order[0] to order[n - 1] of the job; the job's fields `instead` and `same` are
 * not used. Calls done in this process, in that order, for each piece as soon as this piece and all
 * before it have answers. done may change the texts of the answer, which are freed afterwards. A
 * failure of done ends the work. Call it before threads are started.
 *
 * VN_ERR_UNSUPPORTED: nothing was done, because fewer than two workers could be started, or because
 * what stdout or stderr still held could not be written. VN_ERR_NOMEM: a worker ended without an
 * answer; what it printed has been printed. */
vn_status vn_crew_share(const vn_cluster_job *job, int workers,
                        vn_status (*done)(void *context, int i, vn_cluster_answer *answer, vn_error *err),
                        vn_error *err);

#endif
