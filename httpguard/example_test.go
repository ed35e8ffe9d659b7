package httpguard_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/quorumlock/quorumlock/httpguard"
	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
	"github.com/quorumlock/quorumlock/redlock"
)

type userKey struct{}

// login stands for authentication, which knows the user and comes first.
func login(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, "u1001")))
	})
}

func user(r *http.Request) string {
	id, _ := r.Context().Value(userKey{}).(string)
	return id
}

// Both in front of one handler: who sends a key gets the first answer again, who
// sends none and clicks twice gets 429. It needs three Redis masters to run.
func Example() {
	locker, err := redlock.Dial([]string{"redis://10.0.0.1:6379", "redis://10.0.0.2:6379", "redis://10.0.0.3:6379"}, redlock.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer locker.Close(context.Background())
	once, err := httpguard.SubmitOnce(httpguard.Quorum(locker), httpguard.SubmitConfig{
		Principal: user,
		Decided: func(r *http.Request, d httpguard.Decision, err error) {
			if d == httpguard.Bypassed {
				log.Print("unguarded: ", err) // and count it: somebody has to look at the lock
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}

	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{}) // one that is shared, in earnest
	if err != nil {
		log.Fatal(err)
	}
	idempotent, err := httpguard.Idempotent(guard, httpguard.IdempotentConfig{Principal: user})
	if err != nil {
		log.Fatal(err)
	}

	createOrder := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusCreated)
	})
	mux := http.NewServeMux()
	mux.Handle("POST /orders", login(once(idempotent(createOrder))))
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", mux))
}

func ExampleIdempotent() {
	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{Retention: 24 * time.Hour})
	if err != nil {
		log.Fatal(err)
	}
	idempotent, err := httpguard.Idempotent(guard, httpguard.IdempotentConfig{Principal: user, Required: true})
	if err != nil {
		log.Fatal(err)
	}
	orders := 0
	server := httptest.NewServer(login(idempotent(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		orders++
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "order %d", orders)
	}))))
	defer server.Close()

	post := func(key, body string) {
		r, err := http.NewRequest("POST", server.URL+"/orders", strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		res, err := server.Client().Do(r)
		if err != nil {
			log.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			log.Fatal(err)
		}
		if res.StatusCode >= 400 {
			fmt.Println(res.Status)
			return
		}
		fmt.Printf("%s: %s, replayed: %t\n", res.Status, text, res.Header.Get("Idempotent-Replayed") == "true")
	}
	post(`"req-001"`, `{"productId": 42, "quantity": 1}`)
	post(`"req-001"`, `{"quantity": 1, "productId": 42}`)
	post(`"req-001"`, `{"productId": 42, "quantity": 2}`)
	post(`"req-002"`, `{"productId": 42, "quantity": 2}`)
	post("", `{"productId": 42, "quantity": 1}`)
	// Output:
	// 201 Created: order 1, replayed: false
	// 201 Created: order 1, replayed: true
	// 422 Unprocessable Entity
	// 201 Created: order 2, replayed: false
	// 400 Bad Request
}

// A process has died after it had inserted an order and before it could say so. The
// next retry asks the table, and repairs the record.
func ExampleResponse_Result() {
	orderByKey := map[string]string{"req-001": "o1001"} // the table of orders
	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{
		Reconciler: func(ctx context.Context, r idempotency.Record) (idempotency.Verdict, error) {
			id, there := orderByKey[r.Key.Value]
			if !there {
				// Safe only since user and key are unique together in the table, which
				// refuses the late writer, if there is one.
				return idempotency.DidNotHappen(), nil
			}
			return idempotency.Happened(httpguard.Response{
				Status: http.StatusCreated,
				Header: http.Header{"Location": {"/orders/" + id}},
				Body:   []byte(id),
			}.Result()), nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	idempotent, err := httpguard.Idempotent(guard, httpguard.IdempotentConfig{Principal: user})
	if err != nil {
		log.Fatal(err)
	}
	died := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("after the commit") })
	handler := login(idempotent(died))

	for range 2 {
		func() {
			defer func() { recover() }() // as net/http does
			r := httptest.NewRequest("POST", "/orders", nil)
			r.Header.Set("Idempotency-Key", "req-001")
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, r)
			fmt.Println(w.Code, w.Header().Get("Location"), w.Body)
		}()
	}
	// Output:
	// 201 /orders/o1001 o1001
}

// A handler knows better than its status what has happened.
func ExampleRun_Means() {
	reserve := func(context.Context) error { return nil }
	commit := func(context.Context) error { return nil }
	notify := func(context.Context) error { return nil }
	_ = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run := httpguard.RunOf(r.Context()) // nil without a key, which Means allows
		if err := reserve(r.Context()); err != nil {
			run.Means(httpguard.NoEffect) // a retry may run at once
			http.Error(w, "nothing was done", http.StatusServiceUnavailable)
			return
		}
		if err := commit(r.Context()); err != nil {
			http.Error(w, "maybe", http.StatusInternalServerError) // Ambiguous, as every 5xx
			return
		}
		run.Means(httpguard.Final)
		if err := notify(r.Context()); err != nil {
			http.Error(w, "ordered, but nobody was told", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
}
