package postgres

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/quorumlock/quorumlock/httpguard"
	"github.com/quorumlock/quorumlock/idempotency"
)

// A handler makes an order and completes its record in one transaction. What
// becomes of it afterwards does not matter: a retry gets the answer.
func TestAHandlerCompletesItsRecordInItsTransaction(t *testing.T) {
	db, store := records(t, "CREATE TABLE orders (id serial PRIMARY KEY)")
	idempotent, err := httpguard.Idempotent(guard(t, store, idempotency.Config{}), httpguard.IdempotentConfig{
		Principal: func(*http.Request) string { return "u1001" },
	})
	must(t, err)
	answer := httpguard.Response{Status: http.StatusCreated, Header: http.Header{"Location": {"/orders/o1001"}}, Body: []byte("o1001")}
	server := httptest.NewServer(idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, run := r.Context(), httpguard.RunOf(r.Context())
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders DEFAULT VALUES"); err != nil {
			t.Error(err)
			return
		}
		if err := store.CompleteTx(ctx, tx, run.Execution, answer.Result()); err != nil {
			t.Error(err)
			return
		}
		if err := tx.Commit(); err != nil {
			t.Error(err)
			return
		}
		if r.URL.Path == "/panics" {
			panic(http.ErrAbortHandler)
		}
		if err := answer.Send(w); err != nil {
			t.Error(err)
		}
	})))
	defer server.Close()
	// On a connection that it uses again, net/http's client itself repeats a request
	// that has a key.
	server.Client().Transport.(*http.Transport).DisableKeepAlives = true

	post := func(path, key string) (res *http.Response, body string, err error) {
		r, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+path, strings.NewReader("{}"))
		if err != nil {
			return nil, "", err
		}
		r.Header.Set("Idempotency-Key", key)
		res, err = server.Client().Do(r)
		if err != nil {
			return nil, "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return res, string(text), err
	}
	isAnswer := func(path, key string, replayed bool) {
		t.Helper()
		res, body, err := post(path, key)
		if err != nil {
			t.Error(err)
			return
		}
		if res.StatusCode != http.StatusCreated || body != "o1001" || res.Header.Get("Location") != "/orders/o1001" ||
			(res.Header.Get("Idempotent-Replayed") == "true") != replayed {
			t.Errorf("%s: %d %v %s, want the answer, replayed %t", path, res.StatusCode, res.Header, body, replayed)
		}
	}

	isAnswer("/orders", "k1", false)
	isAnswer("/orders", "k1", true)
	if _, _, err := post("/panics", "k2"); err == nil {
		t.Error("a handler that panics has answered")
	}
	isAnswer("/panics", "k2", true)
	if n := number(t, db, "SELECT count(*) FROM orders"); n != 2 {
		t.Errorf("%d orders for two intents", n)
	}

	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			res, _, err := post("/orders", "k3")
			if err != nil || res.StatusCode != http.StatusCreated && res.StatusCode != http.StatusConflict {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	all.Wait()
	isAnswer("/orders", "k3", true)
	if n := number(t, db, "SELECT count(*) FROM orders"); n != 3 {
		t.Errorf("%d orders for three intents", n)
	}
}
