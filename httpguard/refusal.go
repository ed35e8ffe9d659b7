package httpguard

import (
	"errors"
	"net/http"
	"time"

	"github.com/quorumlock/quorumlock/fingerprint"
	"github.com/quorumlock/quorumlock/idempotency"
)

// refusal is what the client is told whose request was neither run nor answered
// with an earlier result.
func (i *idempotent) refusal(r *http.Request, k idempotency.Key, result idempotency.Result, err error) problem {
	var running *idempotency.InProgressError
	var undecided *idempotency.UnknownError
	switch {
	case errors.As(err, &running):
		return i.running(i.StatusURL(r, k), running.RetryAfter)
	case errors.As(err, &undecided):
		return i.unknown(i.StatusURL(r, k), undecided.RetryAfter)
	case errors.Is(err, idempotency.ErrMismatch):
		return i.mismatch()
	case errors.Is(err, idempotency.ErrNotReplayable):
		tombstone, _ := responseOf(result) // without one there is no Location
		return notReplayable(tombstone.Header.Get("Location"))
	case errors.Is(err, idempotency.ErrInvalid):
		return misused()
	}
	return noStore() // or the client has gone, and nobody reads this
}

// status is the one of the preset in use.
func (i *idempotent) status(draft, accepted int) int {
	if i.Statuses == Accepted {
		return accepted
	}
	return draft
}

func (i *idempotent) running(location string, after time.Duration) problem {
	return problem{
		status: i.status(http.StatusConflict, http.StatusAccepted), name: "in-progress", title: "The request is in progress",
		detail:     "The same request is being worked on. Send it again later, with the same key, for its result.",
		retryAfter: max(after, time.Second), location: location,
	}
}

func (i *idempotent) unknown(location string, after time.Duration) problem {
	return problem{
		status: i.status(http.StatusConflict, http.StatusAccepted), name: "outcome-unknown", title: "The outcome is not known yet",
		detail: "An earlier attempt may or may not have succeeded. Send the request again later, with the same key; " +
			"do not send it with another.",
		retryAfter: max(after, time.Second), location: location,
	}
}

func (i *idempotent) mismatch() problem {
	return problem{
		status: i.status(http.StatusUnprocessableEntity, http.StatusConflict), name: "mismatch", title: "The key was used for another request",
		detail: "This Idempotency-Key has been used for a request that differs. Do not send this one again with it: " +
			"another request takes a key of its own.",
	}
}

func keyMissing() problem {
	return problem{
		status: http.StatusBadRequest, name: "key-missing", title: "Idempotency-Key is missing",
		detail: "This request needs an Idempotency-Key: a fresh one for each request, and the same for each retry of it.",
	}
}

func keyInvalid(why error) problem {
	return problem{
		status: http.StatusBadRequest, name: "key-invalid", title: "Idempotency-Key cannot be used",
		detail: "The Idempotency-Key cannot be used: " + why.Error() + ".",
	}
}

func notCanonical(err error) problem {
	p := problem{
		status: http.StatusBadRequest, name: "not-canonical", title: "The body has no certain meaning",
		detail: "The body is not what its type says, or two readers may understand it differently. Do not send it again as it is.",
	}
	var where *fingerprint.InputError
	if errors.As(err, &where) {
		p.detail += " At " + where.Error() + "."
	}
	return p
}

func noStore() problem {
	return problem{
		status: http.StatusServiceUnavailable, name: "store-unavailable", title: "Requests with a key cannot be taken now",
		detail: "Nothing has been done by this request. Send it again later, with the same key.", retryAfter: time.Second,
	}
}

func notStored() problem {
	p := noStore()
	p.detail = "The request may have been carried out, and its result could not be kept. Send it again later, with the same key."
	return p
}

func notReplayable(location string) problem {
	return problem{
		status: http.StatusConflict, name: "replay-unavailable", title: "Done, but the answer cannot be repeated",
		detail:   "The request has been carried out, and its answer was not kept. Do not send it again.",
		location: location,
	}
}

func misused() problem {
	return problem{
		status: http.StatusInternalServerError, name: "misconfigured", title: "The service is misconfigured",
		detail: "Nothing has been done by this request. The service does not know what to keep it under.",
	}
}
