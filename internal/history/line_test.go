package history

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// everything has an event of each kind, with every field somewhere.
var everything = []Event{
	{At: 1, Client: 0, Lease: 1, Op: OpAcquire, Key: "stock:1"},
	{
		At: 2, Client: 0, Lease: 1, Op: OpAcquire, Outcome: OK, Key: "stock:1", Token: "9f86d081", Fence: 1<<53 - 1,
		Until: 1000, Votes: map[string]string{"n1": "granted", "n2": "unknown", "n3": "granted"},
	},
	{At: 3, Client: 1, Lease: 7, Op: OpAcquire, Key: "stock:1"},
	{At: 4, Client: 1, Lease: 7, Op: OpAcquire, Outcome: Fail, Key: "stock:1", Votes: map[string]string{"n1": "denied"}},
	{At: 5, Client: 2, Lease: 1, Op: OpAcquire, Outcome: Unknown, Key: "\n \"<é"},
	{At: 6, Client: 0, Lease: 1, Op: OpExtend, Key: "stock:1"},
	{At: 7, Client: 0, Lease: 1, Op: OpExtend, Outcome: OK, Key: "stock:1", Until: 2000},
	{At: 8, Client: 0, Lease: 1, Op: OpAppend, Key: "stock:1", Element: "one\ntwo"},
	{At: 9, Client: 0, Lease: 1, Op: OpAppend, Outcome: Fail, Key: "stock:1", Element: "one\ntwo"},
	{At: 10, Client: 0, Lease: 1, Op: OpRelease, Key: "stock:1"},
	{At: 11, Client: 0, Lease: 1, Op: OpRelease, Outcome: Unknown, Key: "stock:1"},
	{At: 12, Client: 3, Lease: 1, Op: OpLost, Key: ""},
}

