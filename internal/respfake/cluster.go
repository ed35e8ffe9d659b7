package respfake

import "strings"

var errCrossSlot = failure("CROSSSLOT Keys in request don't hash to the same slot")

// oneSlot says whether all keys live in one slot.
func oneSlot(keys []string) bool {
	for i := 1; i < len(keys); i++ {
		if slot(keys[i]) != slot(keys[0]) {
			return false
		}
	}
	return true
}

// slot is the cluster slot of a key: of its hash tag, the text between the first
// brace and the next closing one, if there is any text there.
func slot(key string) int {
	if _, rest, found := strings.Cut(key, "{"); found {
		if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
			key = tag
		}
	}
	const slots = 16384
	return int(crc16(key)) % slots
}

// crc16 is the XMODEM variant: polynomial 0x1021, starting from zero.
func crc16(s string) uint16 {
	var crc uint16
	for _, b := range []byte(s) {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// clusterInfo has the one field that a lock has to look at.
func clusterInfo(x *call) any {
	if !x.srv.opt.Cluster {
		return failure("ERR This instance has cluster support disabled")
	}
	return verbatim("cluster_state:ok\r\ncluster_known_nodes:" + x.srv.info.field("cluster_known_nodes", x.now) + "\r\n")
}

func clusterKeySlot(x *call) any {
	if !x.srv.opt.Cluster {
		return failure("ERR This instance has cluster support disabled")
	}
	return slot(x.args[0])
}
