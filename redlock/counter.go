package redlock

import "strings"

// fenceMark is what the name of a counter has after that of its lock.
const fenceMark = ":fence"

// counterOf names the key that counts the fences of a lock. It begins with the
// lock's name, so whoever may use the one by a key pattern may use the other,
// and has the same hash tag, so that a node in cluster mode keeps both in one
// slot. checkFenced has excluded the keys that have no such name.
func counterOf(key string) string {
	if strings.ContainsAny(key, "{}") {
		return key + fenceMark
	}
	return key + fenceMark + ":{" + key + "}"
}

// checkFenced says whether a key, prefix included, can have a counter.
func checkFenced(key string) error {
	if strings.ContainsAny(key, "{}") && hashTag(key) == "" {
		return invalid("the key %q has braces that are no hash tag, so a counter of its fences could not be kept in its slot: "+
			"want a tag that is not empty, as in {user}:cart, or no braces", key)
	}
	for i := 1; i < len(key); i++ {
		if strings.HasPrefix(key[i:], fenceMark) && counterOf(key[:i]) == key {
			return invalid("the key %q is where the fences of the key %q are counted: want another name", key, key[:i])
		}
	}
	return nil
}

// hashTag is the part of a key that decides on its slot: what stands between the
// first brace and the next closing one (Redis cluster specification, hash tags).
// "" means that all of the key does.
func hashTag(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	tag, _, closed := strings.Cut(rest, "}")
	if !closed {
		return ""
	}
	return tag
}
