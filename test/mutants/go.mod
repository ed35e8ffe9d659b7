module github.com/quorumlock/quorumlock/test/mutants

go 1.26.0
