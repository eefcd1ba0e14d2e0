/* store_request.c: a store's requests to its scribe, and the first failure.
 * See store_internal.h. */
#include "capture/store/store_internal.h"

vn_status vn_store_note_failure(vn_store *s, vn_status st, const vn_error *own, vn_error *err)
{
	if (!st)
		return VN_OK;
	pthread_mutex_lock(&s->lock);
	if (!s->status) {
		s->status = st;
		s->err = *own;
	}
	pthread_mutex_unlock(&s->lock);
	if (err)
		*err = *own;
	return st;
}

vn_status vn_store_status(vn_store *s, vn_error *err)
{
	pthread_mutex_lock(&s->lock);
	vn_status st = s->status;
	if (st && err)
		*err = s->err;
	pthread_mutex_unlock(&s->lock);
	return st;
}

vn_status vn_store_collect(vn_store *s, vn_error *err)
{
	const bool finishing = s->scribe.asked;
	int64_t    tensors;
	vn_error   own = { "" };
	vn_status  st = vn_scribe_answer(&s->scribe, &tensors, &own);

	s->tensors += tensors;
	if (finishing && !st)
		s->bytes += s->finishing;
	return vn_store_note_failure(s, st, &own, err);
}

/* Requires s->asking. Whether another message may be sent. */
static vn_status check_ready(vn_store *s, vn_error *err)
{
	const vn_status st = vn_store_status(s, err);
	return st ? st : vn_store_collect(s, err);
}

/* Sends a request. later NULL: also waits for the answer, *value (NULL: not needed); else the
 * answer is collected later, and so many bytes count then. */
static vn_status send_request(vn_store *s, vn_scribe_request request, vn_message *m, int64_t *value,
                              const int64_t *later, vn_error *err)
{
	vn_error own = { "" };

	pthread_mutex_lock(&s->asking);
	vn_status st = check_ready(s, err);
	if (st) {
		vn_message_finish(m);
	} else {
		if (later)
			st = vn_scribe_ask(&s->scribe, request, m, &own);
		else
			st = vn_scribe_do(&s->scribe, request, m, value, &own);
		vn_store_note_failure(s, st, &own, err);
	}
	if (later)
		s->finishing = *later;
	pthread_mutex_unlock(&s->asking);
	return st;
}

vn_status vn_store_do(vn_store *s, vn_scribe_request request, vn_message *m, int64_t *value, vn_error *err)
{
	return send_request(s, request, m, value, NULL, err);
}

vn_status vn_store_finish(vn_store *s, vn_scribe_request request, vn_message *m, int64_t bytes, vn_error *err)
{
	return send_request(s, request, m, NULL, &bytes, err);
}
