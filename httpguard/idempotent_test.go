package httpguard

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
	"github.com/quorumlock/quorumlock/idempotency/memstore"
)

// field-reports: 85, 87
func TestEachSituationHasItsAnswer(t *testing.T) {
	for _, statuses := range []Statuses{Draft07, Accepted} {
		seen := map[int]bool{}
		for _, c := range situations() {
			seen[c.row] = true
			t.Run(fmt.Sprintf("%d/%02d %s", statuses, c.row, c.name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c.cfg.Statuses = statuses
					s := newService(t, c.cfg, c.guard)
					a := c.meet(s)
					want := c.draft
					if statuses == Accepted && c.accept != "" {
						want = c.accept
					}
					checkAnswer(t, a, want)
					for _, header := range c.headers {
						name, value, exact := strings.Cut(header, ": ")
						if got := a.header.Get(name); got == "" || exact && got != value {
							t.Errorf("%s is %q, want %q", name, got, value)
						}
					}
					if runs := s.runs.Load(); runs != c.runs {
						t.Errorf("the handler ran %d times, want %d", runs, c.runs)
					}
					time.Sleep(time.Hour) // for what still runs
				})
			})
		}
		for row := 1; row <= 20; row++ {
			if !seen[row] {
				t.Errorf("no situation of row %d", row)
			}
		}
	}
}

// checkAnswer checks that a is what want says in short.
func checkAnswer(t *testing.T, a answer, want string) {
	t.Helper()
	var status int
	var name string
	fmt.Sscan(want, &status, &name)
	switch name {
	case "order", "replay":
		isOrder(t, a, name == "replay")
	case "":
		if a.status != status || !strings.HasPrefix(a.body, "no") {
			t.Errorf("%d %s, want the handler's %d", a.status, a.body, status)
		}
	default:
		isProblem(t, a, status, name)
	}
}

func TestClientsMistakesAreToldApart(t *testing.T) {
	long := strings.Repeat("k", 256)
	for _, c := range []struct {
		name, line, want string
		cfg              IdempotentConfig
	}{
		{"quoted", `"k1"`, "", IdempotentConfig{}},
		{"bare", `k1`, "", IdempotentConfig{}},
		{"longest", long[1:], "", IdempotentConfig{}},
		{"too long", long, "256 bytes", IdempotentConfig{}},
		{"parameters", `"k1"; a=1`, "parameters", IdempotentConfig{}},
		{"no quotes where they are asked for", `k1`, "quotes", IdempotentConfig{StrictSyntax: true}},
		{"shorter than the service wants", `"short"`, "match", IdempotentConfig{KeyPattern: regexp.MustCompile(`^.{16,}$`)}},
		{"as long as the service wants", `"0123456789abcdef"`, "", IdempotentConfig{KeyPattern: regexp.MustCompile(`^.{16,}$`)}},
		{"quotes where they are asked for", `"k1"`, "", IdempotentConfig{StrictSyntax: true}},
	} {
		s := newService(t, c.cfg, idempotency.Config{})
		a := record(s.handler, keyed(c.line, "{}"))
		if c.want == "" {
			isOrder(t, a, false)
			continue
		}
		wantProblem(t, a, http.StatusBadRequest, "key-invalid")
		if !strings.Contains(a.body, c.want) || s.runs.Load() != 0 {
			t.Errorf("%s: %s, %d runs", c.name, a.body, s.runs.Load())
		}
	}
}

func TestQuotedAndBareAreTheSameKey(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	isOrder(t, record(s.handler, keyed(`k1`, "{}")), false)
	isOrder(t, record(s.handler, keyed(`"k1"`, "{}")), true)
	isOrder(t, record(s.handler, keyed(` "k1"	`, "{}")), true)
}

// field-reports: 37
func TestOnlyTheSamePrincipalGetsTheAnswer(t *testing.T) {
	s := newService(t, IdempotentConfig{Operation: func(*http.Request) string { return "orders" }}, idempotency.Config{})
	for _, c := range []struct {
		user, key string
		replayed  bool
	}{
		{"u1", "k1", false}, {"u2", "k1", false}, {"u1", "k1", true}, {"u2", "k1", true},
		{"a:b", "c", false}, {"a", "b:c", false},
		{strings.Repeat("u", 300), "k1", false}, {strings.Repeat("u", 299) + "v", "k1", false},
	} {
		r := keyed(c.key, "{}")
		r.Header.Set("User", c.user)
		isOrder(t, record(s.handler, r), c.replayed)
	}
	r := keyed("k1", "{}")
	r.Header.Del("User")
	wantProblem(t, record(s.handler, r), http.StatusForbidden, "principal-missing")
}

