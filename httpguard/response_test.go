package httpguard

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/quorumlock/quorumlock/idempotency"
)

func TestResponseIsStoredInADocumentedForm(t *testing.T) {
	r := Response{
		Status: 201,
		Header: http.Header{"Vary": {"Accept", "Origin"}, "Content-Type": {"application/json"}},
		Body:   []byte(`{"orderId":"o1"}`),
	}
	const want = "response/1 201\r\nContent-Type: application/json\r\nVary: Accept\r\nVary: Origin\r\n\r\n{\"orderId\":\"o1\"}"
	if got := r.Result(); string(got.Response) != want || got.Tombstone {
		t.Errorf("%q", got.Response)
	}
}

func TestWhatIsNoStoredResponseIsRefused(t *testing.T) {
	for _, text := range []string{
		"", "response/1", "response/1 99\r\n\r\n", "response/1 100\r\n\r\n", "response/2 200\r\n\r\n", "response/1 200\r\nno header\r\n\r\n",
		"response/1 200\r\nA: b\r\n", `{"orderId":"o1"}`,
	} {
		if r, err := responseOf(idempotency.Result{Response: []byte(text)}); !errors.Is(err, idempotency.ErrNotReplayable) {
			t.Errorf("%q: %v, %v", text, r, err)
		}
	}
}

// FuzzResponse: whatever the body, what is stored is what is read.
func FuzzResponse(f *testing.F) {
	f.Add(201, "Content-Type", "text/plain", []byte("\r\n\r\nresponse/1 200\r\n"))
	f.Add(204, "", "", []byte{})
	f.Add(200, "Link", " a\r\nb ", []byte{0, 255})
	f.Add(200, "Link", "\x7f\xe4\x00", []byte{})
	f.Fuzz(func(t *testing.T, status int, name, value string, body []byte) {
		if status < 200 || status > 999 {
			return
		}
		r := Response{Status: status, Header: http.Header{}, Body: body}
		r.Header.Set(name, value)
		got, err := responseOf(r.Result())
		if err != nil || got.Status != status || !bytes.Equal(got.Body, body) {
			t.Fatalf("%v: %v, %v", r, got, err)
		}
		// A second time nothing is lost that was left the first time.
		again, err := responseOf(got.Result())
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%v, then %v, %v", got, again, err)
		}
	})
}

func TestHandlerCanSendTheResponseThatItHasStored(t *testing.T) {
	r := Response{Status: 201, Header: http.Header{"Location": {"/orders/o1"}}, Body: []byte("o1")}
	w := httptest.NewRecorder()
	if err := r.Send(w); err != nil {
		t.Fatal(err)
	}
	if w.Code != 201 || w.Body.String() != "o1" || w.Header().Get("Location") != "/orders/o1" || w.Header().Get("Content-Length") != "2" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if len(r.Header) != 1 {
		t.Errorf("changed to %v", r.Header)
	}
}
