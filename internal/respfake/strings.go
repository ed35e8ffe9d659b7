package respfake

import (
	"math"
	"strconv"
	"strings"
	"time"
)

func get(x *call) any {
	text, found, err := x.tx().Get(x.args[0])
	switch {
	case err != nil:
		return err
	case !found:
		return nil
	}
	return text
}

func mget(x *call) any { return x.tx().MGet(x.args...) }

// set is SET with NX, XX, GET, PX, EX and KEEPTTL.
func set(x *call) any {
	key, text := x.args[0], x.args[1]
	how, wantOld, err := setOptions(x)
	if err != nil {
		return err
	}
	old := get(x)
	if _, wrong := old.(error); wrong && wantOld {
		return old
	}
	written := x.tx().Set(key, text, how)
	switch {
	case wantOld:
		return old
	case !written:
		return nil
	}
	return statusOK
}

func setOptions(x *call) (how SetOptions, wantOld bool, err error) {
	var unit time.Duration
	var amount string
	for args := x.args[2:]; len(args) > 0; args = args[1:] {
		switch option := strings.ToUpper(args[0]); {
		case option == "NX" && !how.XX:
			how.NX = true
		case option == "XX" && !how.NX:
			how.XX = true
		case option == "GET":
			wantOld = true
		case option == "KEEPTTL" && unit == 0:
			how.KeepTTL = true
		case option == "PX" && unit != time.Second && !how.KeepTTL && len(args) > 1:
			unit, amount, args = time.Millisecond, args[1], args[1:]
		case option == "EX" && unit != time.Millisecond && !how.KeepTTL && len(args) > 1:
			unit, amount, args = time.Second, args[1], args[1:]
		default:
			return how, false, errSyntax
		}
	}
	if how.NX && wantOld && !x.srv.since(7, 0) {
		return how, false, errSyntax
	}
	if unit == 0 {
		return how, wantOld, nil
	}
	n, err := parseInt(amount)
	if err != nil {
		return how, false, err
	}
	if n <= 0 || n > int64(math.MaxInt64/unit) {
		return how, false, expireError(x)
	}
	how.TTL = time.Duration(n) * unit
	return how, wantOld, nil
}

// expireError is Redis' for a time that is no use. The fake gives it for
// everything beyond 292 years, Redis only beyond 292 million.
func expireError(x *call) error {
	return failf("ERR invalid expire time in '%s' command", x.name)
}

func incr(x *call) any {
	tx, key := x.tx(), x.args[0]
	text, found, err := tx.Get(key)
	if err != nil {
		return err
	}
	var n int64
	if found {
		if n, err = parseInt(text); err != nil {
			return err
		}
	}
	if n == math.MaxInt64 {
		return failure("ERR increment or decrement would overflow")
	}
	tx.Set(key, strconv.FormatInt(n+1, 10), SetOptions{KeepTTL: true})
	return n + 1
}

func lpush(x *call) any {
	n, err := x.tx().Push(x.args[0], x.args[1:]...)
	if err != nil {
		return err
	}
	return n
}
