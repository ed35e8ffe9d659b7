module github.com/quorumlock/quorumlock/test/opinion

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/quorumlock/quorumlock v0.1.0
)

replace github.com/quorumlock/quorumlock => ../..
