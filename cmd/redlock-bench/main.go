// Command redlock-bench measures the quorum lock.
package main

import _ "github.com/quorumlock/quorumlock/quorum"

func main() {}
