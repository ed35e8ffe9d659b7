package respfake

import (
	"math"
	"strings"
)

func ping(x *call) any {
	switch len(x.args) {
	case 0:
		return status("PONG")
	case 1:
		return x.args[0]
	}
	return arityError(x.name)
}

func quit(x *call) any {
	x.ses.quit = true
	return statusOK
}

func selectDB(x *call) any {
	n, err := parseInt(x.args[0])
	switch {
	case err != nil:
		return err
	case n < math.MinInt32 || n > math.MaxInt32:
		return failf("ERR value is out of range, value must between %d and %d", math.MinInt32, math.MaxInt32)
	case x.srv.opt.Cluster && n != 0:
		return failure("ERR SELECT is not allowed in cluster mode")
	case n < 0 || n >= databases:
		return failure("ERR DB index is out of range")
	}
	x.ses.db = int(n)
	return statusOK
}

func clientID(x *call) any { return x.ses.id }

// clientKill kills by id. The one killed is gone with everything in its buffers
// before the reply is on its way.
func clientKill(x *call) any {
	if len(x.args) == 1 {
		return failure("ERR No such client") // the old form, by address
	}
	if len(x.args)%2 != 0 {
		return errSyntax
	}
	var target *session
	skipMe := true
	for i := 0; i < len(x.args); i += 2 {
		arg := x.args[i+1]
		switch strings.ToLower(x.args[i]) {
		case "id":
			id, err := parseInt(arg)
			if err != nil || id <= 0 {
				return failure("ERR client-id should be greater than 0")
			}
			target = x.srv.sessions[id]
		case "skipme":
			switch strings.ToLower(arg) {
			case "yes":
				skipMe = true
			case "no":
				skipMe = false
			default:
				return errSyntax
			}
		default:
			return errSyntax
		}
	}
	switch {
	case target == nil, target == x.ses && skipMe:
		return 0
	case target == x.ses:
		x.ses.quit = true
	default:
		x.srv.hangUp(target, x.now)
	}
	return 1
}

func clientGetName(x *call) any {
	if x.ses.name == "" {
		return nil
	}
	return x.ses.name
}

func clientSetName(x *call) any {
	if !validName(x.args[0]) {
		return errBadName
	}
	x.ses.name = x.args[0]
	return statusOK
}

func clientSetInfo(x *call) any {
	switch attr := strings.ToLower(x.args[0]); attr {
	case "lib-name", "lib-ver":
		if !validName(x.args[1]) {
			return failf("ERR %s cannot contain spaces, newlines or special characters.", attr)
		}
		return statusOK
	}
	return failf("ERR Unrecognized option '%s'", x.args[0])
}
