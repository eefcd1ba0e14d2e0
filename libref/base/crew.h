/* crew.h: shares numbered pieces of work among worker processes, which are forked from this one.
 *
 * A free worker gets the next piece. What it prints goes to this process, which passes it on piece
 * by piece, in order: so the output is the same for any number of workers. The answer to a piece
 * must not depend on the worker either. Signals that end a program (SIGINT, SIGTERM, SIGHUP) end
 * the workers first; workers whose parent is gone get SIGTERM.
 */
#pragma once

#include "libref/base/cluster.h"

enum { VN_MOST_WORKERS = 256 };

/* Does the pieces 0 to n - 1 of the job; its fields `instead`, `order` and `same` are not used.
 * What a piece printed is printed here, and then `done` is called, as soon as this piece and all
 * before it have answers. A failure of `done` ends the work. Without two workers, because fewer are
 * asked for, or could be started, or because what stdout or stderr still held could not be written,
 * this process does the pieces itself.
 *
 * VN_ERR_NOMEM: a worker ended without an answer; what it printed has been printed. With job->again
 * this, or an answer whose status is not 0, or with TROUBLE, is no error: this process does the
 * pieces that are left. */
vn_status vn_crew_share(const vn_cluster_job *job, int workers, vn_error *err);
