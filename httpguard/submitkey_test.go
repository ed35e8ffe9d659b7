package httpguard

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestSubmitKeyHasItsDocumentedForm(t *testing.T) {
	long := strings.Repeat("u", 257)
	for _, c := range []struct{ user, method, target, kind, body, want string }{
		{"u1001", "POST", "/orders", "application/json", `{"count": 2, "skuId": 1}`,
			"submit:u1001:POST:/orders:a8ab397176bbd8ce"},
		{"u1001", "POST", "/orders", "application/json", `{"skuId":1,"count":2.0}`,
			"submit:u1001:POST:/orders:a8ab397176bbd8ce"},
		{"u1001", "POST", "/orders", "", "", "submit:u1001:POST:/orders:44136fa355b3678a"},
		{"u1001", "POST", "/orders", "application/problem+json; charset=utf-8", " { } ", "submit:u1001:POST:/orders:44136fa355b3678a"},
		{"u1001", "DELETE", "/a%2Fb/c:d?b=2&a=1&a=0", "", "", "submit:u1001:DELETE:/a%2Fb/c:d?a=1&a=0&b=2:44136fa355b3678a"},
		{"a:b%{é}", "POST", "/{x}?{y}", "", "", "submit:a%3Ab%25%7B%C3%A9%7D:POST:/%7Bx%7D?%7By%7D:44136fa355b3678a"},
		{long, "POST", "/", "", "", "submit:%~36868c95693f7961e19205254a6e613547eeb4375b384159e91a462f70e8af26:POST:/:44136fa355b3678a"},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Header.Set("Content-Type", c.kind)
		if got := submitKey(c.user, r, wholeBody(r, []byte(c.body))); got != c.want {
			t.Errorf("%s of %q: %s\nwant %s", c.target, c.body, got, c.want)
		}
	}
}

// The limit is that of a key of the lock, less what a prefix may take.
func TestSubmitKeyIsNeverTooLongForTheLock(t *testing.T) {
	r := httptest.NewRequest(strings.Repeat("M", 300), "/"+strings.Repeat("p", 3000), nil)
	if key := submitKey(strings.Repeat("ü", 3000), r, nil); len(key) > 3*maxPart+32 {
		t.Errorf("%d bytes", len(key))
	}
}

// FuzzSubmitKeyTellsSubmissionsApart: a key is the same exactly if user, method,
// target and body are.
func FuzzSubmitKeyTellsSubmissionsApart(f *testing.F) {
	f.Add("a:b", "POST", "/c", "x", "a", "POST", "/b:c", "x")
	f.Add("u", "PUT", "/c?a=1&b=2", "x", "u", "PUT", "/c?b=2&a=1", "x")
	f.Add("u", "PUT", "/c?a=1&a=2", "x", "u", "PUT", "/c?a=2&a=1", "x")
	f.Add("%7B", "PUT", "/c", "x", "{", "PUT", "/c", "x")
	f.Add("u", "PUT", "/c", "", "u", "PUT", "/c", "{}")
	f.Fuzz(func(t *testing.T, userA, methodA, pathA, bodyA, userB, methodB, pathB, bodyB string) {
		key := func(user, method, path, body string) string {
			r := httptest.NewRequest("POST", "/", nil)
			r.Method, r.URL.Path = method, path
			return submitKey(user, r, wholeBody(r, []byte(body)))
		}
		same := userA == userB && methodA == methodB && pathA == pathB &&
			(bodyA == bodyB || bodyA+bodyB == "{}") // no body is the empty object
		if got := key(userA, methodA, pathA, bodyA) == key(userB, methodB, pathB, bodyB); got != same {
			t.Errorf("same key: %t, same submission: %t", got, same)
		}
	})
}
