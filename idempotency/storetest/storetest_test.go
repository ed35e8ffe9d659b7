package storetest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorumlock/idempotency"
)

func TestSubjectNamesWhatItLacks(t *testing.T) {
	whole := Subject{
		Store:  struct{ idempotency.Store }{},
		Elapse: func(context.Context, idempotency.Key, time.Duration) error { return nil },
		Forget: func(context.Context, idempotency.Key) error { return nil },
	}
	if err := whole.validate(); err != nil {
		t.Error(err)
	}
	for name, lacking := range map[string]func(*Subject){
		"Store":  func(s *Subject) { s.Store = nil },
		"Elapse": func(s *Subject) { s.Elapse = nil },
		"Forget": func(s *Subject) { s.Forget = nil },
	} {
		s := whole
		lacking(&s)
		if err := s.validate(); err == nil || !strings.Contains(err.Error(), "Subject."+name+" is nil") {
			t.Errorf("without %s: %v", name, err)
		}
	}
}
