module github.com/quorumlock/quorumlock/test/opinion

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/quorumlock/quorumlock v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/redis/go-redis/v9 v9.23.0 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/quorumlock/quorumlock => ../..
