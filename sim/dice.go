package sim

import "time"

// dice draws numbers from a seed and from what they are for. One more draw in one
// place changes none in another, so a schedule that loses a fault is otherwise the
// same.
type dice uint64

// on is the dice for one purpose, which the labels name.
func (d dice) on(labels ...uint64) dice {
	for _, l := range labels {
		d = dice(mix(uint64(d) ^ mix(l+golden)))
	}
	return d
}

const golden = 0x9e3779b97f4a7c15

// mix is the finalizer of splitmix64: each bit of x decides on all of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (d *dice) next() uint64 {
	*d += golden
	return mix(uint64(*d))
}

// below is a number from 0 to n-1.
func (d *dice) below(n int) int { return int(d.next() % uint64(n)) }

// share is a number from 0 to 1, 1 excluded.
func (d *dice) share() float64 { return float64(d.next()>>11) / (1 << 53) }

// chance is true with probability p.
func (d *dice) chance(p float64) bool { return p > 0 && d.share() < p }

// between is a duration from lo to hi, in nanoseconds, so that no two fall
// together.
func (d *dice) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.share()*float64(hi-lo))
}

// about is a duration from lo to hi whose order of magnitude is drawn first: short
// ones are as usual as long ones.
func (d *dice) about(lo, hi time.Duration) time.Duration {
	for hi > 2*lo && d.chance(0.6) {
		hi /= 2
	}
	return d.between(lo, hi)
}

// pick is one of the choices.
func pick[T any](d *dice, choices ...T) T { return choices[d.below(len(choices))] }
