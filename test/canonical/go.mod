module github.com/quorumlock/quorumlock/test/canonical

go 1.26.0

require (
	github.com/gowebpki/jcs v1.0.2
	github.com/quorumlock/quorumlock v0.1.0
)

replace github.com/quorumlock/quorumlock => ../..