// A principal that is too long for a key is shortened, and nobody else can have a name
// that is shortened, or has been, to the same.
func TestLongPrincipalsDoNotMeet(t *testing.T) {
	s := newService(t, IdempotentConfig{}, idempotency.Config{})
	long := strings.Repeat("p", 300)
	digest := sha256.Sum256([]byte(long))
	for n, principal := range []string{long, long + "p", long[:255], fmt.Sprintf("%s ~%x", long[:128], digest)} {
		for again := range 2 {
			r := keyed("k1", `{"skuId":1}`)
			r.Header.Set("User", principal)
			isOrder(t, record(s.handler, r), again > 0)
		}
		if got := s.runs.Load(); got != int64(n+1) {
			t.Errorf("after %q: %d runs, want %d", principal, got, n+1)
		}
	}
}

func TestWhatTellsRequestsApart(t *testing.T) {
	s := newService(t, IdempotentConfig{Operation: func(*http.Request) string { return "orders" }}, idempotency.Config{})
	const body = `{"productId":1234567890123456789,"quantity":1}`
	send := func(target, body string, header ...string) answer {
		r := keyed("k1", body)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(target, "?")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return record(s.handler, r)
	}
	isOrder(t, send("/orders?b=2&a=1", body), false)
	isOrder(t, send("/orders?a=1&b=2", `{"quantity":1.0, "productId":1234567890123456789}`), true)
	isOrder(t, send("/orders?a=1&b=2", body, "User-Agent", "another", "Traceparent", "00-1-1-00", "Cookie", "a=b",
		"Content-Type", "application/json; charset=utf-8"), true)
	for _, mismatch := range []answer{
		send("/orders?a=1&b=2", `{"productId":1234567890123456788,"quantity":1}`),
		send("/orders?a=1&b=3", body),
		send("/order?a=1&b=2", body),
		send("/orders?a=1&b=2", body, "Content-Type", "text/plain"),
	} {
		wantProblem(t, mismatch, http.StatusUnprocessableEntity, "mismatch")
	}
	if runs := s.runs.Load(); runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

func TestIdempotentConfigIsChecked(t *testing.T) {
	guard, err := idempotency.New(memstore.New(nil), idempotency.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]IdempotentConfig{
		"Principal":   {},
		"Methods":     {Principal: user, Methods: []string{"POST", "GET"}},
		"MaxBody":     {Principal: user, MaxBody: -1},
		"MaxResponse": {Principal: user, MaxResponse: -1},
		"Statuses":    {Principal: user, Statuses: 2},
		"RunDegraded": {Principal: user, RunDegraded: true, StrictPersist: true},
		"DocsURL":     {Principal: user, DocsURL: "docs"},
	} {
		if _, err := Idempotent(guard, cfg); err == nil || !strings.Contains(err.Error(), "IdempotentConfig."+want) {
			t.Errorf("want an error about %s, got %v", want, err)
		}
	}
	if _, err := Idempotent(nil, IdempotentConfig{Principal: user}); err == nil {
		t.Error("without a guard: no error")
	}
}

// field-reports: 74
func TestOneKeyForTwoOperationsIsTwoIntents(t *testing.T) {
	s := newService(t, IdempotentConfig{Methods: []string{"POST", "PUT", "PATCH"}}, idempotency.Config{})
	long := "/loc/" + strings.Repeat("x", 400)
	for _, replayed := range []bool{false, true} {
		for _, c := range []struct{ method, path string }{
			{"PATCH", "/loc/123"}, {"PATCH", "/loc/456"}, {"POST", "/loc/123"}, {"PUT", "/loc/123"}, {"PUT", long + "1"}, {"PUT", long + "2"},
		} {
			r := request(c.method, c.path, "{}")
			r.Header.Set("Idempotency-Key", "k1")
			isOrder(t, record(s.handler, r), replayed)
		}
	}
}