func TestEventsAreReadAsTheyWereWritten(t *testing.T) {
	var b bytes.Buffer
	for _, e := range everything {
		if err := Write(&b, e); err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
	}
	text := b.String()
	if n := strings.Count(text, "\n"); n != len(everything) {
		t.Errorf("%d events are %d lines:\n%s", len(everything), n, text)
	}
	if want := `{"at_ns":2,"client":0,"lease":1,"op":"acquire","outcome":"ok","key":"stock:1","token":"9f86d081",` +
		`"fence":9007199254740991,"until_ns":1000,"votes":{"n1":"granted","n2":"unknown","n3":"granted"}}`; strings.Split(text, "\n")[1] != want {
		t.Errorf("the second line is otherwise:\n%s", text)
	}
	for name, r := range map[string]io.Reader{
		"whole":              strings.NewReader(text),
		"byte by byte":       iotest.OneByteReader(strings.NewReader(text)),
		"without a line end": strings.NewReader(strings.TrimSuffix(text, "\n")),
	} {
		if got, err := Read(r); err != nil || !reflect.DeepEqual(got, everything) {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	if got, err := Read(strings.NewReader("")); err != nil || got != nil {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

func TestEachEventIsOneWrite(t *testing.T) {
	var n writes
	for _, e := range everything {
		if err := Write(&n, e); err != nil {
			t.Fatal(err)
		}
	}
	if int(n) != len(everything) {
		t.Errorf("%d writes for %d events", n, len(everything))
	}
}

type writes int

func (n *writes) Write(b []byte) (int, error) { *n++; return len(b), nil }

func TestErrorsOfReaderAndWriterArePassedOn(t *testing.T) {
	boom := errors.New("boom")
	good := `{"at_ns":1,"client":0,"lease":1,"op":"acquire","key":"k"}` + "\n"
	r := io.MultiReader(strings.NewReader(good+good), iotest.ErrReader(boom))
	if events, err := Read(r); len(events) != 2 || !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "line 3: ") {
		t.Errorf("%d events, %v", len(events), err)
	}
	_, w := io.Pipe()
	w.CloseWithError(boom)
	if err := Write(w, everything[0]); err == nil {
		t.Error("what is not written is no error")
	}
}

func TestBadLinesAreNamed(t *testing.T) {
	good := `{"at_ns":1,"client":0,"lease":1,"op":"acquire","key":"k"}`
	for _, test := range []struct{ name, line, want string }{
		{"empty", "", "line 2: EOF"},
		{"no JSON", "acquire k", "line 2: invalid character 'a'"},
		{"half a line", good[:20], "line 2: unexpected EOF"},
		{"two events", good + good, "line 2: something follows"},
		{"a brace too many", good + "}", "line 2: something follows"},
		{"a list", "[]", "line 2: json: cannot unmarshal array"},
		{"a field that nobody knows", `{"at_ns":1,"client":0,"lease":1,"op":"acquire","key":"k","fenc":7}`, `line 2: json: unknown field "fenc"`},
		{"a fraction", `{"at_ns":1.5,"client":0,"lease":1,"op":"acquire","key":"k"}`, "line 2: json: cannot unmarshal number 1.5"},
		{"no time", `{"client":0,"lease":1,"op":"acquire","key":"k"}`, "line 2: at_ns: "},
		{"a time before the run", `{"at_ns":-1,"client":0,"lease":1,"op":"acquire","key":"k"}`, "line 2: at_ns: "},
		{"a client below 0", `{"at_ns":1,"client":-1,"lease":1,"op":"acquire","key":"k"}`, "line 2: client: "},
		{"no lease", `{"at_ns":1,"client":0,"op":"acquire","key":"k"}`, "line 2: lease: "},
		{"no op", `{"at_ns":1,"client":0,"lease":1,"key":"k"}`, `line 2: op "": `},
		{"another op", `{"at_ns":1,"client":0,"lease":1,"op":"renew","key":"k"}`, `line 2: op "renew": `},
		{"another outcome", `{"at_ns":1,"client":0,"lease":1,"op":"acquire","outcome":"info","key":"k"}`, `line 2: outcome "info": `},
		{"lost and an outcome", `{"at_ns":1,"client":0,"lease":1,"op":"lost","outcome":"ok","key":"k"}`, "line 2: outcome: "},
		{"a lease without end", `{"at_ns":1,"client":0,"lease":1,"op":"acquire","outcome":"ok","key":"k"}`, "line 2: until_ns: "},
		{"an extension without end", `{"at_ns":1,"client":0,"lease":1,"op":"extend","outcome":"ok","key":"k"}`, "line 2: until_ns: "},
		{"an end of what failed", `{"at_ns":1,"client":0,"lease":1,"op":"extend","outcome":"fail","key":"k","until_ns":9}`, "line 2: until_ns: "},
		{"a fence of a call", `{"at_ns":1,"client":0,"lease":1,"op":"acquire","key":"k","fence":9}`, "line 2: fence: "},
		{"a fence of an extension", `{"at_ns":1,"client":0,"lease":1,"op":"extend","outcome":"ok","key":"k","until_ns":9,"fence":9}`, "line 2: fence: "},
		{"a vote that is none", `{"at_ns":1,"client":0,"lease":1,"op":"acquire","outcome":"fail","key":"k","votes":{"n1":"yes"}}`, `line 2: votes: "yes" of n1`},
		{"nothing appended", `{"at_ns":1,"client":0,"lease":1,"op":"append","key":"k"}`, "line 2: element: "},
		{"something acquired", `{"at_ns":1,"client":0,"lease":1,"op":"acquire","key":"k","element":"e"}`, "line 2: element: "},
	} {
		events, err := Read(strings.NewReader(good + "\n" + test.line + "\n" + good + "\n"))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		if len(events) != 1 {
			t.Errorf("%s: %d events before it", test.name, len(events))
		}
	}
}

// A token is a secret until the lease has ended, and for ever if its digest is
// enough.
func TestTokensAreRefused(t *testing.T) {
	const token = "0b7a3b52-9f6e-4c7e-8f3c-3d6c2a1f5e11"
	e := Event{At: 1, Lease: 1, Op: OpAcquire, Outcome: OK, Key: "k", Until: 9, Token: token}
	for _, test := range []string{token, token[:8] + "0", token[:7], "0B7A3B52", "0b7a3b5-"} {
		e.Token = test
		var b bytes.Buffer
		err := Write(&b, e)
		if err == nil || b.Len() > 0 {
			t.Errorf("%q is written: %s", test, b.String())
			continue
		}
		if strings.Contains(err.Error(), test) {
			t.Errorf("the error repeats it: %v", err)
		}
	}
}

func TestWhatCannotBeReadBackIsNotWritten(t *testing.T) {
	for _, e := range []Event{
		{},
		{At: 1, Lease: 1, Op: "renew", Key: "k"},
		{At: 1, Lease: 1, Op: OpAcquire, Key: "\xff"},
		{At: 1, Lease: 1, Op: OpAppend, Key: "k", Element: "\xff"},
		{At: 1, Lease: 1, Op: OpAcquire, Outcome: OK, Key: "k"},
	} {
		var b bytes.Buffer
		if err := Write(&b, e); err == nil || b.Len() > 0 {
			t.Errorf("%+v is written: %s", e, b.String())
		}
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	for _, e := range everything {
		Write(&b, e)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		events, _ := Read(bytes.NewReader(data))
		var again bytes.Buffer
		for _, e := range events {
			if err := Write(&again, e); err != nil {
				t.Fatalf("%+v was read and is not written: %v", e, err)
			}
		}
		back, err := Read(&again)
		if err != nil || len(back) != len(events) {
			t.Fatalf("%d of %d events come back: %v", len(back), len(events), err)
		}
	})
}
