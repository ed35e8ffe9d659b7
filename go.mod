module github.com/quorumlock/quorumlock

go 1.26.0
