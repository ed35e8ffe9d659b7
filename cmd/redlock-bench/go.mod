module github.com/quorumlock/quorumlock/cmd/redlock-bench

go 1.26.0

require github.com/quorumlock/quorumlock v0.1.0
