//go:build !race

package sim

const slower = 1
