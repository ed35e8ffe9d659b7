package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorumlock/fence"
	"github.com/quorumlock/quorumlock/quorum"
)

// errNoLock is why a script denies a key that is not another's.
var errNoLock = errors.New("the key holds something that is no lock")

// read reads what the node answers to p and fills in the replies. refusal is an error
// that the node has answered to all of it.
func (c *redisConn) read(p part, sent form) (refusal, err error) {
	r := &c.socket.values
	v, err := r.next()
	if err != nil {
		return nil, err
	}
	if v.kind == valueError {
		refusal = errorReply(withoutTokens(string(v.text), p))
	}
	op := p[0]
	switch {
	case op.isSet():
		op.Reply, err = setReply(op, v, refusal, sent.plain), r.rest(v)
	case op.Kind == OpInspect:
		op.Reply, refusal, err = r.inspected(v, refusal)
	case v.kind == valueList && v.n == int64(len(p)):
		for _, op := range p {
			v, err := r.next()
			if err != nil {
				return nil, err
			}
			op.Reply = scriptReply(op, v)
			if err := r.rest(v); err != nil {
				return nil, err
			}
		}
	default:
		all := v.kind == valueNumber && v.n == int64(len(p)) && (op.Kind == OpExtend || op.Kind == OpRelease)
		for _, op := range p {
			switch {
			case refusal != nil:
				op.Reply = Reply{Vote: quorum.Unknown, Err: refusal, Nothing: op.Kind == OpAcquire && refused(refusal)}
			case all:
				op.Reply = Reply{Vote: quorum.Granted}
			default:
				op.Reply = oddReply(op, v)
			}
		}
		err = r.rest(v)
	}
	return refusal, err
}

// setReply is what the answer to a SET means.
func setReply(op *Op, v value, refusal error, plain bool) Reply {
	switch {
	case refusal != nil && redis.HasErrorPrefix(refusal, "WRONGTYPE"): // there is a key, and it is no lock
		return Reply{Vote: quorum.Denied, Err: refusal}
	case refusal != nil:
		return Reply{Vote: quorum.Unknown, Err: refusal, Nothing: true}
	case plain && v.kind == valueText, !plain && v.kind == valueNull, !plain && v.kind == valueText && string(v.text) == string(op.Token):
		return Reply{Vote: quorum.Granted}
	case plain && v.kind == valueNull:
		return Reply{Vote: quorum.Denied}
	case v.kind == valueText:
		return Reply{Vote: quorum.Denied, Holder: Token(v.text)}
	}
	return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("SET was answered %v", v)}
}

// inspected is what the answers to GET, which is v, and to PTTL mean.
func (r *values) inspected(v value, refusal error) (Reply, error, error) {
	holder := Token(v.text) // reading on takes the text away
	var odd error
	if v.kind != valueText && v.kind != valueNull {
		odd = fmt.Errorf("GET was answered %v", v)
	}
	if err := r.rest(v); err != nil {
		return Reply{}, nil, err
	}
	left, err := r.next()
	if err != nil {
		return Reply{}, nil, err
	}
	switch {
	case left.kind == valueError:
		refusal = cmp.Or[error](refusal, errorReply(left.text))
	case left.kind != valueNumber:
		odd = cmp.Or(odd, fmt.Errorf("PTTL was answered %v", left))
	}
	if err := r.rest(left); err != nil {
		return Reply{}, nil, err
	}
	switch {
	case redis.HasErrorPrefix(refusal, "WRONGTYPE"): // there is a key, and it is no lock
		return Reply{Vote: quorum.Denied, Err: refusal}, nil, nil
	case refusal != nil:
		return Reply{Vote: quorum.Unknown, Err: refusal}, refusal, nil
	case v.kind == valueNull:
		return Reply{Vote: quorum.Denied}, nil, nil
	case odd != nil:
		return Reply{Vote: quorum.Unknown, Err: odd}, nil, nil
	}
	return Reply{Vote: quorum.Granted, Holder: holder, Remaining: max(0, time.Duration(left.n)*time.Millisecond)}, nil, nil
}

// scriptReply is what a script's answer for one operation means.
func scriptReply(op *Op, v value) Reply {
	switch {
	case v.kind == valueText:
		return Reply{Vote: quorum.Denied, Holder: Token(v.text)}
	case v.kind != valueNumber:
	case v.n == 0 && op.Kind == OpAcquire:
		return Reply{Vote: quorum.Denied, Err: errNoLock}
	case v.n == 0:
		return Reply{Vote: quorum.Denied}
	case v.n > 0 && op.Kind == OpAcquire:
		return Reply{Vote: quorum.Granted, Fence: fence.Token(v.n)}
	case v.n == 1:
		return Reply{Vote: quorum.Granted}
	case v.n == -1 && op.Counter != "":
		return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("its fences cannot be counted: %q holds no number, or too large a one", op.Counter)}
	}
	return oddReply(op, v)
}

// oddReply is for an answer that op's script never gives.
func oddReply(op *Op, v value) Reply {
	return Reply{Vote: quorum.Unknown, Err: fmt.Errorf("the %s script answered %v", op.Kind, v)}
}

// redirects reports whether a node takes no writes, as it is no master of the key.
func redirects(refusal error) bool {
	return redis.HasErrorPrefix(refusal, "READONLY") || redis.HasErrorPrefix(refusal, "MOVED")
}

// withoutTokens is what a node says, without the tokens of p, which some repeat.
func withoutTokens(text string, p part) string {
	for _, op := range p {
		if len(op.Token) > 8 { // no word of a server's
			text = strings.ReplaceAll(text, string(op.Token), op.Token.Digest())
		}
	}
	return text
}

// isReply reports whether err came from the node as an answer to a command.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// refused reports whether a script that answered err was refused as a whole. One
// that had begun may have done its work for some of its keys.
func refused(err error) bool {
	for _, prefix := range []string{
		"NOSCRIPT", "NOAUTH", "LOADING", "BUSY", "MASTERDOWN", "CLUSTERDOWN", "CROSSSLOT", "MOVED", // before it began
		"READONLY", "MISCONF", "NOREPLICAS", "OOM", // at its first write
	} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}
