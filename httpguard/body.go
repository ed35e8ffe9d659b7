package httpguard

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// takeBody reads the whole body of r, and returns it with a request that has it
// unread again. It reads at most limit bytes, however many r says there are.
func takeBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, *http.Request, error) {
	if r.ContentLength > limit {
		return nil, nil, &http.MaxBytesError{Limit: limit}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil && len(body) == 0 {
		body, err = readBefore(r, limit)
	}
	if err != nil {
		return nil, nil, err
	}
	again := r.WithContext(r.Context())
	again.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	again.Body, _ = again.GetBody()
	again.ContentLength, again.TransferEncoding = int64(len(body)), nil
	return body, again, nil
}

var errReadBefore = errors.New("the body has been read before")

// readBefore is the body of r, which nobody can read any more, as far as it is known:
// middleware further out may have parsed a form, and then all of them would be the
// same. It fails if there was one and that is lost.
func readBefore(r *http.Request, limit int64) ([]byte, error) {
	body := []byte(r.PostForm.Encode())
	switch {
	case r.MultipartForm != nil, len(body) == 0 && r.ContentLength > 0:
		return nil, errReadBefore
	case int64(len(body)) > limit:
		return nil, &http.MaxBytesError{Limit: limit}
	}
	return body, nil
}

// bodyProblem is what a client is told whose body could not be read.
func bodyProblem(err error) problem {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return tooLargeProblem(tooLarge.Limit)
	}
	if errors.Is(err, errReadBefore) {
		return misused()
	}
	return problem{
		status: http.StatusBadRequest, name: "body-unreadable", title: "The body could not be read",
		detail: "The request's body ended early or was malformed. Nothing has been done; send it again.",
	}
}
