// Package quorum counts votes.
package quorum
